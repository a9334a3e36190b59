// Numbers: TensorFlow's own tests (tensorflow/estimator, canned/v1/baseline_test_v1.py) and first principles.
#include <gradus/estimator/canned/baseline.hpp>

#include "canned_run.hpp"

#include <gradus/estimator/regression_head.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include <cmath>

using namespace gradus;
using namespace canned_test;

TEST_CASE("baseline_regressor: what is stored is predicted, whatever the features are") {
  testing::temp_dir dir;
  write_checkpoint(dir.path(), {{"baseline/bias", {1}, {13}}});
  baseline_regressor e({.model_dir = dir.path()});
  CHECK(predicted(e, {{1, 5}, {0, 0}, {}}, "predictions") == std::vector<double>{13, 13});
  const auto found = e.evaluate(examples{{1}, {10}, {}});
  CHECK((found["loss"] == 9 && found["average_loss"] == 9 && found["label/mean"] == 10));
  baseline_regressor weighted({.weight_column = "w", .model_dir = dir.path()});
  CHECK(weighted.evaluate(examples{{1, 1}, {10, 10}, {1, 2}})["loss"] == 27);
}

TEST_CASE("baseline: a step of the default, and where it comes to") {
  testing::temp_dir dir;
  baseline_regressor e({.model_dir = dir.path()});
  e.train(examples{{1}, {10}, {}}, {.steps = 1});
  // FTRL of rate 0.3 from 0: z = -20, w = 20 * 0.3 / sqrt(0.1 + 400).
  close(variable(e, "baseline/bias"), {6 / std::sqrt(400.1)});
  testing::temp_dir other;
  baseline_classifier c({.optimizer = gradient_descent{.rate = 0.1}, .model_dir = other.path()});
  const examples four{{0, 0, 0, 0}, {1, 1, 1, 0}, {}};
  const auto many = [&] {
    return labelled(from_spans("x", four.x, extents{}, "y", four.y).batch(4).repeat(300), {"y"});
  };
  c.train(many);
  close(predicted(c, four, "logistic"), {0.75, 0.75, 0.75, 0.75}, 1e-3);
  close(c.evaluate(four)["accuracy"], 0.75);
}

TEST_CASE("baseline: more classes; a head of one's own; text features are passed over") {
  testing::temp_dir dir;
  write_checkpoint(dir.path(), {{"baseline/bias", {3}, {0, 2, 1}}});
  baseline_classifier c({.n_classes = 3, .model_dir = dir.path()});
  const std::vector<std::uint8_t> words{'a', 'b', 'c', 0};
  const auto data = [&] { return estimator_input(from_spans("word", words, extents{2}).batch(2)); };
  int n = 0;
  for (const prediction& p : c.predict(data)) {
    close(read(p["logits"]), {0, 2, 1});
    CHECK(c.class_of(p) == "1");
    ++n;
  }
  CHECK(n == 2);
  testing::temp_dir one;
  write_checkpoint(one.path(), {{"baseline/bias", {1}, {13}}});
  baseline_estimator e(
      {.head = regression_head({.inverse_link_fn = [](value v) { return v + 1.0; }}), .model_dir = one.path()});
  CHECK(predicted(e, {{1}, {0}, {}}, "predictions") == std::vector<double>{14});
}

TEST_CASE("baseline: what is refused") {
  refuses("n_classes must be 2 or more, found 1", [] { baseline_classifier({.n_classes = 1}); });
  refuses("Unsupported optimizer name: \"\"", [] { baseline_regressor({.optimizer = ""}); });
  refuses("expected a head, found none", [] { baseline_estimator({}); });
}
