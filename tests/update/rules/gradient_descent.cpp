// without sanitizers: published numbers; whole/conformance_{norms,matrices} run the same loops under them
#include <gradus/update/rules/gradient_descent.hpp>

#include "../trajectory.hpp"

using namespace gradus;
using trajectory::set;

namespace {
gradient_descent make(const golden::json& p) {
  gradient_descent rule;
  set(rule.rate, p, "learning_rate");
  return rule;
}
}  // namespace

TEST_CASE("gradient_descent follows TensorFlow's trajectories") {
  CHECK(trajectory::replay_all("GradientDescent", make) == 5);
}

TEST_CASE("gradient_descent has no slots and no default rate") {
  static_assert(update_rule<gradient_descent>);
  static_assert(composed<gradient_descent>::mirror_count == 0);
  CHECK_THROWS_WITH_AS(composed{gradient_descent{}},
                       "the learning rate has no owner: GradientDescent has no default; expected `.rate = ...` in the "
                       "rule or a schedule among the policies",
                       invalid_argument);
}
