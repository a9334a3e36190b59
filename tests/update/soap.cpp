#include <gradus/update/soap.hpp>

#include "trajectory.hpp"

namespace {
using gradus::soap;

soap from(const golden::json& p) {
  soap rule{.rate = p["learning_rate"].get<double>()};
  trajectory::set(rule.beta1, p, "beta1");
  trajectory::set(rule.beta2, p, "beta2");
  trajectory::set(rule.shampoo_beta, p, "shampoo_beta");
  trajectory::set(rule.epsilon, p, "epsilon");
  trajectory::set(rule.weight_decay, p, "weight_decay");
  trajectory::set(rule.precondition_frequency, p, "precondition_frequency");
  return rule;
}
}  // namespace

TEST_CASE("soap: golden trajectories") {
  CHECK(trajectory::replay_all("Soap", from, {2e-3, 2e-3}) >= 3);
}
