// without sanitizers: published numbers; whole/conformance_{norms,matrices} run the same loops under them
#include <gradus/update/rules/lamb.hpp>

#include "../trajectory.hpp"

using namespace gradus;
using trajectory::set;

namespace {
lamb make(const golden::json& p) {
  lamb rule;
  set(rule.rate, p, "learning_rate");
  set(rule.beta1, p, "beta1");
  set(rule.beta2, p, "beta2");
  set(rule.epsilon, p, "epsilon");
  set(rule.weight_decay, p, "weight_decay");
  return rule;
}
}  // namespace

TEST_CASE("lamb follows Optax's and Keras's LAMB") { CHECK(trajectory::replay_all("Lamb", make) == 3); }

TEST_CASE("lamb takes ratio 1 where a norm is 0") {
  updater<sweeps<fast>, lamb> u{lamb{.rate = 0.5, .epsilon = 0}};
  std::vector<double> w{0, 0};
  u.track("w", w);
  u.apply({{"w", std::vector<double>{3, -2}}});
  CHECK(w[0] == doctest::Approx(-0.5));
  CHECK(w[1] == doctest::Approx(0.5));
}
