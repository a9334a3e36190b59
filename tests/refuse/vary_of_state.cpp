// expect: gradus: vary takes a setting; this member of the policy is not in its settings()
// within: 8 lines
// at most: 40 lines
#include <gradus/cpu/device.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/loss_scale.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/schedule.hpp>
#include <gradus/update/vary.hpp>

int main() {
#ifdef FIX
  gradus::updater u{gradus::adam{}, gradus::dynamic_loss_scale{.initial = 8}};
#else
  gradus::updater u{gradus::adam{}, gradus::dynamic_loss_scale{},
                    gradus::vary<&gradus::dynamic_loss_scale::scale>(gradus::constant{8})};
#endif
}
