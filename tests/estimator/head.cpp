#include <gradus/estimator/head.hpp>

#include <gradus/estimator/binary_class_head.hpp>
#include <gradus/estimator/regression_head.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/session/global_step.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include "head_run.hpp"

using namespace gradus;
using namespace head_test;

namespace {
// A head of a user's: a loss, a prediction, nothing else.
struct plain_head {
  int logits_dimension() const { return 2; }
  estimator_spec create_estimator_spec(const head_arguments& a) const {
    return {.mode = a.mode, .predictions = a.logits, .loss = reduce_sum(a.logits), .train_op = reduce_sum(a.logits)};
  }
};
}  // namespace

TEST_CASE("any_head: a head of one's own, and what it need not say") {
  const any_head own = plain_head{};
  CHECK(own.logits_dimension() == 2);
  CHECK((own.weight_column().empty() && own.label_vocabulary().empty() && own.label_classes() == 0));
  CHECK(run(own, mode::train, {{1, 2}, {1, 2}}).loss == 3);
  const any_head binary = binary_class_head({.weight_column = "w", .label_vocabulary = {"a", "b"}});
  CHECK(binary.weight_column() == "w");
  CHECK((binary.label_vocabulary().size() == 2 && binary.label_classes() == 2));
}

TEST_CASE("head: an optimizer makes a step and counts it; what is in update_ops is done as well") {
  graph g;
  const value x = g.placeholder("x", {batch, 1}), w = g.variable("w", {1, 1}, {.init = constant_initializer(2)});
  const value normed = batch_norm(x, {.momentum = 0.5, .center = false, .scale = false});
  g.add_to(collection::losses, normed);
  const auto spec = regression_head().create_estimator_spec(
      {.logits = matmul(x, w), .labels = g.placeholder("y", {batch, 1}), .optimizer = gradient_descent{.rate = 0.1}});
  session s{g, spec.optimizers};
  s.initialize(1);
  const std::vector<float> in{3}, out{5};
  s.run(spec.train_op, {{"x", in}, {"y", out}});
  // The loss is (3 w - 5)^2: its gradient 6 (6 - 5) = 6.
  CHECK(s.variable("w").as<float>()[0] == doctest::Approx(2 - 0.1 * 6));
  CHECK(s.variable("global_step").as<std::int64_t>()[0] == 1);
  CHECK(s.variable("batch_normalization/moving_mean").as<float>()[0] == doctest::Approx(1.5));
}

TEST_CASE("head: what mode train needs") {
  graph g;
  const head_arguments a{.logits = g.placeholder("x", {batch, 1}), .labels = g.placeholder("y", {batch, 1})};
  refuses("train_op_fn and optimizer cannot both be None", [&] { regression_head().create_estimator_spec(a); });
  head_arguments both = a;
  both.train_op_fn = [](value loss) { return loss; }, both.optimizer = "SGD";
  refuses("train_op_fn and optimizer cannot both be set.", [&] { regression_head().create_estimator_spec(both); });
  head_arguments without = a;
  without.logits = {};
  refuses("expected logits, got none", [&] { regression_head().create_estimator_spec(without); });
}
