// Runs whose bits depend on who came first, repeated from their logs: parameters, slots, averages and the step have the
// bits of the logged run.
#include <gradus/cluster/replay.hpp>

#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/local_cluster.hpp>
#include <gradus/cluster/order_log.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "../message.hpp"
#include "../train/run_files.hpp"
#include "../whole/cluster_models.hpp"

using namespace gradus;
using testing::temp_dir;

namespace {

// What a run is: its folders, and how long it is.
struct place {
  std::string logs, model;
  std::int64_t steps = 40;
};
run_config config_of(const place& p) {
  return {.model_dir = p.model,
          .tf_random_seed = 7,
          .save_summary_steps = 0,
          .save_checkpoints_steps = 15,
          .checkpoint_save_graph_def = false};
}
// Dropout draws numbers by the step, so that has to be the same as well.
template <class When>
auto learning(const place& p, const When& when) {
  return [&p, when](server& here) {
    if (here.is_ps()) return here.join();
    const cluster_models::points data;
    auto t = make_trainer<cluster_models::mlp>(connected{here}, when, recovery::log{.directory = p.logs},
                                               adam{.rate = 0.01}, clip_by_global_norm{0.5},
                                               exponential_moving_average{.decay = 0.9}, config_of(p));
    t.train(data.batches(4).shard(here.workers(), here.worker()), {.max_steps = p.steps});
  };
}

run_files::content trained(const std::string& model_dir) {
  auto found = run_files::newest_checkpoint(posix{}, model_dir);
  std::erase_if(found.records, [](const auto& r) { return r.first.starts_with("input "); });
  return found;
}
}  // namespace

TEST_CASE("an asynchronous run is repeated bit for bit") {
  const temp_dir dir;
  const place first{dir / "logs", dir / "first"};
  local_cluster{.ps = 2, .workers = 3}.run(learning(first, asynchronous{}));
  const auto end = trained(first.model);
  place again{first.logs, dir / "again"};
  const replay_report r =
      replay{.logs = first.logs, .until = static_cast<std::uint64_t>(end.step)}.run(learning(again, asynchronous{}));
  CHECK(r.begin == 0);
  CHECK(r.end == static_cast<std::uint64_t>(end.step));
  CHECK(r.logged >= r.end);
  CHECK(trained(again.model).step == end.step);
  CHECK(run_files::difference(trained(again.model), end) == "");
}
