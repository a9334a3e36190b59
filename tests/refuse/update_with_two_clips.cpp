// expect: gradus: two policies of one kind were given
// expect: kind::clip
// at most: 60 lines
#include <gradus/update/composed.hpp>

#include <gradus/update/clip.hpp>
#include <gradus/update/rules/adam.hpp>

int main() {
#ifdef FIX
  gradus::composed update{gradus::chain{gradus::clip_by_value{}, gradus::adam{}}, gradus::clip_by_global_norm{}};
#else
  gradus::composed update{gradus::clip_by_value{}, gradus::adam{}, gradus::clip_by_global_norm{}};
#endif
}
