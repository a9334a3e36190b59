// Numbers: facts N, and TensorFlow's own tests (tensorflow/estimator, canned/v1/dnn_testing_utils_v1.py).
#include <gradus/estimator/canned/dnn.hpp>

#include "canned_run.hpp"

#include <gradus/estimator/regression_head.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include <cmath>

using namespace gradus;
using namespace canned_test;

namespace {
const numeric_column x("x");
}

TEST_CASE("N3 a network on TensorFlow's checkpoint") {
  testing::temp_dir dir;
  write_checkpoint(dir.path(), small_network());
  dnn_regressor e({.feature_columns = {x}, .hidden_units = {2, 2}, .model_dir = dir.path()});
  const auto logits = predicted(e, {{10}, {0}, {}}, "predictions");
  CHECK(logits[0] == doctest::Approx(-2.08));
  const auto found = e.evaluate(examples{{10}, {1}, {}});
  CHECK(found["loss"] == doctest::Approx(9.4864));
  CHECK(found["average_loss"] == doctest::Approx(9.4864));
  dnn_classifier c({.feature_columns = {x}, .hidden_units = {2, 2}, .model_dir = dir.path()});
  close(predicted(c, {{10}, {0}, {}}, "logits"), {-2.08});
  close(predicted(c, {{10}, {0}, {}}, "logistic"), {1 / (1 + std::exp(2.08))});
  close(c.evaluate(examples{{10}, {1}, {}})["loss"], std::log(1 + std::exp(2.08)));
}

TEST_CASE("a column whose table would not be loaded is refused, with what loads it") {
  const auto word = categorical_column_with_identity("word", 5);
  const embedding_column loaded(word, 3, {.ckpt_to_load_from = "runs/words", .tensor_name_in_ckpt = "emb"});
  refuses(
      "an estimator does not read ckpt_to_load_from (\"runs/words\") of the column \"word_embedding\"; give "
      "warm_start_from",
      [&] { dnn_regressor({.feature_columns = {loaded}, .hidden_units = {2}}); });
}

TEST_CASE("dnn: more classes, more numbers of a feature") {
  testing::temp_dir dir;
  auto network = small_network();
  network[0] = {"dnn/hiddenlayer_0/kernel", {2, 2}, {.6f, .5f, -.6f, -.5f}};
  network[4] = {"dnn/logits/kernel", {2, 3}, {-1, 1, .5f, -1, 1, .5f}};
  network[5] = {"dnn/logits/bias", {3}, {.3f, -.3f, 0}};
  write_checkpoint(dir.path(), network);
  dnn_classifier e({.feature_columns = {numeric_column("age"), numeric_column("height")},
                    .hidden_units = {2, 2},
                    .n_classes = 3,
                    .model_dir = dir.path()});
  const std::vector<float> ages{10}, heights{8};
  const auto data = [&] { return estimator_input(from_spans("height", heights, "age", ages).batch(1)); };
  for (const prediction& p : e.predict(data)) {
    close(read(p["logits"]), {-0.48, 0.48, 0.39}, 1e-5);
    CHECK(e.class_of(p) == "1");
  }
  testing::temp_dir other;
  auto three = small_network();
  three[4] = {"dnn/logits/kernel", {2, 3}, {-1, 1, .5f, -1, 1, .5f}};
  three[5] = {"dnn/logits/bias", {3}, {.3f, -.3f, 0}};
  write_checkpoint(other.path(), three);
  dnn_regressor r({.feature_columns = {x}, .hidden_units = {2, 2}, .label_dimension = 3, .model_dir = other.path()});
  close(predicted(r, {{10}, {0}, {}}, "predictions"), {-2.08, 2.08, 1.19}, 1e-5);
}

TEST_CASE("dnn: one training step, by the chain rule; the default is Adagrad of rate 0.05") {
  testing::temp_dir start;
  write_checkpoint(start.path(), small_network());
  const examples one{{10}, {1}, {}};
  const auto step = [&](std::optional<optimizer_choice> opt) {
    testing::temp_dir dir;
    dnn_regressor_options o{
        .feature_columns = {x}, .hidden_units = {2, 2}, .model_dir = dir.path(), .warm_start_from = start.path()};
    if (opt) o.optimizer = *opt;
    dnn_regressor e(o);
    e.train(one, {.steps = 1});
    CHECK(variable(e, "global_step")[0] == 1);
    std::vector<std::vector<double>> all;
    for (const stored& v : small_network()) all.push_back(variable(e, v.name));
    return all;
  };
  // d = 2 (-2.08 - 1); the second unit of the second layer is off.
  const double d = -6.16, first[] = {6.1, 4.9};
  const std::vector<std::vector<double>> gradients{
      {10 * 6.16, 10 * -4.928}, {6.16, -4.928}, {first[0] * -d, 0, first[1] * -d, 0}, {-d, 0}, {d * 2.38, 0}, {d}};
  const auto moved = step(gradient_descent{.rate = 0.01});
  const auto adagrads = step(std::nullopt);
  const auto before = small_network();
  for (std::size_t v = 0; v < before.size(); ++v) {
    CAPTURE(before[v].name);
    for (std::size_t i = 0; i < before[v].values.size(); ++i) {
      const double g = gradients[v][i], was = before[v].values[i];
      close(moved[v][i], was - 0.01 * g, 1e-5);
      close(adagrads[v][i], was - 0.05 * g / std::sqrt(0.1 + g * g), 1e-5);
    }
  }
}

TEST_CASE("dnn: dropout and batch normalization; a checkpoint is taken up, whatever they are in prediction") {
  testing::temp_dir dir;
  const examples data{{1, 2, 3, 4}, {0, 0, 1, 1}, {}};
  dnn_classifier_options o{
      .feature_columns = {x}, .hidden_units = {8}, .dropout = 0.2, .batch_norm = true, .model_dir = dir.path()};
  o.estimator.log = [](const std::string&) {};
  dnn_classifier e(o);
  e.train(data, {.steps = 1});
  e.train(data, {.steps = 1});
  CHECK(variable(e, "global_step")[0] == 2);
  CHECK(variable(e, "dnn/hiddenlayer_0/batchnorm_0/moving_variance").size() == 8);
  const auto first = predicted(e, data, "logits"), again = predicted(e, data, "logits");
  CHECK(first == again);
  CHECK(first.size() == 4);
}

TEST_CASE("dnn_estimator: a head of one's own; no hidden units") {
  testing::temp_dir dir;
  write_checkpoint(dir.path(), {{"dnn/logits/kernel", {1, 1}, {3}}, {"dnn/logits/bias", {1}, {.5f}}});
  dnn_estimator e({.feature_columns = {x},
                   .head = regression_head({.loss_fn = [](value y, value p) { return abs(y - p); }}),
                   .model_dir = dir.path()});
  CHECK(predicted(e, {{2}, {0}, {}}, "predictions") == std::vector<double>{6.5});
  CHECK(e.evaluate(examples{{2}, {10}, {}})["loss"] == 3.5);
}

TEST_CASE("dnn: what is refused") {
  refuses("a dnn model: expected feature_columns, found none", [] { dnn_regressor({.hidden_units = {1}}); });
  refuses("hidden_units must be 1 or more each, found -2", [] {
    dnn_regressor({.feature_columns = {x}, .hidden_units = {1, -2}});
  });
  refuses("dropout must be in [0, 1), found 1.5",
          [] { dnn_regressor({.feature_columns = {x}, .hidden_units = {1}, .dropout = 1.5}); });
  refuses("n_classes must be 2 or more, found 0", [] { dnn_classifier({.feature_columns = {x}, .n_classes = 0}); });
  refuses("two columns \"x\"", [] { dnn_classifier({.feature_columns = {x, x}, .hidden_units = {1}}); });
  refuses("Unsupported optimizer name: \"Momentum\"",
          [] { dnn_classifier({.feature_columns = {x}, .optimizer = "Momentum"}); });
}
