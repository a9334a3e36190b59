// without sanitizers: published numbers; whole/conformance_{norms,matrices} run the same loops under them
#include <gradus/update/rules/adagrad_da.hpp>

#include "../trajectory.hpp"

using namespace gradus;
using trajectory::set;

namespace {
adagrad_da make(const golden::json& p) {
  adagrad_da rule;
  set(rule.rate, p, "learning_rate");
  set(rule.initial_accumulator_value, p, "initial_gradient_squared_accumulator_value");
  set(rule.l1, p, "l1_regularization_strength");
  set(rule.l2, p, "l2_regularization_strength");
  return rule;
}
}  // namespace

TEST_CASE("adagrad_da follows TensorFlow's trajectories, dense and sparse") {
  CHECK(trajectory::replay_all("AdagradDA", make) == 6);
}

TEST_CASE("adagrad_da refuses what TensorFlow refuses") {
  trajectory::refused(adagrad_da{.rate = 0.1, .initial_accumulator_value = 0}, "initial_accumulator_value");
}

TEST_CASE("a NaN in a gradient shows in adagrad_da's variable") {
  updater<sweeps<fast>, adagrad_da> u{adagrad_da{.rate = 0.5, .l1 = 0.1}};
  std::vector<float> w{1, 2};
  u.track("w", w);
  u.apply({{"w", std::vector<float>{std::nanf(""), 1}}});
  CHECK(std::isnan(w[0]));
  CHECK(!std::isnan(w[1]));
}
