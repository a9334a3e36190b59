// without sanitizers: published numbers; whole/conformance_{norms,matrices} run the same loops under them
#include <gradus/update/rules/lazy_adam.hpp>

#include "../trajectory.hpp"

using namespace gradus;
using trajectory::set;

namespace {
lazy_adam make(const golden::json& p) {
  lazy_adam rule;
  set(rule.rate, p, "learning_rate");
  set(rule.beta1, p, "beta1");
  set(rule.beta2, p, "beta2");
  set(rule.epsilon, p, "epsilon");
  return rule;
}
}  // namespace

TEST_CASE("lazy_adam follows contrib's LazyAdamOptimizer") { CHECK(trajectory::replay_all("LazyAdam", make) == 2); }
