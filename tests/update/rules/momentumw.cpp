// without sanitizers: published numbers; whole/conformance_{norms,matrices} run the same loops under them
#include <gradus/update/rules/momentumw.hpp>

#include "../trajectory.hpp"

using namespace gradus;
using trajectory::set;

namespace {
momentumw make(const golden::json& p) {
  momentumw rule;
  set(rule.rate, p, "learning_rate");
  set(rule.momentum, p, "momentum");
  set(rule.use_nesterov, p, "use_nesterov");
  set(rule.weight_decay, p, "weight_decay");
  return rule;
}
}  // namespace

TEST_CASE("momentumw follows contrib's MomentumWOptimizer") { CHECK(trajectory::replay_all("MomentumWTF", make) == 2); }
