// expect: gradus: this policy is not one that is taken here, because it is a part of a chain after its rule
// expect: chain{adam{}, lookahead{}}
// within: 8 lines
// at most: 40 lines
#include <gradus/cpu/device.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/lookahead.hpp>
#include <gradus/update/rules/adam.hpp>

int main() {
#ifdef FIX
  gradus::updater u{gradus::chain{gradus::adam{}, gradus::lookahead{}}};
#else
  gradus::updater u{gradus::adam{}, gradus::lookahead{}};
#endif
}
