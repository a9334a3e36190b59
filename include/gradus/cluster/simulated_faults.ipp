// The bodies of simulated_faults.hpp.
#pragma once
#include "../base/body.hpp"
#include "../base/error.hpp"
#include "../base/random.hpp"
#include "simulated_faults.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY simulated_faults simulated_faults::drawn(std::uint64_t seed) {
  random_stream dice{seed ^ 0x9E3779B97F4A7C15u};
  // Each kind is absent from a third of all runs, so that the others also occur without it.
  const auto often = [&](double most) { return dice.below(3) == 0 ? 0.0 : most * dice.uniform(); };
  simulated_faults f;
  f.lost = often(0.25), f.doubled = often(0.25), f.late = often(0.1);
  f.most_delay = f.least_delay + 0.05 * dice.uniform();
  f.within = 0.3 + 3 * dice.uniform();
  f.most_outage = dice.below(3) == 0 ? 40 : 2;
  f.cuts = static_cast<int>(often(4)), f.stops = static_cast<int>(often(4)), f.crashes = static_cast<int>(often(6));
  f.slowness = 1 + often(9);
  f.skewed_clocks = dice.below(2) == 0;
  f.ps_crashes = static_cast<int>(often(5));  // what is new is drawn last: a seed draws the rest as before
  return f;
}

GRADUS_BODY void simulated_faults::check() const {
  const auto expect = [](bool right, const char* what, double found) {
    if (!right) raise(status::invalid_argument, text("simulated faults: expected ", what, ", found ", found));
  };
  for (const double p : {lost, doubled, late}) expect(p >= 0 && p <= 1, "chances from 0 to 1", p);
  for (const int n : {cuts, stops, crashes, ps_crashes}) expect(n >= 0, "0 cuts, stops or crashes, or more", n);
  constexpr double year = 365 * 86400.0;
  const auto range = [&](double least, double most, const char* what) {
    expect(least >= 0, what, least);
    expect(most >= least && most <= year, what, most);
  };
  range(least_delay, most_delay, "a delay of 0 s or more, not above the most, and that at most a year");
  range(least_step, most_step, "a step of 0 s or more, not above the most, and that at most a year");
  range(least_outage, most_outage, "an outage of 0 s or more, not above the most, and that at most a year");
  range(0, within, "faults within 0 s or more, and at most a year");
  range(0, late_secs, "messages late by 0 s or more, and at most a year");
  expect(slowness >= 1 && slowness <= 1e6, "a slowness from 1 to a million", slowness);
}

}  // namespace gradus
