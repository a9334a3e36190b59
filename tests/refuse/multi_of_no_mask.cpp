// expect: gradus: `on` takes a mask and a rule
// within: 8 lines
// at most: 60 lines
#include <gradus/update/composed.hpp>

#include <gradus/update/rules/adam.hpp>

int main() {
#ifdef FIX
  gradus::composed update{gradus::multi{gradus::on{gradus::named{"w"}, gradus::adam{}}, gradus::adam{}}};
#else
  gradus::composed update{gradus::multi{gradus::on{0.1, gradus::adam{}}, gradus::adam{}}};
#endif
}
