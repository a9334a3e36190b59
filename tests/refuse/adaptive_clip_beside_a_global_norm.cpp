// expect: gradus: adaptive_clip stands beside a chain with clip_by_global_norm
// within: 8 lines
// at most: 60 lines
#include <gradus/update/composed.hpp>

#include <gradus/update/clip.hpp>
#include <gradus/update/rules/adam.hpp>

int main() {
#ifdef FIX
  gradus::composed update{gradus::chain{gradus::clip_by_norm{}, gradus::adam{}}, gradus::adaptive_clip{0.01}};
#else
  gradus::composed update{gradus::chain{gradus::clip_by_global_norm{}, gradus::adam{}}, gradus::adaptive_clip{0.01}};
#endif
}
