// expect: gradus: the parts of a chain are in the wrong order
// expect: followers such as lookahead after it
// within: 8 lines
// at most: 60 lines
#include <gradus/update/composed.hpp>

#include <gradus/update/lookahead.hpp>
#include <gradus/update/rules/adam.hpp>

int main() {
#ifdef FIX
  gradus::composed update{gradus::chain{gradus::adam{}, gradus::lookahead{}}};
#else
  gradus::composed update{gradus::chain{gradus::lookahead{}, gradus::adam{}}};
#endif
}
