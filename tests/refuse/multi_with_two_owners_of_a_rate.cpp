// expect: gradus: the learning rate of a group has two owners
// within: 8 lines
// at most: 40 lines
#include <gradus/cpu/device.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/schedule.hpp>

int main() {
#ifdef FIX
  gradus::updater u{gradus::multi{gradus::on{gradus::matrices{}, gradus::adam{}, gradus::constant{0.1}},
                                  gradus::on{gradus::all_variables{}, gradus::adam{}, gradus::constant{0.2}}}};
#else
  gradus::updater u{
      gradus::multi{gradus::on{gradus::matrices{}, gradus::adam{}, gradus::constant{0.1}}, gradus::adam{}},
      gradus::constant{0.2}};
#endif
}
