#include <gradus/estimator/compiled_train_and_evaluate.hpp>

#include <gradus/estimator/estimator.hpp>
#include <gradus/gradus.hpp>
#include <gradus/ops/metric.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/run_environment.hpp>
#include <gradus/train/saved_model.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "../train/run_files.hpp"

using namespace gradus;

namespace {
inline constexpr auto line = [](graph& g) {
  const value x = g.placeholder("x", {batch, 1}), y = g.placeholder("y", {batch, 1});
  const value found = dense(x, {.units = 1, .name = "out"});
  return model_spec{.loss = reduce_mean(square(found - y)),
                    .metrics = {{"mean", metrics::mean(found)}},
                    .predictions = {{"y", found}}};
};
const std::vector<float> x{1, 2, 3, 4, 5}, y{3, 5, 7, 9, 11};
auto data() { return from_spans("x", x, extents{1}, "y", y, extents{1}).batch(2); }
auto endless() { return from_spans("x", x, extents{1}, "y", y, extents{1}).repeat().batch(2); }

run_config in(const std::string& dir) { return {.model_dir = dir, .tf_random_seed = 3, .save_checkpoints_steps = 10}; }
auto make(run_config c) { return make_estimator<line>(adam{.rate = 0.1}, std::move(c), silent{}); }
// What each evaluation has seen, by the listener.
struct seen {
  std::vector<std::int64_t> steps;
  std::vector<double> losses;
  continuous_eval_listener listener() {
    return {.after_eval = [this](const eval_outcome& o) {
      if (o.status != eval_outcome::evaluated) return true;
      steps.push_back(o.metrics.global_step()), losses.push_back(o.metrics["loss"]);
      return true;
    }};
  }
};
// The loss at a step, by a run that ends there.
double loss_at(std::int64_t step) {
  testing::temp_dir dir;
  auto e = make(in(dir.path()));
  e.train(endless, {.max_steps = step});
  return e.evaluate(data)["loss"];
}
std::size_t exports_in(const std::string& dir) {
  if (!std::filesystem::is_directory(dir)) return 0;
  std::size_t n = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) n += entry.is_directory() ? 1 : 0;
  return n;
}
}  // namespace

TEST_CASE("alone: each save is evaluated by another trainer, so that the training keeps its bits") {
  testing::temp_dir dir, plain;
  seen all;
  auto e = make(in(dir.path()));
  const auto last =
      train_and_evaluate(e, train_spec(endless, {.max_steps = 35}),
                         eval_spec([] { return labelled(data(), {"y"}); },
                                   {.steps = {},
                                    .exporters = {best_exporter("best", {.serving = own_placeholders{}}),
                                                  final_exporter("last", {.serving = own_placeholders{}})},
                                    .throttle_secs = 0}),
                         {.listener = all.listener()});
  CHECK(all.steps == std::vector<std::int64_t>{10, 20, 30, 35});
  for (std::size_t i = 0; i < all.steps.size(); ++i) CHECK(all.losses[i] == loss_at(all.steps[i]));
  CHECK(last.metrics.global_step() == 35);
  CHECK(last.metrics["loss"] == all.losses.back());
  auto undisturbed = make(in(plain.path()));
  undisturbed.train(endless, {.max_steps = 35});
  CHECK(run_files::difference(run_files::newest_checkpoint(posix{}, dir.path()),
                              run_files::newest_checkpoint(posix{}, plain.path())) == "");
  REQUIRE(last.export_results.size() == 2);
  CHECK(exports_in(dir.path() + "/export/last") == 1);
  CHECK(exports_in(dir.path() + "/export/best") >= 1);
  CHECK(std::filesystem::exists(last.export_results[1] + "/assets.extra/gradus_source"));
  const saved_model loaded = load_saved_model(last.export_results[1]);
  const auto got = loaded.predict("serving_default", {{"x", const_tensor_view(std::span(x.data(), 1), {1, 1})}});
  auto predicted = e.predict(data);
  CHECK(got["y"].as<float>()[0] == (*predicted.begin())["y"].as<float>()[0]);
}

TEST_CASE("an evaluator evaluates what a chief has saved, and ends behind the last step") {
  testing::temp_dir dir;
  auto chief = make(in(dir.path()));
  chief.train(endless, {.max_steps = 20});
  const run_config c = run_config::from_tf_config(
      R"({"cluster": {"chief": ["localhost:1"]}, "task": {"type": "evaluator", "index": 0}})", in(dir.path()));
  auto e = make(c);
  seen all;
  train_and_evaluate(e, train_spec(endless, {.max_steps = 20}),
                     eval_spec(data, {.steps = {}, .start_delay_secs = 0, .throttle_secs = 0}),
                     {.listener = all.listener()});
  CHECK(all.steps == std::vector<std::int64_t>{20});
  CHECK(all.losses == std::vector<double>{chief.evaluate(data)["loss"]});
}

TEST_CASE("a training that is over when it begins is evaluated and exported") {
  testing::temp_dir dir;
  make(in(dir.path())).train(endless, {.max_steps = 20});  // and was killed before its evaluation
  auto e = make(in(dir.path()));
  const auto last = train_and_evaluate(
      e, train_spec(endless, {.max_steps = 20}),
      eval_spec(data, {.steps = {}, .exporters = final_exporter("last", {.serving = own_placeholders{}})}));
  CHECK(last.metrics.global_step() == 20);
  CHECK(last.metrics["loss"] == loss_at(20));
  CHECK(exports_in(dir.path() + "/export/last") == 1);
}

TEST_CASE("a checkpoint by its path: the loss of its step, whatever has been trained since") {
  testing::temp_dir dir;
  auto e = make(in(dir.path()));
  e.train(endless, {.max_steps = 20});
  const auto early = e.evaluate(data, {.checkpoint_path = dir.path() + "/model-10.ckpt"});
  CHECK(early.global_step() == 10);
  CHECK(early["loss"] == loss_at(10));
  CHECK(e.evaluate(data).global_step() == 20);
  e.train(endless, {.max_steps = 30});
  CHECK(e.evaluate(data)["loss"] == loss_at(30));
  CHECK(e.evaluate(data, {.checkpoint_path = dir.path() + "/model-20.ckpt"})["loss"] == loss_at(20));
  CHECK_THROWS_AS(e.evaluate(data, {.checkpoint_path = dir.path() + "/model-7.ckpt"}), not_found);
  // A trainer that has trained keeps what it holds.
  auto batches = data();
  CHECK_THROWS_WITH_AS(e.trainer().evaluate(batches, {.checkpoint_path = dir.path() + "/model-20.ckpt"}),
                       doctest::Contains("this trainer holds what it has trained until step 30; evaluate"),
                       failed_precondition);
}

TEST_CASE("what does not go with a compiled model is refused") {
  testing::temp_dir dir;
  auto e = make(in(dir.path()));
  struct looks {
    void end(hooked_session&) {}
  };
  const train_spec training(endless, {.max_steps = 10});
  CHECK_THROWS_WITH_AS(train_and_evaluate(e, training, eval_spec(data, {.hooks = {looks{}}})),
                       doctest::Contains("an evaluation of a compiled model calls none"), unimplemented);
  const auto raw = raw_serving_input(data().element_spec());
  testing::temp_dir other;
  auto exported = make(in(other.path()));
  CHECK_THROWS_WITH_AS(
      train_and_evaluate(exported, training, eval_spec(data, {.exporters = final_exporter("last", {.serving = raw})})),
      doctest::Contains("give {.serving = gradus::own_placeholders{}}"), invalid_argument);
  graph g;
  CHECK_THROWS_WITH_AS(own_placeholders{}(g), doctest::Contains("take raw_serving_input"), invalid_argument);
}
