// costs: 900
// one thread: all of it is virtual
// Simulated histories of the cluster's protocol: 1,000 in every run (200 under a sanitizer), 100,000 with GRADUS_LONG.
// None breaks a law, and each fault that is built in breaks one.
#include <doctest/doctest.h>

#include "../cluster/protocol/simulation.hpp"
#include "../sanitized.hpp"

using namespace simulation;

TEST_CASE("1,000 histories break no law, and each is the same twice") {
  const std::uint64_t histories = std::getenv("GRADUS_LONG") != nullptr ? 100'000 : is_sanitized ? 200 : 1'000;
  std::uint64_t events = 0, waits = 0, fetches = 0, overs = 0, failed = 0;
  for (std::uint64_t seed = 1; seed <= histories && failed < 3; ++seed) {
    history first(seed, true), again(seed, true);
    const std::string problem = first.run();
    if (!problem.empty()) {
      ++failed;
      const fault_plan least = shrunk(fault_plan(seed), seed);
      history smallest(least, seed, true);
      const std::string same = smallest.run();
      MESSAGE("with the fewest faults, " << faults_in_words(least, seed) << ": " << same << "\n"
                                         << smallest.log_text());
      FAIL_CHECK("seed " << seed << ": " << problem);
      continue;
    }
    CHECK(again.run().empty());
    const auto &a = first.log(), &b = again.log();
    if (a.size() != b.size() || std::memcmp(a.data(), b.data(), a.size() * sizeof(line)) != 0)
      FAIL_CHECK("seed " << seed << " has another log the second time");
    events += first.events(), waits += first.reports(), fetches += first.fetches(), overs += first.overs();
  }
  MESSAGE(events << " events, " << waits << " waits that were reported, " << fetches << " checkpoints, " << overs
                 << " rounds that nobody could fill");
  CHECK((fetches > histories && overs > histories / 20));
}

// Where a server comes back with less than it had logged, nothing is right any more: what was acknowledged is gone. But
// no history may stand still: either the run goes on (what was lost was given again, or nobody needed it), or an error
// says what was lost. A law that is broken before that is what was lost.
TEST_CASE("a server that has lost what it had logged is named, or is given it again: nobody waits for ever") {
  const std::uint64_t histories = std::getenv("GRADUS_LONG") != nullptr ? 20'000 : is_sanitized ? 100 : 500;
  std::uint64_t named = 0, ended = 0, broken = 0, deserted = 0;
  for (std::uint64_t seed = 1; seed <= histories; ++seed) {
    fault_plan p(seed);
    p.loses = true, p.crashes = 2 + static_cast<int>(seed % 3), p.power_fails = false;
    history h(p, seed, false);
    const std::string end = h.run();
    CAPTURE(seed);
    const bool waits = end.find("it goes on") != std::string::npos || end.find("nobody does") != std::string::npos;
    // A worker that has left, as the servers have forgotten, is waited for, as one that will be started again is.
    if (waits && h.has_any_left()) {
      ++deserted;
      continue;
    }
    CHECK_MESSAGE(!waits, end);
    const bool is_named = end.starts_with("an error: ") && end.find(new_start) != std::string::npos;
    named += is_named, ended += end.empty(), broken += !waits && !end.empty() && !is_named;
  }
  MESSAGE(named << " named, " << ended << " went on, " << broken << " had lost what was acknowledged, " << deserted
                << " wait for workers that have left");
}

// A day (an hour in a default run, ten minutes under a sanitizer) in which one of three workers crashes four times a
// minute: nothing grows, no law breaks.
TEST_CASE("a worker that flaps") {
  const bool is_long = std::getenv("GRADUS_LONG") != nullptr;
  for (const staleness mode : {staleness::asynchronous, staleness::bounded, staleness::synchronous}) {
    fault_plan p(1);
    p.shape = {2, 3}, p.mode = mode, p.bound = 2, p.round = {2, 3, false};
    p.power_fails = p.by_wire = false;
    p.lost = 20, p.doubled = 20, p.late = 2, p.delay = 20 * ms, p.disk = 5 * ms;
    p.cuts = p.stops = 0, p.crashes = 4;
    p.fetches = 100, p.all_fetch = true;
    p.flaps = 15 * second, p.slowness = 10, p.heal = (is_long ? 24 * 3600 : is_sanitized ? 600 : 3600) * second;
    history h(p, 7, false);
    CHECK(h.run() == "");
    CHECK(h.updates() > (is_long ? 24'000u : is_sanitized ? 100u : 1'000u));
    MESSAGE(h.updates() << " updates, " << h.events() << " events, " << h.reports() << " waits that were reported");
  }
}

// The test of the test: each small fault, built into the machines, breaks a law in one of 10,000 histories.
TEST_CASE("seeded faults are found" * doctest::skip(is_sanitized)) {
  const struct {
    protocol_fault fault;
    std::string name;
  } faults[] = {{protocol_fault::no_window, "no window"},
                {protocol_fault::window_not_saved, "window not saved"},
                {protocol_fault::said_before_written, "said before written"},
                {protocol_fault::incarnation_ignored, "incarnation ignored"},
                {protocol_fault::token_lost, "token lost"},
                {protocol_fault::commit_dropped, "commit dropped"},
                {protocol_fault::applied_when_staged, "applied when staged"},
                {protocol_fault::lead_one_too_far, "lead one too far"},
                {protocol_fault::stale_counts, "stale counts"},
                {protocol_fault::order_ignored, "order ignored"},
                {protocol_fault::arrival_order, "arrival order"},
                {protocol_fault::forgotten_too_early, "forgotten too early"},
                {protocol_fault::decided_by_most, "decided by most"},
                {protocol_fault::outcome_not_asked, "outcome not asked"},
                {protocol_fault::begun_twice, "begun twice"},
                {protocol_fault::settled_from_some, "settled from some"},
                {protocol_fault::lists_not_saved, "lists not saved"},
                {protocol_fault::ahead_of_another, "ahead of another"}};
  int all_drawn = 0, all_left = 0;
  for (const auto& f : faults) {
    chosen_fault::now = f.fault;
    std::uint64_t seed = 1;
    std::string problem;
    while (seed <= 10'000 && problem.empty()) {
      problem = history(seed, false).run();
      if (problem.empty()) ++seed;
    }
    // With few faults the history breaks the same law, and it is the built-in one that breaks it. None of the others
    // can go.
    const fault_plan all(seed), least = shrunk(all, seed);
    CHECK(law_of(least, seed) == law_of(problem));
    int drawn = 0, left = 0;
    each_fault(all, [&](const char*, const auto& value) { drawn += value != 0; });
    each_fault(least, [&](const char*, const auto& value) { left += value != 0; });
    CHECK(left <= drawn);
    all_drawn += drawn, all_left += left;
    chosen_fault::now = protocol_fault::none;
    CHECK(history(least, seed, false).run() == "");
    CHECK_MESSAGE(!problem.empty(), f.name << " is not found");
    MESSAGE(f.name << ": seed " << seed << ": " << problem << "; with the fewest faults, "
                   << faults_in_words(least, seed));
  }
  MESSAGE(all_drawn << " kinds of faults were drawn, and " << all_left << " of them were needed");
  CHECK(2 * all_left < all_drawn);
}
