// expect: gradus: include <gradus/cpu/device.hpp>
// within: 8 lines
#include <gradus/run/updater.hpp>
#include <gradus/update/rules/adam.hpp>
#ifdef FIX
#include <gradus/cpu/device.hpp>
#endif

int main() {
  float w[] = {1, 2};
  gradus::updater u{gradus::adam{}};
  u.track("w", w);
}
