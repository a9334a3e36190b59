// without sanitizers: published numbers; whole/conformance_{norms,matrices} run the same loops under them
#include <gradus/update/rules/adamax.hpp>

#include "../trajectory.hpp"

using namespace gradus;
using trajectory::set;

namespace {
adamax make(const golden::json& p) {
  adamax rule;
  set(rule.rate, p, "learning_rate");
  set(rule.beta1, p, "beta1");
  set(rule.beta2, p, "beta2");
  set(rule.epsilon, p, "epsilon");
  return rule;
}
}  // namespace

TEST_CASE("adamax follows PyTorch's and Optax's Adamax") { CHECK(trajectory::replay_all("Adamax", make) == 3); }

TEST_CASE("adamax in the tensorflow form follows contrib's AdaMaxOptimizer, dense and sparse") {
  CHECK(trajectory::replay_all("AdaMaxTF", [](const auto& p) {
          adamax rule = make(p);
          rule.form = adamax_form::tensorflow;
          return rule;
        }) == 2);
  CHECK(adamax{}.decays_all_rows());
  CHECK(!adamax{.form = adamax_form::tensorflow}.decays_all_rows());
  CHECK(adamax{.form = adamax_form::tensorflow, .sparse = sparse_mode::decay_all}.decays_all_rows());
}
