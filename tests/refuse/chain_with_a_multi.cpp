// expect: gradus: a multi is no part of a chain, since each of its groups has a rule
// within: 8 lines
// at most: 40 lines
#include <gradus/cpu/device.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/rules/adam.hpp>

int main() {
#ifdef FIX
  gradus::updater u{gradus::multi{gradus::on{gradus::matrices{}, gradus::adam{}}, gradus::adam{}},
                    gradus::clip_by_norm{1}};
#else
  gradus::updater u{gradus::chain{gradus::clip_by_norm{1},
                                  gradus::multi{gradus::on{gradus::matrices{}, gradus::adam{}}, gradus::adam{}}}};
#endif
}
