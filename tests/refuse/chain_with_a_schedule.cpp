// expect: gradus: this policy is no part of a chain
// expect: Schedules, averages, accumulation, noise, freeze and loss scale stand
// within: 8 lines
// at most: 60 lines
#include <gradus/update/composed.hpp>

#include <gradus/update/rules/adam.hpp>
#include <gradus/update/schedule.hpp>

int main() {
#ifdef FIX
  gradus::composed update{gradus::chain{gradus::adam{}}, gradus::constant{0.1}};
#else
  gradus::composed update{gradus::chain{gradus::constant{0.1}, gradus::adam{}}};
#endif
}
