// Programs in virtual time: each fault happens and is counted, a seed repeats it all, and what is told when it fails.
#include <gradus/cluster/simulated.hpp>
#include <gradus/cluster/simulated_network.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "../message.hpp"
#include "adding_program.hpp"

using namespace gradus;

namespace {
constexpr std::uint64_t updates = 20;

struct outcome {
  simulated_report report;
  std::vector<std::string> log;
  adding::results found;
  int calls = 0;

  std::uint64_t lines(std::string_view with, std::string_view also = "") const {
    return static_cast<std::uint64_t>(std::ranges::count_if(log, [&](const std::string& l) {
      return l.find(with) != std::string::npos && l.find(also) != std::string::npos;
    }));
  }
};
// Runs it and checks that every update was made once, on every shard.
outcome run(simulated how) {
  outcome o;
  how.log = &o.log;
  o.report = how.run([&](server& here) {
    ++o.calls;
    adding::program(here, updates, &o.found);
  });
  CHECK(o.found.value.size() == static_cast<std::size_t>(how.ps));
  for (const auto& [shard, value] : o.found.value) CHECK(value == adding::sum_of(updates, how.workers));
  for (const auto& [shard, n] : o.found.updates) CHECK(n == updates);
  const simulated_counts& c = o.report.counts;
  CHECK(c.messages == o.lines(" says to "));
  CHECK(c.lost == o.lines("; lost"));
  CHECK(c.cut_off == o.lines("; cut off"));
  CHECK(c.doubled == o.lines(" says to ", " and "));
  CHECK(c.cuts == o.lines("the network parts"));
  CHECK(c.stops == o.lines(" stops until "));
  CHECK(c.crashes + c.ps_crashes == o.lines(" crashes"));
  CHECK(c.ended == o.lines(" ends: "));
  CHECK(c.restarts == o.lines(" is started again"));
  CHECK(c.restarts <= c.crashes + c.ps_crashes + c.ended);  // a parameter server may be down when the others end
  CHECK((c.restarts == c.crashes || c.ps_crashes != 0));
  CHECK(c.delivered + c.to_nobody <= c.messages - c.lost - c.cut_off + c.doubled);
  CHECK(o.calls == how.ps + how.workers + static_cast<int>(c.restarts));
  return o;
}
simulated with(std::uint64_t seed, const simulated_faults& faults) {
  return {.seed = seed, .ps = 2, .workers = 3, .faults = faults};
}
}  // namespace

TEST_CASE("the program runs once for each task, and each knows its place") {
  std::vector<std::string> tasks;
  const auto report = simulated{.ps = 2, .workers = 2}.run([&](server& here) {
    tasks.push_back(text(here.target(), here.is_chief() ? " chief" : "", here.is_ps() ? " ps" : ""));
    CHECK(here.network() != nullptr);
    CHECK(here.tasks().driver() != nullptr);
    if (here.is_ps()) here.join();
  });
  std::sort(tasks.begin(), tasks.end());
  CHECK(tasks == std::vector<std::string>{"in_process://ps0:0 ps", "in_process://ps1:0 ps",
                                          "in_process://worker0:0 chief", "in_process://worker1:0"});
  CHECK(report.counts == simulated_counts{});
  CHECK(report.secs == 0);
}

TEST_CASE("without faults nothing is lost, and steps take the time that is drawn for them") {
  const outcome o = run(with(1, {.least_step = 1, .most_step = 1}));
  const simulated_counts& c = o.report.counts;
  CHECK(c.messages > 2 * 3 * updates);
  CHECK(c.lost + c.doubled + c.late + c.cut_off + c.to_nobody + c.cuts + c.stops + c.crashes + c.ps_crashes == 0);
  CHECK(o.report.secs > updates);
  CHECK(o.report.secs < updates * 1.02);  // messages need at most 2 ms, and a round has less than 10 one behind another
  CHECK(run(with(1, {.least_step = 1, .most_step = 1, .slowness = 8})).report.secs > 2 * updates);
}

TEST_CASE("each fault happens and is counted, and every update is made once") {
  std::uint64_t to_nobody = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    CHECK(run(with(seed, {.lost = 0.2})).report.counts.lost > 0);
    CHECK(run(with(seed, {.doubled = 0.2})).report.counts.doubled > 0);
    CHECK(run(with(seed, {.late = 0.2})).report.counts.late > 0);
    const outcome cut = run(with(seed, {.cuts = 8, .within = 0.5})),
                  stopped = run(with(seed, {.stops = 2, .within = 0.1, .least_outage = 5}));
    CHECK(cut.report.counts.cuts == 8);
    CHECK(cut.report.counts.cut_off > 0);
    CHECK(stopped.report.counts.stops == 2);
    CHECK(stopped.report.secs > 5);
    const outcome crashed = run(with(seed, {.crashes = 6, .within = 0.5}));
    CHECK(crashed.report.counts.crashes > 0);
    to_nobody += crashed.report.counts.to_nobody;
    run(with(seed, {.lost = 0.1,
                    .doubled = 0.1,
                    .late = 0.1,
                    .cuts = 2,
                    .stops = 2,
                    .crashes = 4,
                    .within = 1,
                    .slowness = 5,
                    .skewed_clocks = true}));
  }
  CHECK(to_nobody > 0);
}

TEST_CASE("a parameter server that crashes has lost what it held: all begin again, and every update is made once") {
  std::uint64_t crashes = 0, lost = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const simulated_counts c = run(with(seed, {.ps_crashes = 4, .within = 0.5, .most_outage = 1})).report.counts;
    CHECK((c.ended >= 3 || c.ps_crashes == 0));  // each worker, at the least
    crashes += c.ps_crashes, lost += c.lost_updates;
    run(with(seed, {.lost = 0.1,
                    .doubled = 0.1,
                    .late = 0.1,
                    .cuts = 2,
                    .stops = 2,
                    .crashes = 2,
                    .ps_crashes = 4,
                    .within = 1,
                    .slowness = 5,
                    .skewed_clocks = true}));
  }
  CHECK(crashes > 20);
  CHECK(lost > 0);
}

TEST_CASE("a worker that has done its part does it again, if the cluster is lost before the others have done theirs") {
  int calls[2] = {};
  std::vector<std::string> said;
  simulated how{.seed = 1, .ps = 2, .workers = 2, .faults = {.ps_crashes = 3, .within = 2, .most_outage = 0.1}};
  const auto report = how.run([&](server& here) {
    if (here.is_ps()) return here.join();
    const detail::decider_options asks = detail::decides_by(asynchronous{}, {2, 2});
    here.network()->offer({{}, adding::serving(asks, nullptr)}, "a worker");
    ++calls[here.worker()];
    adding::worker w(here, asks);
    try {
      w.node.start();
      w.node.wait_for_step();
      for (int i = 0; here.worker() == 1 && i < 20; ++i) {
        w.number = 1;
        w.node.push(w.parts);
        w.node.wait_for_push();
        w.node.wait_for_step();
        here.tasks().sleep(0.2);
      }
      w.node.leave();
    } catch (const error& e) {
      said.push_back(e.what());
      throw;
    }
  });
  CHECK(report.counts.ps_crashes > 0);
  CHECK(calls[0] > 1);
  CHECK(calls[1] > 1);
  CHECK(!said.empty());
  for (const std::string& s : said)
    CHECK(says(s, "lost what it held; start all tasks again: they go on from the last"));
}

TEST_CASE("a fetch says after how many updates its state is, which may be more than the worker's step") {
  double held = -1, other = 0;
  std::uint64_t order = 0;
  simulated{.seed = 2, .ps = 1, .workers = 2}.run([&](server& here) {
    if (here.is_ps()) return here.join();
    const detail::decider_options how = detail::decides_by(asynchronous{}, {1, 2});
    here.network()->offer({{}, adding::serving(how, nullptr)}, "a worker");
    adding::worker w(here, how);
    w.node.start();
    CHECK(w.node.wait_for_step() == 0);
    if (here.is_chief()) {
      here.tasks().sleep(5);  // the other makes five updates
      order = w.node.fetch();
      held = w.told;
    } else {
      for (w.number = 1; w.number <= 5; ++w.number) {
        w.node.push(w.parts);
        CHECK(w.node.wait_for_push() == detail::push_fate::committed);
        other += w.number;
        w.node.wait_for_step();
      }
    }
    w.node.leave();
  });
  CHECK(order == 5);
  CHECK(held == other);
}

TEST_CASE("clocks of machines differ, and no time of day is the same") {
  std::vector<double> seen;
  simulated{.seed = 3, .ps = 2, .workers = 2, .faults = {.skewed_clocks = true}}.run(
      [&](server& here) { seen.push_back(here.tasks().elapsed()); });
  std::sort(seen.begin(), seen.end());
  CHECK(seen.size() == 4);
  CHECK(seen.back() - seen.front() > 1);
  CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
}

TEST_CASE("a seed makes the same log, byte for byte, and another one another") {
  const auto all =
      simulated_faults{.lost = 0.1, .doubled = 0.1, .late = 0.1, .crashes = 3, .ps_crashes = 3, .skewed_clocks = true};
  const outcome a = run(with(5, all)), b = run(with(5, all)), c = run(with(6, all));
  CHECK(a.log == b.log);
  CHECK(a.report.hash == b.report.hash);
  CHECK(a.report.secs == b.report.secs);
  CHECK(a.report.counts == b.report.counts);
  CHECK(a.report.hash != c.report.hash);
  std::uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
  for (const std::string& line : a.log)
    for (const char ch : line) hash = (hash ^ static_cast<unsigned char>(ch)) * 0x100000001B3u;
  CHECK(a.report.hash == hash);
  simulated quiet = with(5, all);
  CHECK(quiet.run([](server& here) { adding::program(here, updates); }).hash == hash);
}

TEST_CASE("what a task throws is thrown: an error with the seed, another exception as it is") {
  const auto failing = [](auto what) {
    return [what](server& here) {
      if (!here.is_ps() && here.worker() == 1) here.tasks().sleep(3), what();
      adding::program(here, updates);
    };
  };
  const std::string said = message_of(
      status::data_loss, [&] { with(77, {}).run(failing([] { raise(status::data_loss, "no input is left"); })); });
  CHECK(said == "simulated with seed 77, after 3.000000000 s: no input is left");
  CHECK_THROWS_WITH_AS(with(77, {}).run(failing([] { throw std::runtime_error("it broke"); })), "it broke",
                       std::runtime_error);
}

TEST_CASE("who waits for a worker that never comes is told what it waited for, when time is over") {
  simulated how = with(9, {});
  how.most_secs = 100;
  const std::string said = message_of(status::deadline_exceeded, [&] {
    how.run([](server& here) {
      if (!here.is_ps() && here.worker() == 2) here.tasks().sleep(1000);
      adding::program(here, updates);
    });
  });
  CHECK(says(said, "simulated with seed 9, after "));
  CHECK(says(said, "it has not ended after 100.000000000 s: "));
  CHECK(says(said, "worker 2, simulated waits for time to pass since 0.000000000 s, until 1000.000000000 s"));
  CHECK(says(said, "worker 0: the cluster has ended, while this worker waited for the token of its update 1 for "));
}

TEST_CASE("tasks that wait for each other are an error that lists them") {
  std::mutex mutex;
  const std::string said = message_of(status::aborted, [&] {
    simulated{.seed = 4}.run([&](server& here) {
      if (here.is_ps()) return here.join();
      task_condition never(here.tasks());
      here.tasks().sleep(2);
      std::unique_lock lock(mutex);
      never.wait(lock);
    });
  });
  CHECK(says(said, "simulated with seed 4, after 2.000000000 s: nothing goes on: "));
  CHECK(says(said, "ps 0, simulated waits for a notification since 0.000000000 s"));
  CHECK(says(said, "worker 0, simulated waits for a notification since 2.000000000 s"));
}

TEST_CASE("where a task has failed and the others then wait for each other, its error comes first") {
  std::mutex mutex;
  const std::string said = message_of(status::data_loss, [&] {
    simulated{.seed = 4, .workers = 2}.run([&](server& here) {
      if (here.is_ps()) return here.join();
      here.tasks().sleep(2);
      if (here.worker() == 1) raise(status::data_loss, "no input is left");
      task_condition never(here.tasks());
      std::unique_lock lock(mutex);
      never.wait(lock);
    });
  });
  CHECK(says(said, "simulated with seed 4, after 2.000000000 s: worker 1: no input is left; "));
  CHECK(says(said, "nothing goes on: "));
}

TEST_CASE("a program may catch a crash, and is started again all the same") {
  for (const bool servers : {false, true}) {
    int caught = 0, lost = 0, calls = 0;
    const int n = 6;
    const auto faults =
        servers ? simulated_faults{.ps_crashes = n, .within = 0.4} : simulated_faults{.crashes = n, .within = 0.4};
    const auto report = with(11, faults).run([&](server& here) {
      ++calls;
      try {
        adding::program(here, updates);
      } catch (const simulated_crash& c) {
        CHECK(c.task == (servers ? text("ps ", here.def().task_index) : text("worker ", here.worker())));
        ++caught;
      } catch (const aborted&) {
        ++lost;
      }
    });
    CHECK(caught == static_cast<int>(servers ? report.counts.ps_crashes : report.counts.crashes));
    CHECK(caught > 0);
    CHECK((lost > 0) == servers);
    CHECK(report.counts.restarts <= report.counts.crashes + report.counts.ps_crashes + report.counts.ended);
    CHECK(calls == 5 + static_cast<int>(report.counts.restarts));
  }
}

TEST_CASE("a cluster needs a worker, and faults that are some") {
  const auto said = [](const simulated& c) {
    return message_of(status::invalid_argument, [&] { c.run([](server&) {}); });
  };
  CHECK(says(said({.ps = -1}), "simulated: expected ps of 0 or more, and one worker or more, found -1 and 1"));
  CHECK(says(said({.workers = 0}), "found 1 and 0"));
  CHECK(says(said({.faults = {.lost = 2}}), "expected chances from 0 to 1, found 2"));
  CHECK(says(said({.most_secs = 0}), "expected most_secs up to a billion, found 0"));
  CHECK(says(said({.most_secs = std::numeric_limits<double>::infinity()}), "found inf"));
}
