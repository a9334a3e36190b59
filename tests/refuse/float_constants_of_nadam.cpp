// expect: gradus: float_constants takes a rule whose constants change with the rate and Adam's correction alone
// within: 8 lines
// at most: 40 lines
#include <gradus/cpu/device.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/float_constants.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/nadam.hpp>

int main() {
#ifdef FIX
  gradus::updater u{gradus::float_constants{gradus::adam{}}};
#else
  gradus::updater u{gradus::float_constants{gradus::nadam{}}};
#endif
}
