// Numbers: facts N, and TensorFlow's own tests (tensorflow/estimator, canned/dnn_linear_combined_test.py).
#include <gradus/estimator/canned/dnn_linear_combined.hpp>

#include "canned_run.hpp"

#include <gradus/estimator/regression_head.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include <cmath>

using namespace gradus;
using namespace canned_test;

namespace {
const numeric_column x("x");
// Trained for so many steps from the small network and a line 5 x + 7; then its variables.
struct trained {
  std::vector<double> step, line, bias, kernel, logits_bias;
};
trained train_from(const std::string& start, const optimizer_choice& wide, const optimizer_choice& deep, int steps) {
  testing::temp_dir dir;
  dnn_linear_combined_regressor e({.linear_feature_columns = {x},
                                   .linear_optimizer = wide,
                                   .dnn_feature_columns = {x},
                                   .dnn_optimizer = deep,
                                   .dnn_hidden_units = {2, 2},
                                   .model_dir = dir.path(),
                                   .warm_start_from = start});
  const examples one{{10}, {50}, {}};
  for (int i = 0; i < steps; ++i) e.train(one, {.steps = 1});
  return {variable(e, "global_step"), variable(e, "linear/linear_model/x/weights"),
          variable(e, "linear/linear_model/bias_weights"), variable(e, "dnn/hiddenlayer_0/kernel"),
          variable(e, "dnn/logits/bias")};
}
}  // namespace

TEST_CASE("N5 both parts are added up, each has its optimizer, a run is one step") {
  testing::temp_dir start;
  write_checkpoint(start.path(), small_network() + small_line(5, 7));
  dnn_linear_combined_regressor e({.linear_feature_columns = {x},
                                   .dnn_feature_columns = {x},
                                   .dnn_hidden_units = {2, 2},
                                   .model_dir = start.path()});
  const auto sum = predicted(e, {{10}, {0}, {}}, "predictions");
  CHECK(sum[0] == doctest::Approx(-2.08 + 57));
  // The loss is (54.92 - 50)^2: its gradient by the logits 9.84.
  const gradient_descent still{.rate = 0}, moving{.rate = 0.001};
  const auto wide = train_from(start.path(), moving, still, 1), deep = train_from(start.path(), still, moving, 1);
  const auto was = small_network();
  CHECK((wide.line[0] == doctest::Approx(5 - 0.001 * 98.4) && wide.bias[0] == doctest::Approx(7 - 0.001 * 9.84)));
  CHECK((wide.kernel == std::vector<double>{was[0].values[0], was[0].values[1]} &&
         wide.logits_bias[0] == was[5].values[0]));
  CHECK((deep.line[0] == 5 && deep.bias[0] == 7));
  CHECK(deep.logits_bias[0] == doctest::Approx(0.3 - 0.001 * 9.84));
  CHECK(deep.kernel[0] == doctest::Approx(0.6 - 0.001 * 10 * -9.84));
  CHECK((wide.step[0] == 1 && deep.step[0] == 1));
  CHECK(train_from(start.path(), moving, moving, 3).step[0] == 3);
}

TEST_CASE("dnn_linear_combined: rates by name; two optimizers of one rule") {
  testing::temp_dir start;
  write_checkpoint(start.path(), small_network() + small_line(5, 7));
  const auto named = train_from(start.path(), "SGD", "SGD", 1);
  close(named.bias[0], 7 - 0.005 * 9.84), close(named.logits_bias[0], 0.3 - 0.001 * 9.84);
  // Adam twice: each has its own moments, so both move as one alone does.
  const auto twice = train_from(start.path(), adam{.rate = 0.01}, adam{.rate = 0.02}, 3),
             wide = train_from(start.path(), adam{.rate = 0.01}, gradient_descent{.rate = 0}, 1),
             deep = train_from(start.path(), gradient_descent{.rate = 0}, adam{.rate = 0.02}, 1);
  close(wide.bias[0], 7 - 0.01), close(deep.logits_bias[0], 0.3 - 0.02);  // a first step of Adam has the rate's length
  CHECK(twice.step[0] == 3);
  CHECK((twice.bias[0] < 7 - 0.02 && twice.logits_bias[0] < 0.3 - 0.04));
}

TEST_CASE("dnn_linear_combined: one part alone is a linear model or a network") {
  testing::temp_dir network, line;
  write_checkpoint(network.path(), small_network());
  write_checkpoint(line.path(), small_line(11, 2));
  dnn_linear_combined_regressor deep(
      {.dnn_feature_columns = {x}, .dnn_hidden_units = {2, 2}, .model_dir = network.path()});
  close(predicted(deep, {{10}, {0}, {}}, "predictions"), {-2.08});
  dnn_linear_combined_regressor wide({.linear_feature_columns = {x}, .model_dir = line.path()});
  CHECK(predicted(wide, {{1}, {0}, {}}, "predictions") == std::vector<double>{13});
}

TEST_CASE("dnn_linear_combined: a classifier, an estimator") {
  testing::temp_dir dir;
  write_checkpoint(dir.path(), small_network() + small_line(5, 7));
  dnn_linear_combined_classifier c({.linear_feature_columns = {x},
                                    .dnn_feature_columns = {x},
                                    .dnn_hidden_units = {2, 2},
                                    .label_vocabulary = {"no", "yes"},
                                    .model_dir = dir.path()});
  for (const prediction& p : c.predict(examples{{10}, {0}, {}})) {
    close(read(p["logits"]), {54.92});
    CHECK(c.class_of(p) == "yes");
  }
  dnn_linear_combined_estimator e({.linear_feature_columns = {x},
                                   .dnn_feature_columns = {x},
                                   .dnn_hidden_units = {2, 2},
                                   .head = regression_head({.inverse_link_fn = [](value v) { return neg(v); }}),
                                   .model_dir = dir.path()});
  close(predicted(e, {{10}, {0}, {}}, "predictions"), {-54.92});
}

TEST_CASE("dnn_linear_combined: what is refused") {
  refuses("Either linear_feature_columns or dnn_feature_columns must be defined.",
          [] { dnn_linear_combined_classifier({}); });
  refuses("dnn_hidden_units must be defined when dnn_feature_columns is specified.",
          [] { dnn_linear_combined_regressor({.dnn_feature_columns = {x}}); });
  refuses("n_classes must be 2 or more, found 1",
          [] { dnn_linear_combined_classifier({.linear_feature_columns = {x}, .n_classes = 1}); });
  refuses("expected a head, found none", [] { dnn_linear_combined_estimator({.linear_feature_columns = {x}}); });
}
