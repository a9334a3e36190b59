// without sanitizers: published numbers; whole/conformance_{norms,matrices} run the same loops under them
#include <gradus/update/rules/proximal_gradient_descent.hpp>

#include "../trajectory.hpp"

using namespace gradus;
using trajectory::set;

namespace {
proximal_gradient_descent make(const golden::json& p) {
  proximal_gradient_descent rule;
  set(rule.rate, p, "learning_rate");
  set(rule.l1, p, "l1_regularization_strength");
  set(rule.l2, p, "l2_regularization_strength");
  return rule;
}
}  // namespace

TEST_CASE("proximal_gradient_descent follows TensorFlow's trajectories, dense and sparse") {
  CHECK(trajectory::replay_all("ProximalGradientDescent", make) == 5);
}

TEST_CASE("a NaN in a gradient shows in the variable, penalty or not") {
  for (const double l1 : {0.0, 0.1}) {
    updater<sweeps<fast>, proximal_gradient_descent> u{proximal_gradient_descent{.rate = 0.5, .l1 = l1}};
    std::vector<float> w{1, 2};
    u.track("w", w);
    u.apply({{"w", std::vector<float>{std::nanf(""), 1}}});
    CHECK(std::isnan(w[0]));
    CHECK(!std::isnan(w[1]));
  }
}
