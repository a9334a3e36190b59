// In schedule-free AdamW an average of the iterates replaces the falling learning rate.
//
//   eta = rate min(t / warmup_steps, 1),   w = t^r (largest eta so far)^weight_lr_power,   c = w / (sum of w so far)
//   v <- v + (1 - beta2)(g^2 - v)               from 0
//   z <- z - eta (weight_decay y + g / (sqrt(v / (1 - beta2^t)) + epsilon))
//   x <- (1 - c) x + c z
//   y <- beta1 x + (1 - beta1) z                y is theta; z and x start as theta
//
// Defazio et al. 2024, arXiv:2405.15682; it computes the same as the authors' AdamWScheduleFree. Gradients are taken at
// y. There is no first moment: beta1 is the share of the average x in y. Evaluate and save the model at slot "x"
// (`evaluates_at`). Optax's schedule_free_adamw without warm-up is the same, with x kept as (y - (1 - beta1) z) /
// beta1. With warm-up it differs: its inner rate counts steps from 0, so step t has the rate min((t - 1) /
// warmup_steps, 1) times rate (0 in the first), while its weights count steps from 1, as here. Keras takes c = 1/t
// (weight_lr_power 0 and r 0 here). Sparse gradients: a row that is not listed counts as gradient 0 (its average goes
// on), unless sparse_mode::lazy.
//
// Source: Defazio et al. 2024, arXiv:2405.15682
// TensorFlow: Keras: weights 1/t, `.weight_lr_power = 0`
// PyTorch: – (the authors' AdamWScheduleFree)
// Optax: `contrib.schedule_free_adamw`
#pragma once
#include "../../base/build.hpp"

#include <cmath>

#include "../../base/math.hpp"
#include "../sparse_mode.hpp"

namespace gradus::inline GRADUS_BUILD {

struct schedule_free_adamw {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "ScheduleFreeAdamW";
  static constexpr double default_rate = 0.0025;
  static constexpr std::string_view evaluates_at = "x";  // the slot that the model is evaluated and saved at

  std::optional<double> rate = {};  // step length; unset: 0.0025, or the schedule (a warm-up; it need not fall)
  double beta1 = 0.9;               // the part of the average in y
  double beta2 = 0.999;             // how long g^2 is remembered: about 1/(1-beta2) steps
  double epsilon = 1e-8;            // floor under the root
  double weight_decay = 0.0;        // times the rate, at y
  std::int64_t warmup_steps = 0;    // steps over which the rate grows to its full size
  double r = 0.0;                   // power of the step number in the weight of an iterate
  double weight_lr_power = 2.0;     // power of the largest rate in it
  sparse_mode sparse = sparse_mode::decay_all;  // lazy: rows without a gradient stay; decay_all: they get 0

  static constexpr auto settings() {
    using line = setting<schedule_free_adamw>;
    return std::array{line{"rate", &schedule_free_adamw::rate, setting_range::not_negative},
                      line{"beta1", &schedule_free_adamw::beta1, setting_range::unit},
                      line{"beta2", &schedule_free_adamw::beta2, setting_range::half_open},
                      line{"epsilon", &schedule_free_adamw::epsilon, setting_range::not_negative},
                      line{"weight_decay", &schedule_free_adamw::weight_decay, setting_range::not_negative},
                      line{"warmup_steps", &schedule_free_adamw::warmup_steps, setting_range::not_negative},
                      line{"r", &schedule_free_adamw::r, setting_range::finite},
                      line{"weight_lr_power", &schedule_free_adamw::weight_lr_power, setting_range::finite}};
  }

  constexpr auto slots() const {
    return std::array{slot{.name = "z", .starts_as_variable = true}, slot{.name = "x", .starts_as_variable = true},
                      slot{"v", 0.0}};
  }

  // Holds the number of finished steps, their weights, their largest eta, and beta2^t of the step to come.
  static constexpr std::array<std::string_view, 4> shared_names{"step", "weight_sum", "lr_max", "beta2_power"};
  using shared = std::array<double, 4>;
  static constexpr auto powers() {
    return std::array<double schedule_free_adamw::*, 4>{nullptr, nullptr, nullptr, &schedule_free_adamw::beta2};
  }
  constexpr shared start() const { return {0, 0, 0, beta2}; }
  void finish(shared& s, const step_info& at, const schedule_free_adamw& done) const {
    const weighing w = done.weigh(at, s);
    s = {s[0] + 1, w.sum, w.largest, portable_math::product(s[3], beta2)};
  }

  template <class N>
  struct constants {
    N alpha, decay, new_v, epsilon, new_x, old_x, beta1, new_y;
  };
  constants<double> prepare(const step_info& at, const shared& s) const {
    const weighing w = weigh(at, s);
    const double root = std::sqrt(1 - s[3]), share = w.sum == 0 ? 0 : w.weight / w.sum;
    return {w.eta * root, w.eta * weight_decay, 1 - beta2, epsilon * root, share, 1 - share, beta1, 1 - beta1};
  }

  template <class N>
  N step(N y, N g, const constants<N>& c, N& z, N& x, N& v) const {
    v = v + c.new_v * (g * g - v);
    z = z - c.decay * y - c.alpha * g / (sqrt(v) + c.epsilon);
    x = c.old_x * x + c.new_x * z;
    return c.beta1 * x + c.new_y * z;
  }
  constexpr bool decays_all_rows() const { return sparse == sparse_mode::decay_all; }

private:
  struct weighing {
    double eta, largest, weight, sum;
  };
  weighing weigh(const step_info& at, const shared& s) const {
    const double next = s[0] + 1, warmup = static_cast<double>(warmup_steps);
    const double eta = next < warmup ? at.rate * (next / warmup) : at.rate, largest = eta > s[2] ? eta : s[2];
    const double weight =
        portable_math::product(portable_math::pow(next, r), portable_math::pow(largest, weight_lr_power));
    return {eta, largest, weight, s[1] + weight};
  }
};

}  // namespace gradus
