// expect: gradus: no rule was given; add one, such as gradus::adam{}, to the policies.
// within: 8 lines
// at most: 60 lines
#include <gradus/update/composed.hpp>

#include <gradus/update/clip.hpp>
#include <gradus/update/rules/adam.hpp>

int main() {
#ifdef FIX
  gradus::composed update{gradus::clip_by_global_norm{}, gradus::adam{}};
#else
  gradus::composed update{gradus::clip_by_global_norm{}};
#endif
}
