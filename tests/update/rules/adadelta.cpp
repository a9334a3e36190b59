// without sanitizers: published numbers; whole/conformance_{norms,matrices} run the same loops under them
#include <gradus/update/rules/adadelta.hpp>

#include "../trajectory.hpp"

using namespace gradus;
using trajectory::set;

namespace {
adadelta make(const golden::json& p) {
  adadelta rule;
  set(rule.rate, p, "learning_rate");
  set(rule.rho, p, "rho");
  set(rule.epsilon, p, "epsilon");
  return rule;
}
}  // namespace

TEST_CASE("adadelta follows TensorFlow's trajectories, dense and sparse") {
  CHECK(trajectory::replay_all("Adadelta", make) == 5);
}
