// expect: gradus: vary takes the address of a setting, as vary<&gradus::adam::beta1>(schedule).
// within: 8 lines
// at most: 60 lines
#include <gradus/update/composed.hpp>

#include <gradus/update/rules/adam.hpp>
#include <gradus/update/schedule.hpp>

int main() {
#ifdef FIX
  gradus::composed update{gradus::adam{}, gradus::vary<&gradus::adam::beta1>(gradus::constant{0.8})};
#else
  gradus::composed update{gradus::adam{}, gradus::vary<0>(gradus::constant{0.8})};
#endif
}
