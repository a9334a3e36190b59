// expect: gradus: freeze takes a mask
// within: 8 lines
// at most: 60 lines
#include <gradus/update/composed.hpp>

#include <gradus/update/rules/adam.hpp>

int main() {
#ifdef FIX
  gradus::composed update{gradus::adam{}, gradus::freeze{gradus::named{"encoder/"}}};
#else
  gradus::composed update{gradus::adam{}, gradus::freeze{"encoder/"}};
#endif
}
