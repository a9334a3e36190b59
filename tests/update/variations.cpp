// Which bits a varied update has is in tests/update/vary.cpp; here what the policies of one update are to each other.
#include <gradus/update/variations.hpp>

#include <gradus/update/clip.hpp>
#include <gradus/update/composed.hpp>
#include <gradus/update/multi.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/momentum.hpp>

#include <string>

#include "steps.hpp"

using namespace gradus;
using steps::after, steps::refused;

TEST_CASE("a setting has one schedule") {
  refused(
      [] {
        composed u{adam{}, vary<&adam::beta1>(constant{0.5}), vary<&adam::beta1>(constant{0.6})};
      },
      "`beta1` of Adam follows two schedules");
  composed fine{adam{}, vary<&adam::beta1>(constant{0.5}), vary<&adam::beta2>(constant{0.6})};
  CHECK(fine.rule().beta1 == 0.5);
  CHECK(fine.rule().beta2 == 0.6);
}
TEST_CASE("accumulation by a number that follows a schedule of the rule's steps") {
  composed u{momentum{.rate = 1}, accumulate{},
             vary<&accumulate::every>([](std::int64_t step) { return step < 2 ? 1 : 3; })};
  // micro-batches 0 | 1 | 2 3 4 | 5 6 7
  const std::int64_t steps[] = {0, 1, 2, 2, 2, 3, 3, 3};
  for (std::int64_t at : {0, 1, 2, 3, 4, 5, 6, 7, 3, 0, 6}) {  // forwards, and where a restore goes back
    u.begin(at);
    CHECK(u.rule_step(at) == steps[at]);
    CHECK(u.only_accumulates(at) == (at == 2 || at == 3 || at == 5 || at == 6));
    CHECK(u.accumulation_share() == doctest::Approx(at < 2 ? 1.0 : 1.0 / 3));
  }
  refused(
      [] {
        composed z{momentum{.rate = 1}, accumulate{}, vary<&accumulate::every>(constant{0})};
      },
      "accumulate: expected `every` a whole number >= 1, found 0 at step 0");
  refused([] { composed z{momentum{.rate = 1}, accumulate{}, vary<&accumulate::every>(constant{1.5})}; }, "found 1.5");
}
