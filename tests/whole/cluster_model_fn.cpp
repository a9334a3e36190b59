// costs: 200
// Estimators with a model function in the roles of a cluster: the optimizer of their graph is a task's.
#include <gradus/cluster/all_reduce.hpp>
#include <gradus/cluster/connected.hpp>
#include <gradus/estimator/train_and_evaluate.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/hooks/early_stopping_hook.hpp>
#include <gradus/train/run_environment.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <string>

#include "../cluster/loop_transport.hpp"
#include "../estimator/linear_model.hpp"
#include "../message.hpp"

namespace {
using namespace gradus;
using testing::temp_dir;

constexpr int steps = 14;
run_config config_of(const std::string& dir, const std::string& type, int index = 0, bool has_ps = true) {
  return run_config::from_tf_config(
      text(R"({"cluster": {"chief": ["c"], )", has_ps ? R"("ps": ["p0", "p1"], )" : "",
           R"("worker": ["w"]}, "task": {"type": ")", type, R"(", "index": )", index, "}}"),
      {.model_dir = dir, .save_checkpoints_steps = 5, .experimental_max_worker_delay_secs = 0});
}
// The task of a role; `policies` are those of the optimizer. Each worker has every other batch of the line.
template <class... Policies>
void work(const run_config& config, const server& here, const Policies&... policies) {
  estimator e(
      [policies...](const named_tensors& features, value labels, mode m) {
        estimator_spec spec = line::model(features, labels, m);
        optimizer opt(policies..., gradient_descent{.rate = 0.05});
        if (m == mode::train)
          spec.train_op = opt.minimize(spec.loss, {.global_step = get_global_step(features.of())}),
          spec.optimizers = opt;
        return spec;
      },
      {.config = config});
  const train_spec train([&] { return labelled(line::data().repeat().shard(here.workers(), here.worker()), {"y"}); },
                         {.max_steps = steps});
  const eval_spec eval([] { return line::once(); }, {.start_delay_secs = 0, .throttle_secs = 0});
  train_and_evaluate(e, train, eval, {.here = &here});
}

// Trains in these roles, with the mean of two workers' gradients, then evaluates.
template <class Staleness>
void in_roles(bool has_ps, const Staleness& how) {
  const temp_dir place;
  const std::string dir = place / "run";
  const cluster_spec all = config_of(dir, "chief", 0, has_ps).cluster_spec();
  loop::hub h;
  const auto said = loop::run_tasks(all, h, [&](server& here) {
    work(config_of(here.is_chief() || here.is_ps() ? dir : place / "of a worker", here.def().job_name,
                   here.def().task_index, has_ps),
         here, connected{here}, how);
  });
  CHECK(said.size() == (has_ps ? 4 : 2));
  for (const auto& [task, what] : said) {
    CAPTURE(task);
    CHECK(what == "");
  }
  double w = 0, b = 0;
  for (int s = 0; s < steps; ++s) {
    double dw = 0, db = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const double x = line::given.x[i], e = w * x + b - line::given.y[i];
      dw += e * x / 2, db += e / 2;
    }
    w -= 0.05 * dw, b -= 0.05 * db;
  }
  estimator last([](const named_tensors& f, value y, mode m) { return line::model(f, y, m); }, {.model_dir = dir});
  CHECK(last.get_variable_value("w").template as<float>()[0] == doctest::Approx(w));
  CHECK(last.get_variable_value("b").template as<float>()[0] == doctest::Approx(b));
  CHECK(last.get_variable_value("global_step").template as<std::int64_t>()[0] == steps);
  work(config_of(dir, "evaluator", 0, has_ps), server(server::local_def()));
  const auto seen = read_eval_metrics(join_path(dir, "eval"));
  REQUIRE(seen.contains(steps));
}
}  // namespace

TEST_CASE("chief, worker and parameter servers by their roles, then the evaluator") { in_roles(true, sync_replicas{}); }
TEST_CASE("chief and worker without parameter servers, then the evaluator") { in_roles(false, all_reduce{}); }

TEST_CASE("a worker whose model function does not give its optimizer the server is refused, with the remedy") {
  const temp_dir place;
  const server nobody(server::local_def());
  const std::string what = message_of(status::unimplemented, [&] { work(config_of(place / "run", "worker"), nobody); });
  CHECK(says(what, "give the optimizer gradus::connected{server}"));
}

TEST_CASE("a configuration that says another task than the server is refused, with both") {
  const temp_dir place;
  const cluster_spec all = config_of(place / "run", "chief").cluster_spec();
  loop::hub h;
  const auto said = loop::run_tasks(all, h, [&](server& here) {
    if (here.is_chief()) work(config_of(place / "run", "worker"), here, connected{here}, sync_replicas{});
  });
  CHECK(says(said.at("chief 0"), "is chief 0 of its cluster, and the run_config says worker 0"));
}
