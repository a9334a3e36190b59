// without sanitizers: published numbers; whole/conformance_{norms,matrices} run the same loops under them
#include <gradus/update/rules/proximal_adagrad.hpp>

#include "../trajectory.hpp"

using namespace gradus;
using trajectory::set;

namespace {
proximal_adagrad make(const golden::json& p) {
  proximal_adagrad rule;
  set(rule.rate, p, "learning_rate");
  set(rule.initial_accumulator_value, p, "initial_accumulator_value");
  set(rule.l1, p, "l1_regularization_strength");
  set(rule.l2, p, "l2_regularization_strength");
  return rule;
}
}  // namespace

TEST_CASE("proximal_adagrad follows TensorFlow's trajectories, dense and sparse") {
  CHECK(trajectory::replay_all("ProximalAdagrad", make) == 5);
}

TEST_CASE("proximal_adagrad refuses what TensorFlow refuses") {
  trajectory::refused(proximal_adagrad{.rate = 0.1, .initial_accumulator_value = 0}, "initial_accumulator_value");
}
