// expect: gradus: this policy is no part of a chain
// within: 8 lines
// at most: 60 lines
#include <gradus/update/composed.hpp>

#include <gradus/update/rules/adam.hpp>

int main() {
#ifdef FIX
  gradus::composed update{gradus::chain{gradus::adam{}}};
#else
  gradus::composed update{gradus::chain{0.1, gradus::adam{}}};
#endif
}
