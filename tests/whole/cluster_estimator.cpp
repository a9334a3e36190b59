// costs: 300
// train_and_evaluate of tasks that train together: each does what its role says, and the bits are those of one process.
#include <gradus/cluster/connected.hpp>
#include <gradus/estimator/compiled_train_and_evaluate.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/hooks/early_stopping_hook.hpp>
#include <gradus/train/run_environment.hpp>

#include <doctest/doctest.h>

#include "../cluster/loop_transport.hpp"
#include "../train/run_files.hpp"
#include "cluster_models.hpp"
#include "cluster_runs.hpp"

namespace {
using namespace gradus;
using cluster_models::points;
using cluster_runs::trained;
using testing::temp_dir;

// The configuration of a task; an empty type: of a process that is alone.
run_config config_of(const std::string& dir, const std::string& type, int index = 0) {
  const run_config base{.model_dir = dir,
                        .tf_random_seed = 7,
                        .save_summary_steps = 0,
                        .save_checkpoints_steps = 10,
                        .checkpoint_save_graph_def = false,
                        .experimental_max_worker_delay_secs = 0};
  if (type.empty()) return base;
  return run_config::from_tf_config(
      text(R"({"cluster": {"chief": ["c"], "ps": ["p0", "p1"], "worker": ["w"]}, "task": {"type": ")", type,
           R"(", "index": )", index, "}}"),
      base);
}
constexpr int steps = 30;

template <class... Policies>
train_and_evaluate_result run(const run_config& config, int batch, const server& here, const Policies&... policies) {
  const points data;
  auto e =
      make_estimator<cluster_models::mlp>(adam{.rate = 0.01}, clip_by_global_norm{0.5}, silent{}, config, policies...);
  const train_spec train([&] { return data.batches(batch).shard(here.workers(), here.worker()); },
                         {.max_steps = steps});
  const eval_spec eval([&] { return data.batches(13); }, {.steps = 8, .start_delay_secs = 0, .throttle_secs = 0});
  return train_and_evaluate(e, train, eval, {.here = &here});
}
}  // namespace

TEST_CASE("chief, worker, parameter servers and evaluator by their roles: the bits and metrics of one process") {
  const temp_dir place;
  const server nobody(server::local_def());
  const auto alone = run(config_of(place / "alone", ""), 24, nobody, microbatch{2});
  const std::string dir = place / "together";
  const cluster_spec all = config_of(dir, "chief").cluster_spec();
  loop::hub h;
  const auto said = loop::run_tasks(all, h, [&](server& here) {
    const auto found =
        run(config_of(dir, here.def().job_name, here.def().task_index), 12, here, connected{here}, sync_replicas{});
    CHECK(found.metrics.empty());  // another process evaluates
  });
  CHECK(said.size() == 4);
  for (const auto& [task, what] : said) {
    CAPTURE(task);
    CHECK(what == "");
  }
  CHECK(run_files::difference(trained(dir), trained(place / "alone")) == "");
  run(config_of(dir, "evaluator"), 12, nobody);
  const auto seen = read_eval_metrics(join_path(dir, "eval"));
  REQUIRE(seen.contains(steps));
  CHECK(seen.at(steps).at("loss") == doctest::Approx(alone.metrics["loss"]));
}
