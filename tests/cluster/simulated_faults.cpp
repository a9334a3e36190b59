// Faults are drawn by the seed, and what is no fault is refused.
#include <gradus/cluster/simulated_faults.hpp>

#include <doctest/doctest.h>

#include <limits>

#include "../message.hpp"

using namespace gradus;

TEST_CASE("the seed draws faults: each kind in some runs and not in others, all of them valid") {
  int lost = 0, doubled = 0, late = 0, cuts = 0, stops = 0, crashes = 0, ps_crashes = 0, slow = 0, skewed = 0;
  constexpr int n = 300;
  for (std::uint64_t seed = 0; seed < n; ++seed) {
    const simulated_faults f = simulated_faults::drawn(seed), again = simulated_faults::drawn(seed);
    f.check();
    CHECK((f.lost == again.lost && f.within == again.within && f.crashes == again.crashes));
    lost += f.lost > 0, doubled += f.doubled > 0, late += f.late > 0, cuts += f.cuts > 0, stops += f.stops > 0;
    crashes += f.crashes > 0, ps_crashes += f.ps_crashes > 0, slow += f.slowness > 1, skewed += f.skewed_clocks;
  }
  for (const int count : {lost, doubled, late, cuts, stops, crashes, ps_crashes, slow, skewed}) {
    CHECK(count > n / 4);
    CHECK(count < n * 9 / 10);
  }
}

TEST_CASE("what is no fault is refused") {
  simulated_faults().check();
  const auto refused = [](const simulated_faults& f) {
    return message_of(status::invalid_argument, [&] { f.check(); });
  };
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  CHECK(says(refused({.lost = 1.5}), "simulated faults: expected chances from 0 to 1, found 1.5"));
  CHECK(says(refused({.doubled = none}), "chances"));
  CHECK(says(refused({.late = -0.1}), "chances"));
  CHECK(says(refused({.least_delay = 2, .most_delay = 1}), "a delay of 0 s or more"));
  CHECK(says(refused({.most_step = none}), "a step of 0 s or more"));
  CHECK(says(refused({.cuts = -1}), "0 cuts, stops or crashes, or more, found -1"));
  CHECK(says(refused({.ps_crashes = -2}), "crashes, or more, found -2"));
  CHECK(says(refused({.least_outage = -1}), "an outage of 0 s or more"));
  CHECK(says(refused({.within = 1e9}), "faults within 0 s or more, and at most a year"));
  CHECK(says(refused({.late_secs = none}), "messages late by 0 s or more"));
  CHECK(says(refused({.slowness = 0}), "a slowness from 1 to a million, found 0"));
}
