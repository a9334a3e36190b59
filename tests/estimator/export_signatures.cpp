#include <gradus/estimator/export_signatures.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/estimator/checkpoint_values.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/saved_model.hpp>

#include "linear_model.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace gradus;

namespace {
std::vector<std::string> keys(const std::map<std::string, value>& of) {
  std::vector<std::string> all;
  for (const auto& [key, v] : of) all.push_back(key);
  return all;
}
using names = std::vector<std::string>;
}  // namespace

TEST_CASE("each mode has its tag, its signature and its method") {
  CHECK(detail::export_tag(mode::train) == "train");
  CHECK(detail::export_tag(mode::evaluate) == "eval");
  CHECK(detail::export_tag(mode::predict) == "serve");
  for (const mode m : {mode::train, mode::evaluate, mode::predict}) {
    graph g(m);
    const value x = g.placeholder("x", {batch}), y = g.placeholder("y", {batch});
    const estimator_spec spec{.mode = m,
                              .predictions = {{"twice", x + x}, {"predictions_x", x}},
                              .loss = reduce_mean(x - y),
                              .eval_metric_ops = {{"mean", metrics::mean(x)}, {"metrics/of", metrics::mean(y)}}};
    const auto all = detail::signatures_of(spec, {.features = {{"x", x}}, .labels = {{"y", y}}});
    REQUIRE(all.size() == 1);
    const auto& [name, s] = *all.begin();
    if (m == mode::predict) {
      CHECK((name == "serving_default" && s.method_name == "tensorflow/serving/predict"));
      CHECK((keys(s.inputs) == names{"x"} && keys(s.outputs) == names{"predictions_x", "twice"}));
      continue;
    }
    CHECK(name == (m == mode::train ? "train" : "eval"));
    CHECK(s.method_name == (m == mode::train ? "tensorflow/supervised/training" : "tensorflow/supervised/eval"));
    CHECK(keys(s.inputs) == names{"x", "y"});
    // What begins with the prefix gets no second one, as in TensorFlow.
    CHECK(keys(s.outputs) == names{"loss", "metrics/mean/update_op", "metrics/mean/value", "metrics/of/update_op",
                                   "metrics/of/value", "predictions/twice", "predictions_x"});
    CHECK(s.outputs.at("metrics/mean/value").id == spec.eval_metric_ops.at("mean").result.id);
    CHECK(s.outputs.at("metrics/mean/update_op").id == spec.eval_metric_ops.at("mean").update.id);
  }
  graph g(mode::predict);
  const value x = g.placeholder("x", {batch}), raw = g.placeholder("raw", {batch});
  const auto fed = detail::signatures_of({.mode = mode::predict, .predictions = x},
                                         {.features = {{"x", x}}, .receiver_tensors = {{"bytes", raw}}});
  CHECK(keys(fed.at("serving_default").inputs) == names{"bytes"});
  CHECK(keys(fed.at("serving_default").outputs) == names{"output"});
}

TEST_CASE("a model function's export is fed with the placeholders that its outputs need") {
  const auto made = [](graph& g) {
    const value x = g.placeholder("x", {batch}), y = g.placeholder("y", {batch}), w = g.placeholder("w", {batch});
    g.placeholder("nobody", {batch});
    return model_spec{.loss = reduce_mean((x - y) * w), .predictions = {{"x", identity(x)}}};
  };
  const auto of = [&](mode m) {
    auto g = std::make_unique<graph>(m);
    const model_spec spec = made(*g);
    return detail::export_of_model(std::move(g), spec);
  };
  CHECK(keys(of(mode::predict).signatures.at("serving_default").inputs) == names{"x"});
  CHECK(keys(of(mode::evaluate).signatures.at("eval").inputs) == names{"w", "x", "y"});
  CHECK(keys(of(mode::evaluate).signatures.at("eval").outputs) == names{"loss", "predictions/x"});
  const auto refused = [](mode m) { detail::export_of_model(std::make_unique<graph>(m), {}); };
  CHECK_THROWS_WITH_AS(refused(mode::predict), doctest::Contains("the model names no predictions to export"),
                       invalid_argument);
  CHECK_THROWS_WITH_AS(refused(mode::train), doctest::Contains("the model has no loss to export"), invalid_argument);
}

TEST_CASE("a checkpoint is exported with what the graphs need of it; a graph to train takes all") {
  testing::temp_dir dir, base;
  estimator e(line::model, {.model_dir = dir.path()});
  e.train(line::endless, {.steps = 3});
  for (const mode m : {mode::predict, mode::train}) {
    auto g = std::make_unique<graph>(m);
    const value w = g->variable("w", {});
    const model_spec spec{.loss = w * 1.0, .predictions = {{"w", w * 1.0}}};
    std::vector<detail::model_to_export> all;
    all.push_back(detail::export_of_model(std::move(g), spec));
    const std::string path =
        detail::export_checkpoint(base.path() + "/" + text(static_cast<int>(m)), e.latest_checkpoint(), all, {}, {});
    const auto there = detail::variables_in(path, {});
    CHECK((m == mode::predict ? there == names{"w"} : there.size() > 2));
    const saved_model loaded = load_saved_model(path, {.tags = {std::string(detail::export_tag(m))}});
    const auto got = loaded.predict(m == mode::predict ? "serving_default" : "train", {});
    CHECK(got[m == mode::predict ? "w" : "predictions/w"].as<float>()[0] == e.get_variable_value("w").as<float>()[0]);
  }
  CHECK_THROWS_WITH_AS(detail::export_checkpoint(base.path(), e.latest_checkpoint(), {}, {}, {}),
                       doctest::Contains("No valid modes"), invalid_argument);
}
