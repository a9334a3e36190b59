// expect: gradus: vary takes the address of a setting in angle brackets and then a schedule, as
// within: 8 lines
// at most: 40 lines
#include <gradus/cpu/device.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/schedule.hpp>
#include <gradus/update/vary.hpp>

int main() {
#ifdef FIX
  gradus::updater u{gradus::adam{}, gradus::vary<&gradus::adam::beta1>(gradus::constant{0.5})};
#else
  gradus::updater u{gradus::adam{}, gradus::vary(0.5)};
#endif
}
