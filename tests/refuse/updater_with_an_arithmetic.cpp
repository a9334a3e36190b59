// expect: gradus: this policy is not one that is taken here, because an arithmetic belongs to the device
// expect: updater<cpu<portable>, adam> u{adam{}}
// within: 8 lines
// at most: 40 lines
#include <gradus/cpu/device.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/rules/adam.hpp>

int main() {
#ifdef FIX
  gradus::updater<gradus::cpu<gradus::portable>, gradus::adam> u{gradus::adam{}};
#else
  gradus::updater u{gradus::adam{}, gradus::portable{}};
#endif
}
