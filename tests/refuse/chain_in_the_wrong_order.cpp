// expect: gradus: the parts of a chain are in the wrong order
// within: 8 lines
// at most: 60 lines
#include <gradus/update/composed.hpp>

#include <gradus/update/clip.hpp>
#include <gradus/update/rules/adam.hpp>

int main() {
#ifdef FIX
  gradus::composed update{gradus::chain{gradus::clip_by_value{}, gradus::adam{}}};
#else
  gradus::composed update{gradus::chain{gradus::adam{}, gradus::clip_by_value{}}};
#endif
}
