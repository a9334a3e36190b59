// expect: gradus: a chain has exactly one rule, such as gradus::adam{}
// expect: gradus::multi
// within: 8 lines
// at most: 60 lines
#include <gradus/update/composed.hpp>

#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/momentum.hpp>

int main() {
#ifdef FIX
  gradus::composed update{gradus::chain{gradus::adam{}}};
#else
  gradus::composed update{gradus::chain{gradus::adam{}, gradus::momentum{.rate = 0.1}}};
#endif
}
