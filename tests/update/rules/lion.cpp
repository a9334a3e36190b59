// without sanitizers: published numbers; whole/conformance_{norms,matrices} run the same loops under them
#include <gradus/update/rules/lion.hpp>

#include "../trajectory.hpp"

using namespace gradus;
using trajectory::set;

namespace {
lion make(const golden::json& p) {
  lion rule;
  set(rule.rate, p, "learning_rate");
  set(rule.beta1, p, "beta1");
  set(rule.beta2, p, "beta2");
  set(rule.weight_decay, p, "weight_decay");
  return rule;
}
}  // namespace

TEST_CASE("lion follows Optax's and Keras's Lion") { CHECK(trajectory::replay_all("Lion", make) == 3); }

TEST_CASE("lion does not move where nothing ever pushed") {
  updater<sweeps<fast>, lion> u{lion{.rate = 0.5}};
  std::vector<float> w{1, 1, 1};
  u.track("w", w);
  u.apply({{"w", std::vector<float>{0, -3, 0.001f}}});
  CHECK(w == std::vector<float>{1, 1.5f, 0.5f});
}
