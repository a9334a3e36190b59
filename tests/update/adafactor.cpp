#include <gradus/update/adafactor.hpp>

#include "trajectory.hpp"

namespace {
using gradus::adafactor, gradus::adafactor_form;

adafactor optax(const golden::json& p) {
  adafactor rule;
  if (!p["learning_rate"].is_null()) rule.rate = p["learning_rate"].get<double>();  // Optax's None is rate 1
  trajectory::set(rule.min_dim_size_to_factor, p, "min_dim_size_to_factor");
  trajectory::set(rule.decay_rate, p, "decay_rate");
  trajectory::set(rule.multiply_by_parameter_scale, p, "multiply_by_parameter_scale");
  trajectory::set(rule.clipping_threshold, p, "clipping_threshold");
  trajectory::set(rule.epsilon, p, "epsilon");
  trajectory::set(rule.min_parameter_rms, p, "min_parameter_rms");
  if (!p["weight_decay_rate"].is_null()) trajectory::set(rule.weight_decay, p, "weight_decay_rate");
  return rule;
}
adafactor torch(const golden::json& p) {
  adafactor rule{.rate = p["learning_rate"].get<double>(), .form = adafactor_form::relative};
  rule.decay_rate = -p["beta2_decay"].get<double>();
  trajectory::set(rule.eps1, p, "eps1");
  trajectory::set(rule.min_parameter_rms, p, "eps2");
  trajectory::set(rule.clipping_threshold, p, "d");
  trajectory::set(rule.weight_decay, p, "weight_decay");
  return rule;
}
}  // namespace

TEST_CASE("adafactor: golden trajectories, optax form") {
  CHECK(trajectory::replay_all("Adafactor", optax, {2e-4, 2e-5}) >= 3);
}
TEST_CASE("adafactor: golden trajectories, relative form") {
  CHECK(trajectory::replay_all("AdafactorRelative", torch, {2e-4, 2e-5}) >= 3);
}
