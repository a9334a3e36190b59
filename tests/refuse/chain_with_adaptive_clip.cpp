// expect: gradus: adaptive_clip is no part of a chain
// expect: updater{chain{...}, adaptive_clip{0.01}}
// within: 8 lines
// at most: 60 lines
#include <gradus/update/composed.hpp>

#include <gradus/update/clip.hpp>
#include <gradus/update/rules/adam.hpp>

int main() {
#ifdef FIX
  gradus::composed update{gradus::chain{gradus::adam{}}, gradus::adaptive_clip{0.01}};
#else
  gradus::composed update{gradus::chain{gradus::adaptive_clip{0.01}, gradus::adam{}}};
#endif
}
