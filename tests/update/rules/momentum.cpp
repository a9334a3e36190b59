// without sanitizers: published numbers; whole/conformance_{norms,matrices} run the same loops under them
#include <gradus/update/rules/momentum.hpp>

#include "../trajectory.hpp"

using namespace gradus;
using trajectory::set;

namespace {
momentum make(const golden::json& p) {
  momentum rule;
  set(rule.rate, p, "learning_rate");
  set(rule.decay, p, "momentum");
  set(rule.use_nesterov, p, "use_nesterov");
  return rule;
}
}  // namespace

TEST_CASE("momentum follows TensorFlow's trajectories, plain and Nesterov, dense and sparse") {
  CHECK(trajectory::replay_all("Momentum", make) == 11);
}

TEST_CASE("momentum keeps one slot, named as in TensorFlow's checkpoints") {
  const auto mirrors = composed{momentum{.rate = 1.0}}.mirrors();
  REQUIRE(mirrors.size() == 1);
  CHECK(mirrors[0].slot == "momentum");
  CHECK(checkpoint_name("layer/w", mirrors[0]) == "layer/w/Momentum");
}
