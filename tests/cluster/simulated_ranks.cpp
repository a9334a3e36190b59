// Workers without parameter servers in virtual time: each fault happens, a rank that is lost ends all, who begin again
// from what the chief has saved, and a seed repeats it all.
#include <gradus/cluster/gradient_exchange.hpp>
#include <gradus/cluster/simulated.hpp>
#include <gradus/cluster/simulated_ranks.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "../message.hpp"

using namespace gradus;

namespace {
constexpr std::int64_t steps = 20, saves = 4;

// A program without a model: in step i worker w contributes i (w + 1), and every worker adds up all contributions. The
// chief saves every fourth step.
struct summing {
  std::int64_t saved[2] = {};  // the step, the sum
  std::vector<std::int64_t> sums;
  int calls = 0;

  static std::int64_t expected(int workers) { return (steps - 1) * steps / 2 * (workers * (workers + 1) / 2); }
  // Several messages are under way between any two ranks, as the buckets of a step.
  static void exchange_pieces(detail::rank_network& ranks) {
    constexpr int pieces = 8;
    const std::byte one{7};
    std::vector<std::byte> got(static_cast<std::size_t>(ranks.size() * pieces));
    std::vector<std::size_t> numbers;
    for (int k = 0; k < ranks.size(); ++k)
      for (int i = 0; i < pieces && k != ranks.rank(); ++i) {
        numbers.push_back(ranks.receive(k, std::span(&got[static_cast<std::size_t>(k * pieces + i)], 1)));
        numbers.push_back(ranks.send(k, std::span(&one, 1)));
      }
    for (const std::size_t n : numbers) ranks.wait(n);
    CHECK(std::ranges::count(got, one) == pieces * (ranks.size() - 1));
  }
  void run(server& here) {
    ++calls;
    detail::rank_network& ranks = *here.network()->ranks();
    REQUIRE(ranks.size() == here.workers());
    REQUIRE(ranks.rank() == here.worker());
    if (!ranks.all_take_part(true)) return;
    std::int64_t now[2] = {saved[0], saved[1]};
    const auto bytes = std::as_writable_bytes(std::span(now));
    std::vector<std::byte> begins(bytes.begin(), bytes.end());
    if (!here.is_chief()) std::fill(begins.begin(), begins.end(), std::byte{});
    detail::broadcast(ranks, begins);
    std::memcpy(now, begins.data(), sizeof now);
    while (now[0] < steps && ranks.all_take_part(true)) {
      exchange_pieces(ranks);
      const std::int64_t own = now[0] * (here.worker() + 1);
      const std::vector<std::byte> all = detail::gather(ranks, std::as_bytes(std::span(&own, 1)));
      for (std::size_t k = 0; k < all.size(); k += sizeof own) {
        std::int64_t x = 0;
        std::memcpy(&x, all.data() + k, sizeof x);
        now[1] += x;
      }
      ++now[0];
      if (here.is_chief() && now[0] % saves == 0) saved[0] = now[0], saved[1] = now[1];
    }
    ranks.all_take_part(false);
    here.finish();
    sums.push_back(now[1]);
  }
};
struct outcome {
  simulated_report report;
  std::vector<std::string> log;
  int calls = 0;

  std::uint64_t lines(std::string_view with) const {
    return static_cast<std::uint64_t>(
        std::ranges::count_if(log, [&](const std::string& l) { return l.find(with) != std::string::npos; }));
  }
};
simulated with(std::uint64_t seed, const simulated_faults& faults, int workers = 3) {
  return {.seed = seed, .ps = 0, .workers = workers, .faults = faults};
}
outcome run(simulated how) {
  outcome o;
  how.log = &o.log;
  summing program;
  o.report = how.run([&](server& here) { program.run(here); });
  o.calls = program.calls;
  CHECK(program.saved[0] == steps);
  CHECK(program.saved[1] == summing::expected(how.workers));
  REQUIRE(program.sums.size() >= static_cast<std::size_t>(how.workers));
  for (const std::int64_t s : program.sums) CHECK(s == summing::expected(how.workers));
  const simulated_counts& c = o.report.counts;
  CHECK(c.messages == o.lines(" says to "));
  CHECK(c.lost == o.lines("; lost"));
  CHECK(c.cut_off == o.lines("; cut off"));
  CHECK(c.cuts == o.lines("the network parts"));
  CHECK(c.stops == o.lines(" stops until "));
  CHECK(c.crashes == o.lines(" crashes"));
  CHECK(c.ended == o.lines(" ends: "));
  CHECK(c.restarts == o.lines(" is started again"));
  CHECK(c.restarts == c.crashes + c.ended);
  CHECK(o.calls == how.workers + static_cast<int>(c.restarts));
  std::set<std::string> down;
  for (const std::string& line : o.log) {
    const std::string what = line.substr(line.find(' ') + 1), task = what.substr(0, what.find(' ', 7));
    if (what == task + " crashes") down.insert(task);
    if (what == task + " is started again") down.erase(task);
    if (says(what, " says to ")) CHECK_MESSAGE(!down.contains(task), line);
  }
  CHECK(c.ps_crashes == 0);
  return o;
}
}  // namespace

TEST_CASE("without faults nothing is lost, and steps take the time that is drawn for them") {
  for (const int workers : {1, 2, 3}) {
    const outcome o = run(with(1, {.least_step = 1, .most_step = 1}, workers));
    const simulated_counts& c = o.report.counts;
    CHECK(c.lost + c.doubled + c.late + c.cut_off + c.cuts + c.stops + c.crashes + c.ended == 0);
    CHECK(o.report.secs > static_cast<double>(steps));
    CHECK(o.report.secs < (static_cast<double>(steps) + 1) * 1.02);  // entering takes the time of a step as well
    CHECK((c.messages == 0) == (workers == 1));
  }
  CHECK(run(with(1, {.least_step = 1, .most_step = 1, .slowness = 8})).report.secs > 2.0 * steps);
}

TEST_CASE("each fault happens and is counted, and every worker has every sum") {
  std::uint64_t ended = 0, to_nobody = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    const outcome lost = run(with(seed, {.lost = 0.2})), doubled = run(with(seed, {.doubled = 0.2})),
                  late = run(with(seed, {.late = 0.2})), cut = run(with(seed, {.cuts = 8, .within = 0.5})),
                  stopped = run(with(seed, {.stops = 2, .within = 0.1, .least_outage = 5}));
    CHECK(lost.report.counts.lost > 0);
    CHECK(doubled.report.counts.doubled > 0);
    CHECK(late.report.counts.late > 0);
    CHECK(cut.report.counts.cut_off > 0);
    CHECK(stopped.report.secs > 5);
    for (const outcome* o : {&lost, &doubled, &late, &cut, &stopped}) CHECK(o->report.counts.restarts == 0);
    const outcome crashed = run(with(seed, {.crashes = 4, .within = 0.5}));
    CHECK(crashed.report.counts.crashes > 0);
    CHECK(crashed.report.counts.restarts >= 3);  // all of them
    ended += crashed.report.counts.ended, to_nobody += crashed.report.counts.to_nobody;
    run(with(seed, {.lost = 0.1,
                    .doubled = 0.1,
                    .late = 0.1,
                    .cuts = 2,
                    .stops = 2,
                    .crashes = 4,
                    .ps_crashes = 3,  // of none
                    .within = 1,
                    .slowness = 5,
                    .skewed_clocks = true}));
  }
  CHECK(ended > 0);
  CHECK(to_nobody > 0);
}

TEST_CASE("frames that come twice, or are lost, do not have more and more of them sent") {
  const std::uint64_t quiet = run(with(1, {})).report.counts.messages;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    CHECK(run(with(seed, {.doubled = 0.5, .most_delay = 0.05})).report.counts.messages < 2 * quiet);
    CHECK(run(with(seed, {.lost = 0.1, .doubled = 0.5, .most_delay = 0.05})).report.counts.messages < 4 * quiet);
  }
}

TEST_CASE("a rank with unanswered frames for a process that is gone waits for time to pass") {
  simulated how = with(885, simulated_faults::drawn(885), 4);  // it spun, and virtual time stood still
  CHECK(run(how).report.secs > 18);
}

TEST_CASE("a worker that is silent for 30 s ends the cluster, which begins again") {
  std::uint64_t silent = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const outcome o = run(with(seed, {.stops = 1, .within = 0.3, .least_outage = 40, .most_outage = 40}));
    CHECK(o.report.counts.crashes == 0);
    silent += o.lines("has been silent for 30 s; start all tasks again: they go on from the last checkpoint");
  }
  CHECK(silent >= 20);
}

TEST_CASE("a seed makes the same log, byte for byte, and another one another") {
  const simulated_faults all{.lost = 0.1, .doubled = 0.1, .late = 0.1, .crashes = 3, .skewed_clocks = true};
  const outcome a = run(with(5, all)), b = run(with(5, all)), c = run(with(6, all));
  CHECK(a.log == b.log);
  CHECK(a.report.hash == b.report.hash);
  CHECK(a.report.secs == b.report.secs);
  CHECK(a.report.counts == b.report.counts);
  CHECK(a.report.hash != c.report.hash);
}

TEST_CASE("a program may catch a crash, which is no error of the library, and is started again all the same") {
  int caught = 0, aborts = 0;
  summing program;
  const auto report = with(3, {.crashes = 6, .within = 0.4}).run([&](server& here) {
    try {
      program.run(here);
    } catch (const simulated_crash& c) {
      CHECK(c.task == text("worker ", here.worker()));
      ++caught;
    } catch (const aborted& e) {
      CHECK_MESSAGE((says(e.what(), "start all tasks again: they go on from the last checkpoint") ||
                     says(e.what(), "has failed: its program has ended by an error") || says(e.what(), "was lost")),
                    e.what());
      ++aborts;
      throw;
    }
  });
  CHECK(caught == static_cast<int>(report.counts.crashes));
  CHECK(caught > 0);
  CHECK(aborts == static_cast<int>(report.counts.ended));
  CHECK(program.saved[1] == summing::expected(3));
}

TEST_CASE("a worker that has done its part does it again, if the cluster is lost before the others have done theirs") {
  int calls[3] = {};
  bool has_crashed = false;
  const auto report =
      with(1, {.crashes = 40, .within = 30, .least_outage = 1, .most_outage = 2}).run([&](server& here) {
        ++calls[here.worker()];
        detail::rank_network& ranks = *here.network()->ranks();
        ranks.all_take_part(true);
        ranks.all_take_part(false);
        if (here.worker() == 2) {
          const double until = here.tasks().elapsed() + (has_crashed ? 0 : 40);
          while (here.tasks().elapsed() < until) {
            here.tasks().sleep(1);
            try {
              ranks.all_take_part(false);
            } catch (const simulated_crash&) {
              has_crashed = true;
              throw;
            }
          }
        }
      });
  CHECK(report.counts.crashes > 0);
  for (const int n : calls) CHECK(n > 1);
}

TEST_CASE("a worker that has heard that all have left begins again, if one of them crashes before it has ended") {
  int calls[3] = {}, lost = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    std::fill(calls, calls + 3, 0);
    simulated how = with(seed, {.crashes = 4, .within = 8, .most_outage = 0.5});
    how.most_secs = 1000;
    const auto report = how.run([&](server& here) {
      ++calls[here.worker()];
      detail::rank_network& ranks = *here.network()->ranks();
      ranks.all_take_part(true);
      ranks.all_take_part(false);
      if (here.worker() != 1) return;
      here.network()->server_stopped();  // all know that it has left
      here.tasks().sleep(10);
    });
    lost += report.counts.crashes != 0 && *std::min_element(calls, calls + 3) > 1;
  }
  CHECK(lost > 0);
}

TEST_CASE("who returns without training ends the training of the others") {
  std::vector<bool> took_part;
  with(1, {.lost = 0.1, .crashes = 1, .within = 0.01}).run([&](server& here) {
    if (here.worker() == 1) return;
    took_part.push_back(here.network()->ranks()->all_take_part(true));
    CHECK(here.members().size() == 3);
  });
  CHECK(took_part.size() >= 2);
  CHECK(std::ranges::count(took_part, true) == 0);
}

TEST_CASE("what a task throws is thrown: an error with the seed, another exception as it is") {
  const auto failing = [](auto what) {
    return [what](server& here) {
      if (here.worker() == 1) here.tasks().sleep(3), what();
      here.network()->ranks()->all_take_part(true);
    };
  };
  const std::string said = message_of(
      status::data_loss, [&] { with(77, {}).run(failing([] { raise(status::data_loss, "no input is left"); })); });
  CHECK(says(said, "simulated with seed 77, after 3.0"));
  CHECK(said.ends_with(" s: no input is left"));
  CHECK_THROWS_WITH_AS(with(77, {}).run(failing([] { throw std::runtime_error("it broke"); })), "it broke",
                       std::runtime_error);
  // Also one that looks like the end of its cluster.
  CHECK(says(message_of(status::aborted, [&] { with(77, {}).run(failing([] { raise(status::aborted, "I stop"); })); }),
             "I stop"));
}

TEST_CASE("who waits for a worker that never comes is told what it waited for, when time is over") {
  simulated how = with(9, {});
  how.most_secs = 100;
  const std::string said = message_of(status::deadline_exceeded, [&] {
    how.run([](server& here) {
      if (here.worker() == 2) here.tasks().sleep(1000);
      here.network()->ranks()->all_take_part(true);
    });
  });
  CHECK(says(said, "simulated with seed 9, after "));
  CHECK(says(said, "it has not ended after 100.000000000 s: "));
  CHECK(says(said, "worker 2, simulated waits for time to pass since 0.000000000 s, until 1000.000000000 s"));
  CHECK(says(said,
             "worker 0: the cluster has ended, while worker 0 waited for the others to begin a step: it has not ended "
             "after 100"));
}

TEST_CASE("without parameter servers there is no message of the protocol") {
  with(1, {}, 1).run([](server& here) {
    CHECK(says(message_of(status::invalid_argument, [&] { here.network()->messages(); }),
               "this cluster has no parameter servers: its workers train with gradus::all_reduce{}"));
  });
}
