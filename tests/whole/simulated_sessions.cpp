// costs: 200
// Sessions as tasks of a cluster in virtual time, under drawn faults: they end with the bits of one process. A failure
// prints its seed: `simulated{.seed = it, .faults = simulated_faults::drawn(it)}` makes it again.
#include <gradus/cluster/simulated.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "session_tasks.hpp"

namespace {
using namespace gradus;
using cluster_models::mlp;
using session_tasks::of_sessions;
using testing::temp_dir;

std::uint64_t seeds() { return std::getenv("GRADUS_LONG") != nullptr ? 2000 : 30; }
constexpr int steps = 12;
const adam with_adam{.rate = 0.01};
const clip_by_global_norm with_clip{0.5};
const exponential_moving_average with_average{.decay = 0.9};

struct history {
  simulated_report report;
  std::vector<std::string> log;
  run_files::content trained;
};
template <class Recovery>
history synchronous(std::uint64_t seed, const std::string& dir, int ps, const Recovery& lost) {
  constexpr int sizes[] = {1, 2, 3, 4};
  history h;
  simulated c{.seed = seed,
              .ps = ps,
              .workers = sizes[seed / 3 % 4],
              .faults = simulated_faults::drawn(seed),
              .most_secs = 600};
  c.log = &h.log;
  h.report = c.run([&](server& here) {
    if (here.is_ps()) return here.join();
    session_tasks::with_sums(ps, [&](auto how) {
      session_tasks::by_session(mlp, connected{here}, here, dir, steps, how, lost, with_adam, with_clip, with_average);
    });
  });
  h.trained = of_sessions(dir);
  return h;
}
template <class RecoveryIn>
simulated_counts same_bits(const RecoveryIn& policy_in, bool has_ps = true) {
  const temp_dir place;
  std::vector<run_files::content> one(5);
  for (const int n : {1, 2, 3, 4})
    one[static_cast<std::size_t>(n)] =
        session_tasks::alone<mlp>(place / text("one-", n), n, steps, with_adam, with_clip, with_average);
  simulated_counts all;
  for (std::uint64_t seed = 0; seed < seeds(); ++seed) {
    CAPTURE(seed);
    const std::string a = place / text("a-", seed), b = place / text("b-", seed);
    const int ps = has_ps ? static_cast<int>(1 + seed % 3) : 0;
    const history h = synchronous(seed, a, ps, policy_in(a));
    CHECK(run_files::difference(h.trained, one[1 + seed / 3 % 4]) == "");
    CHECK(synchronous(seed, b, ps, policy_in(b)).log == h.log);
    all.crashes += h.report.counts.crashes, all.ps_crashes += h.report.counts.ps_crashes;
  }
  return all;
}
}  // namespace

TEST_CASE("synchronous sessions with logs: the bits of one process, whatever crashes") {
  const auto all = same_bits([](const std::string& dir) { return recovery::log{.directory = dir + "-logs"}; });
  CHECK(all.crashes > 10);
  CHECK(all.ps_crashes > 3);
}
TEST_CASE("synchronous sessions that roll back: the bits of one process, whatever crashes") {
  const auto all = same_bits([](const std::string&) { return recovery::roll_back{}; });
  CHECK(all.crashes > 10);
}
TEST_CASE("sessions that sum their gradients: the bits of one process, whatever crashes") {
  const auto all = same_bits([](const std::string&) { return recovery::roll_back{}; }, false);
  CHECK(all.crashes > 10);
}
TEST_CASE("asynchronous sessions with logs: no update is lost or made twice, whatever crashes") {
  const temp_dir place;
  std::uint64_t ps_crashes = 0;
  for (std::uint64_t seed = 0; seed < seeds(); ++seed) {
    CAPTURE(seed);
    const std::string dir = place / text("run-", seed);
    simulated c{.seed = seed,
                .ps = static_cast<int>(1 + seed % 2),
                .workers = static_cast<int>(2 + seed % 3),
                .faults = simulated_faults::drawn(seed),
                .most_secs = 600};
    const auto report = c.run([&](server& here) {
      if (here.is_ps()) return here.join();
      session_tasks::task_graph t(session_tasks::counter, connected{here}, asynchronous{},
                                  recovery::log{.directory = dir + "-logs"}, session_tasks::an_eighth);
      monitored_training_session sess(t.g, sessions_of(t.g, t.opt),
                                      {.is_chief = here.is_chief(),
                                       .checkpoint_dir = dir,
                                       .hooks = {stop_at_step_hook({.last_step = 40})},
                                       .save_checkpoint_steps = 5,
                                       .tasks = here.tasks()});
      std::int64_t before = -1;
      sess.within([&] {
        while (!sess.should_stop()) {
          const auto r = sess.run({t.train, t.step, t.g.by_name("w")});
          const std::int64_t step = r[1].as<std::int64_t>()[0];
          CHECK(step > before);
          CHECK(r[2].as<float>()[1] <= -0.125F * static_cast<float>(step));  // another shard may be further
          before = step;
        }
      });
    });
    const auto last = of_sessions(dir);
    CHECK(last.step >= 40);
    for (const auto& [name, bytes] : last.records)
      if (name.starts_with("w ")) {
        float w[2];
        std::memcpy(w, bytes.data(), sizeof w);
        CHECK(w[0] == -0.125F * static_cast<float>(last.step));
      }
    ps_crashes += report.counts.ps_crashes;
  }
  CHECK(ps_crashes > 3);
}
