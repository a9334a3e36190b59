// without sanitizers: published numbers; whole/conformance_{norms,matrix} run the same loops under them
#include <gradus/update/schedule_free.hpp>

#include "trajectory.hpp"

using namespace gradus;
using trajectory::set;

namespace {
schedule_free_adamw make(const golden::json& p) {
  schedule_free_adamw rule;
  set(rule.rate, p, "learning_rate");
  set(rule.beta1, p, "beta1");
  set(rule.beta2, p, "beta2");
  set(rule.epsilon, p, "epsilon");
  set(rule.weight_decay, p, "weight_decay");
  set(rule.warmup_steps, p, "warmup_steps");
  set(rule.r, p, "r");
  set(rule.weight_lr_power, p, "weight_lr_power");
  return rule;
}
}  // namespace

TEST_CASE("schedule_free_adamw follows the authors' AdamWScheduleFree") {
  CHECK(trajectory::replay_all("ScheduleFreeAdamW", make) == 3);
}

TEST_CASE("schedule_free_adamw keeps its average where it is evaluated") {
  updater<sweeps<fast>, schedule_free_adamw> u{schedule_free_adamw{.rate = 0.1, .beta1 = 0.75}};
  std::vector<double> y{1, 2};
  u.track("w", y);
  for (int i = 0; i < 4; ++i) u.apply({{"w", std::vector<double>{0.5 * i, -1}}});
  const auto x = u.slot("w", schedule_free_adamw::evaluates_at).as<double>(), z = u.slot("w", "z").as<double>();
  for (std::size_t i = 0; i < 2; ++i) CHECK(y[i] == doctest::Approx(0.75 * x[i] + 0.25 * z[i]).epsilon(1e-14));
}

TEST_CASE("schedule_free_adamw weighs iterates by the largest scheduled rate so far") {
  updater<sweeps<fast>, schedule_free_adamw, exponential_decay> u{
      schedule_free_adamw{}, exponential_decay{.initial = 0.5, .decay_steps = 1, .decay_rate = 0.5}};
  std::vector<double> y{1};
  u.track("w", y);
  for (int i = 0; i < 3; ++i) u.apply({{"w", std::vector<double>{1}}});
  state_list state;
  u.remembers(state);
  double sum = 0, largest = 0;
  std::memcpy(&sum, state.find("weight_sum")->bytes.data(), sizeof sum);
  std::memcpy(&largest, state.find("lr_max")->bytes.data(), sizeof largest);
  CHECK(largest == 0.5);
  CHECK(sum == 0.75);  // 3 times 0.5^2
}
