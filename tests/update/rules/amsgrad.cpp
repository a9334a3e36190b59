// without sanitizers: published numbers; whole/conformance_{norms,matrices} run the same loops under them
#include <gradus/update/rules/amsgrad.hpp>

#include "../trajectory.hpp"

using namespace gradus;
using trajectory::set;

namespace {
amsgrad make(const golden::json& p) {
  amsgrad rule;
  set(rule.rate, p, "learning_rate");
  set(rule.beta1, p, "beta1");
  set(rule.beta2, p, "beta2");
  set(rule.epsilon, p, "epsilon");
  if (const auto variant = p.value("variant", "raw"); variant != "raw")
    rule.form = variant == "corrected" ? amsgrad_form::corrected : amsgrad_form::raw_eps_hat;
  return rule;
}
}  // namespace

TEST_CASE("amsgrad follows PyTorch, Optax and TensorFlow's kernel") {
  CHECK(trajectory::replay_all("AMSGrad", make) == 3);
}
