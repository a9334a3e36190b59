// expect: gradus: vary<&policy::setting> names a setting of a policy that is not part of this update.
// within: 8 lines
// at most: 60 lines
#include <gradus/update/composed.hpp>

#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/momentum.hpp>
#include <gradus/update/schedule.hpp>

int main() {
#ifdef FIX
  gradus::composed update{gradus::adam{}, gradus::vary<&gradus::adam::beta1>(gradus::constant{0.8})};
#else
  gradus::composed update{gradus::adam{}, gradus::vary<&gradus::momentum::decay>(gradus::constant{0.8})};
#endif
}
