// without sanitizers: published numbers; whole/conformance_{norms,matrices} run the same loops under them
#include <gradus/update/rules/schedule_free.hpp>

#include "../trajectory.hpp"

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

TEST_CASE("schedule_free_adamw is Optax's without warm-up; with it Optax's inner rate is one step behind") {
  constexpr double rate = 0.1, beta1 = 0.75, beta2 = 0.9, epsilon = 1e-8, decay = 0.01;
  for (const std::int64_t warmup : {0, 4}) {
    updater<sweeps<fast>, schedule_free_adamw> u{schedule_free_adamw{.rate = rate,
                                                                     .beta1 = beta1,
                                                                     .beta2 = beta2,
                                                                     .epsilon = epsilon,
                                                                     .weight_decay = decay,
                                                                     .warmup_steps = warmup}};
    std::vector<double> theta{1};
    u.track("w", theta);
    const auto rate_at = [&](double count) { return warmup == 0 ? rate : rate * std::min(count / 4, 1.0); };
    double y = 1, z = 1, v = 0, sum = 0, largest = 0;  // as Optax computes them, by hand
    double ours_y = 1, ours_z = 1;                     // the same with our inner rate
    double ours_v = 0;
    for (int t = 1; t <= 7; ++t) {
      const double g = 0.3 * t - 1;
      u.apply({{"w", std::vector<double>{g}}});
      largest = std::max(largest, rate_at(t));
      sum += largest * largest;
      const double c = largest * largest / sum;
      const auto step = [&](double& y_, double& z_, double& v_, double inner) {
        v_ = beta2 * v_ + (1 - beta2) * g * g;
        const double x = (y_ - (1 - beta1) * z_) / beta1;
        z_ -= inner * (g / (std::sqrt(v_ / (1 - std::pow(beta2, t))) + epsilon) + decay * y_);
        y_ = beta1 * ((1 - c) * x + c * z_) + (1 - beta1) * z_;
      };
      step(y, z, v, rate_at(t - (warmup != 0)));
      step(ours_y, ours_z, ours_v, rate_at(t));
      CHECK(theta[0] == doctest::Approx(ours_y).epsilon(1e-12));
      if (t == 1 && warmup != 0) CHECK(y == 1);  // its first inner rate is 0
    }
    CHECK((std::fabs(theta[0] - y) < 1e-12) == (warmup == 0));
  }
}
