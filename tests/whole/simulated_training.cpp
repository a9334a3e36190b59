// costs: 300
// Unmodified training programs in virtual time, with everything that networks, machines and clocks do, under drawn
// seeds. A failure prints its seed: `simulated{.seed = it, .faults = simulated_faults::drawn(it)}` makes it again.
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/simulated.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "../train/run_files.hpp"
#include "cluster_models.hpp"

namespace {
using namespace gradus;
using cluster_models::mlp;
using cluster_models::points;
using testing::temp_dir;

std::uint64_t seeds() { return std::getenv("GRADUS_LONG") != nullptr ? 2000 : 40; }

run_files::content trained(const std::string& dir) {
  auto found = run_files::newest_checkpoint(posix{}, dir);
  std::erase_if(found.records, [](const auto& r) { return r.first.starts_with("input "); });
  return found;
}
run_config config_of(const std::string& dir) {
  return {.model_dir = dir,
          .tf_random_seed = 7,
          .save_summary_steps = 0,
          .save_checkpoints_steps = 5,
          .checkpoint_save_graph_def = false};
}
constexpr int round_batch = 12, steps = 12;

run_files::content alone(const std::string& dir, int parts) {
  const points data;
  auto t = make_trainer<mlp>(adam{.rate = 0.01}, clip_by_global_norm{0.5}, exponential_moving_average{.decay = 0.9},
                             microbatch{parts}, config_of(dir));
  t.train(data.batches(round_batch), {.max_steps = steps});
  return trained(dir);
}

struct history {
  simulated_report report;
  std::vector<std::string> log;
  run_files::content trained;
};
// A cluster whose size and faults are drawn.
simulated cluster_of(std::uint64_t seed) {
  constexpr int sizes[] = {1, 2, 3, 4};
  return {.seed = seed,
          .ps = static_cast<int>(1 + seed % 3),
          .workers = sizes[seed / 3 % 4],
          .faults = simulated_faults::drawn(seed)};
}

history synchronous(std::uint64_t seed, const std::string& dir) {
  history h;
  simulated c = cluster_of(seed);
  c.log = &h.log;
  h.report = c.run([&](server& here) {
    if (here.is_ps()) return here.join();
    const points data;
    auto t = make_trainer<mlp>(connected{here}, sync_replicas{}, adam{.rate = 0.01}, clip_by_global_norm{0.5},
                               exponential_moving_average{.decay = 0.9}, config_of(dir));
    t.train(data.batches(round_batch / here.workers()).shard(here.workers(), here.worker()), {.max_steps = steps});
  });
  h.trained = trained(dir);
  return h;
}

}  // namespace

TEST_CASE("synchronous, whatever goes wrong: the bits of one process, and the same history again") {
  const temp_dir place;
  std::map<int, run_files::content> expected;
  for (int workers = 1; workers <= 4; ++workers) expected[workers] = alone(place / text("alone-", workers), workers);
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    CAPTURE(seed);
    const history h = synchronous(seed, place / text("a-", seed));
    CHECK(run_files::difference(h.trained, expected[cluster_of(seed).workers]) == "");
    const history again = synchronous(seed, place / text("b-", seed));
    CHECK(again.report.hash == h.report.hash);
    CHECK(again.log == h.log);
    if (std::getenv("GRADUS_SHOW") != nullptr)
      MESSAGE(text(seed, ": ", h.report.secs, " s, ", h.report.counts.messages, " messages, ", h.report.counts.lost,
                   " lost, ", h.report.counts.crashes, " crashes, ", h.report.counts.restarts, " restarts"));
  }
}
