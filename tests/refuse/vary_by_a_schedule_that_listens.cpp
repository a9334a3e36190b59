// expect: gradus: a schedule that keeps state (reduce_on_plateau) drives the learning rate only, where its state is
// saved at most: 40 lines
#include <gradus/cpu/device.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/rules/momentum.hpp>
#include <gradus/update/schedules/plateau.hpp>
#include <gradus/update/vary.hpp>

int main() {
#ifdef FIX
  gradus::updater u{gradus::momentum{}, gradus::reduce_on_plateau{}};
#else
  gradus::updater u{gradus::momentum{}, gradus::vary<&gradus::momentum::rate>(gradus::reduce_on_plateau{})};
#endif
}
