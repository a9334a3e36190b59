// expect: gradus: this policy is not one that is taken here, because mixed_precision rewrites a model
// expect: make_trainer takes it. An updater takes arrays of bfloat or half as they are
// within: 8 lines
// at most: 40 lines
#include <gradus/cpu/device.hpp>
#include <gradus/pass/mixed_precision.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/rules/adam.hpp>

int main() {
#ifdef FIX
  gradus::updater u{gradus::adam{}};
#else
  gradus::updater u{gradus::adam{}, gradus::mixed_precision<gradus::bfloat16>{}};
#endif
}
