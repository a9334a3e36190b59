#include <gradus/update/muon.hpp>

#include "trajectory.hpp"

namespace {
using gradus::muon, gradus::muon_form;

muon from(const golden::json& p, muon_form form) {
  muon rule{.rate = p["learning_rate"].get<double>(), .form = form};
  trajectory::set(rule.momentum, p, form == muon_form::optax ? "beta" : "momentum");
  trajectory::set(rule.use_nesterov, p, "use_nesterov");
  trajectory::set(rule.ns_steps, p, "ns_steps");
  trajectory::set(rule.epsilon, p, "ns_eps");
  trajectory::set(rule.weight_decay, p, "weight_decay");
  if (p.contains("consistent_rms") && !p["consistent_rms"].is_null())
    trajectory::set(rule.consistent_rms, p, "consistent_rms");
  return rule;
}
}  // namespace

TEST_CASE("muon: golden trajectories, original form") {
  CHECK(trajectory::replay_all("Muon", [](const auto& p) { return from(p, muon_form::original); }, {2e-3, 2e-3}) >= 3);
}
TEST_CASE("muon: golden trajectories, optax form") {
  CHECK(trajectory::replay_all("MuonBC", [](const auto& p) { return from(p, muon_form::optax); }, {2e-3, 2e-3}) >= 3);
}
