#include <gradus/update/gradient_descent.hpp>

#include "trajectory.hpp"

using namespace gradus;

TEST_CASE("gradient_descent follows TensorFlow's trajectories") {
  const auto cases = trajectory::replay_all("GradientDescent", [](const golden::json& p) {
    return composed{gradient_descent{.rate = p.at("learning_rate").get<double>()}};
  });
  CHECK(cases == 5);
}

TEST_CASE("gradient_descent has no slots and no default rate") {
  static_assert(update_rule<gradient_descent>);
  static_assert(composed<gradient_descent>::mirror_count == 0);
  CHECK_THROWS_WITH_AS(composed{gradient_descent{}},
                       "the learning rate has no owner: GradientDescent has no default; expected `.rate = ...` in the "
                       "rule or a schedule among the policies",
                       invalid_argument);
}
