// expect: gradus: the learning rate has two owners: the schedule and vary<&rule::rate>; keep one of the two.
// within: 8 lines
// at most: 40 lines
#include <gradus/cpu/device.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/schedule.hpp>
#include <gradus/update/vary.hpp>

int main() {
#ifdef FIX
  gradus::updater u{gradus::adam{}, gradus::vary<&gradus::adam::rate>(gradus::constant{0.1})};
#else
  gradus::updater u{gradus::adam{}, gradus::constant{0.1}, gradus::vary<&gradus::adam::rate>(gradus::constant{0.1})};
#endif
}
