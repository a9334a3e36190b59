// expect: gradus: this policy is not one that is taken here, because it is a part of a chain before its rule
// expect: chain{weight_decay{0.01}, adam{}}
// at most: 60 lines
#include <gradus/update/composed.hpp>

#include <gradus/update/rules/adam.hpp>
#include <gradus/update/weight_decay.hpp>

int main() {
#ifdef FIX
  gradus::composed update{gradus::chain{gradus::weight_decay{0.1}, gradus::adam{}}};
#else
  gradus::composed update{gradus::weight_decay{0.1}, gradus::adam{}};
#endif
}
