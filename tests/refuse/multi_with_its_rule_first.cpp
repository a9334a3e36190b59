// expect: gradus: multi takes groups, `on{mask, rule}` or `on{mask, rule, schedule}`, and last one rule for all other
// within: 8 lines
// at most: 60 lines
#include <gradus/update/composed.hpp>

#include <gradus/update/rules/adam.hpp>

int main() {
#ifdef FIX
  gradus::composed update{gradus::multi{gradus::on{gradus::matrices{}, gradus::adam{}}, gradus::adam{}}};
#else
  gradus::composed update{gradus::multi{gradus::adam{}, gradus::on{gradus::matrices{}, gradus::adam{}}}};
#endif
}
