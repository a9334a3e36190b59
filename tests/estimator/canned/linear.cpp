// Numbers: facts N, and TensorFlow's own tests (tensorflow/estimator, canned/v1/linear_testing_utils_v1.py).
#include <gradus/estimator/canned/linear.hpp>

#include "canned_run.hpp"

#include <gradus/estimator/regression_head.hpp>
#include <gradus/input/csv.hpp>
#include <gradus/input/padded_batch.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include <cmath>
#include <fstream>

using namespace gradus;
using namespace canned_test;

namespace {
const numeric_column x("x");
linear_regressor line(const std::string& dir, const std::string& weight_column = {}) {
  return linear_regressor({.feature_columns = {x}, .weight_column = weight_column, .model_dir = dir});
}
}  // namespace

TEST_CASE("N1 a linear regressor on TensorFlow's checkpoint") {
  testing::temp_dir dir;
  write_checkpoint(dir.path(), small_line(11, 2));
  auto e = line(dir.path());
  CHECK(predicted(e, {{1}, {0}, {}}, "predictions") == std::vector<double>{13});
  const auto found = e.evaluate(examples{{1}, {10}, {}});
  CHECK(found["loss"] == 9);
  CHECK(found["average_loss"] == 9);
  CHECK(found["label/mean"] == 10);
  CHECK(found["prediction/mean"] == 13);
  CHECK(found.global_step() == 100);
}

TEST_CASE("N2 two examples, and weights") {
  testing::temp_dir dir;
  write_checkpoint(dir.path(), small_line(11, 2));
  auto e = line(dir.path());
  const auto two = e.evaluate(examples{{1, 1}, {10, 10}, {}});
  CHECK(two["loss"] == 18);
  CHECK(two["average_loss"] == 9);
  auto weighted = line(dir.path(), "w");
  const auto found = weighted.evaluate(examples{{1, 1}, {10, 10}, {1, 2}});
  CHECK(found["loss"] == 27);
  CHECK(found["average_loss"] == 9);
  // The weights are the feature of the column as well: 1 (13 - 10)^2 + 2 (24 - 10)^2.
  auto by_itself = line(dir.path(), "x");
  CHECK(by_itself.evaluate(examples{{1, 2}, {10, 10}, {}})["loss"] == 401);
}

TEST_CASE("N4 a linear classifier of two classes") {
  testing::temp_dir dir;
  write_checkpoint(dir.path(), small_line(-11, -30));
  linear_classifier e({.feature_columns = {x}, .model_dir = dir.path()});
  CHECK(predicted(e, {{1}, {0}, {}}, "logits") == std::vector<double>{-41});
  const auto found = e.evaluate(examples{{1}, {1}, {}});
  CHECK(found["loss"] == doctest::Approx(41));
  CHECK(found["accuracy"] == 0);
  CHECK(found["accuracy_baseline"] == 1);
  CHECK(predicted(e, {{1}, {0}, {}}, "class_ids") == std::vector<double>{0});
}

TEST_CASE("linear: one training step, by an object, by name, by default") {
  testing::temp_dir start;
  write_checkpoint(start.path(), small_line(11, 2));
  const examples one{{1}, {10}, {}};  // the loss is (13 - 10)^2, its gradient 6 for weight and bias
  const auto step = [&](std::optional<optimizer_choice> opt) {
    testing::temp_dir dir;
    linear_regressor e(
        {.feature_columns = {x}, .optimizer = opt, .model_dir = dir.path(), .warm_start_from = start.path()});
    e.train(one, {.steps = 1});
    CHECK(variable(e, "global_step") == std::vector<double>{1});
    return std::pair(variable(e, "linear/linear_model/x/weights")[0],
                     variable(e, "linear/linear_model/bias_weights")[0]);
  };
  const auto sgd = step(gradient_descent{.rate = 0.1});
  close(sgd.first, 11 - 0.6), close(sgd.second, 2 - 0.6);
  const auto named = step("SGD");
  close(named.first, 11 - 0.2 * 6), close(named.second, 2 - 0.2 * 6);
  // FTRL from accumulator 0.1: z = g - (sqrt(n') - sqrt(n)) / rate * w, w' = -z rate / sqrt(n').
  const auto ftrl_of = [](double w, double rate) {
    const double n = 0.1, after = n + 36, z = 6 - (std::sqrt(after) - std::sqrt(n)) / rate * w;
    return -z * rate / std::sqrt(after);
  };
  const auto by_name = step("Ftrl"), by_default = step(std::nullopt);
  close(by_name.first, ftrl_of(11, 0.2)), close(by_name.second, ftrl_of(2, 0.2));
  close(by_default.first, ftrl_of(11, 0.2));  // min(0.2, 1 / sqrt(1))
  CHECK(detail::linear_rate_of(0.2, 100) == doctest::Approx(0.1));
  CHECK(detail::linear_rate_of(0.005, 100) == doctest::Approx(0.005));
}

TEST_CASE("linear: texts from a csv file, labels by a vocabulary, classes by name") {
  testing::temp_dir dir;
  const std::string path = dir.path() + "/people.csv";
  {
    std::ofstream out(path);
    for (int i = 0; i < 60; ++i) out << (i % 3 == 0 ? "bern,no\n" : i % 3 == 1 ? "zug,yes\n" : "basel,perhaps\n");
  }
  const auto people = [&] {
    return labelled(csv(path, {{"town", uint8, {any_extent}}, {"likes", uint8, {any_extent}}}).padded_batch(6),
                    {"likes"});
  };
  const auto town = categorical_column_with_vocabulary_list("town", {"zug", "bern", "basel"});
  linear_classifier e({.feature_columns = {town},
                       .n_classes = 3,
                       .label_vocabulary = {"no", "yes", "perhaps"},
                       .input = {.parallel = 2},
                       .model_dir = dir.path() + "/model"});
  e.train(people);
  const auto found = e.evaluate(people);
  CHECK(found["accuracy"] == 1);
  CHECK(found.global_step() == 10);
  std::vector<std::string> said;
  for (const prediction& p : e.predict(people)) said.push_back(e.class_of(p));
  REQUIRE(said.size() == 60);
  CHECK((said[0] == "no" && said[1] == "yes" && said[2] == "perhaps"));
  CHECK(e.class_names()[2] == "perhaps");
  // Two rows more in the vocabulary than there are; a word that the vocabulary does not have.
  linear_classifier other(
      {.feature_columns = {town}, .label_vocabulary = {"no", "yes"}, .model_dir = dir.path() + "/b"});
  refuses(
      "the label \"likes\" of example 2 of the batch is \"perhaps\", which the label_vocabulary of 2 texts does not "
      "have (it begins with \"no\"); correct the data, or add the text to label_vocabulary",
      [&] { other.train(people, {.steps = 1}); });
  linear_classifier numbers({.feature_columns = {town}, .n_classes = 3, .model_dir = dir.path() + "/c"});
  refuses("the label \"likes\" is a text, uint8", [&] { numbers.train(people, {.steps = 1}); });
}

TEST_CASE("linear: several ids of an example, combined") {
  testing::temp_dir dir;
  write_checkpoint(dir.path(), {{"linear/linear_model/words/weights", {4, 1}, {1, 2, 3, 4}},
                                {"linear/linear_model/bias_weights", {1}, {10}}});
  const std::vector<std::int64_t> words{0, 3, -1, 2, -1, -1, -1, -1, -1};
  const auto data = [&] { return estimator_input(from_spans("words", words, extents{3}).batch(3)); };
  const auto of = [&](combiner c) {
    linear_regressor e({.feature_columns = {categorical_column_with_identity("words", 4)},
                        .sparse_combiner = c,
                        .ids_of = {{"words", 3}},
                        .model_dir = dir.path()});
    std::vector<double> all;
    for (const prediction& p : e.predict(data)) all.push_back(read(p["predictions"])[0]);
    return all;
  };
  CHECK(of(combiner::sum) == std::vector<double>{15, 13, 10});
  CHECK(of(combiner::mean) == std::vector<double>{12.5, 13, 10});
  close(of(combiner::sqrtn), {10 + 5 / std::sqrt(2.0), 13, 10});
}

TEST_CASE("linear_estimator: a head of one's own") {
  testing::temp_dir dir;
  write_checkpoint(dir.path(), small_line(11, 2));
  linear_estimator e({.feature_columns = {x},
                      .head = regression_head({.inverse_link_fn = [](value v) { return v * 2.0; }}),
                      .model_dir = dir.path()});
  CHECK(predicted(e, {{1}, {0}, {}}, "predictions") == std::vector<double>{26});
  CHECK(predicted(e, {{1}, {0}, {}}, "logits") == std::vector<double>{13});
  CHECK(e.evaluate(examples{{1}, {10}, {}})["loss"] == 9);
  refuses("expected a head, found none", [] { linear_estimator({.feature_columns = {x}}); });
}

TEST_CASE("linear: what is refused") {
  refuses("a linear model: expected feature_columns, found none", [] { linear_regressor({}); });
  refuses("n_classes must be 2 or more, found 1", [] { linear_classifier({.feature_columns = {x}, .n_classes = 1}); });
  refuses("Length of label_vocabulary must be n_classes=3. Given: 2", [] {
    linear_classifier({.feature_columns = {x}, .n_classes = 3, .label_vocabulary = {"a", "b"}});
  });
  refuses("Unsupported optimizer name: \"sgd\"",
          [] { linear_regressor({.feature_columns = {x}, .optimizer = "sgd"}); });
  refuses("Invalid label_dimension 0", [] { linear_regressor({.feature_columns = {x}, .label_dimension = 0}); });
  refuses("Invalid loss_reduction",
          [] { linear_regressor({.feature_columns = {x}, .loss_reduction = losses::reduction::none}); });
}
