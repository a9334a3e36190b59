// expect: gradus: a chain has exactly one rule, such as gradus::adam{}
// within: 8 lines
// at most: 60 lines
#include <gradus/update/composed.hpp>

#include <gradus/update/clip.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/weight_decay.hpp>

int main() {
#ifdef FIX
  gradus::composed update{gradus::chain{gradus::clip_by_value{}, gradus::weight_decay{0.1}, gradus::adam{}}};
#else
  gradus::composed update{gradus::chain{gradus::clip_by_value{}, gradus::weight_decay{0.1}}};
#endif
}
