// expect: gradus: vary takes a setting that is a number
// within: 8 lines
// at most: 40 lines
#include <gradus/cpu/device.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/schedule.hpp>
#include <gradus/update/vary.hpp>

int main() {
#ifdef FIX
  gradus::updater u{gradus::adam{.sparse = gradus::sparse_mode::decay_all}};
#else
  gradus::updater u{gradus::adam{}, gradus::vary<&gradus::adam::sparse>(gradus::constant{1})};
#endif
}
