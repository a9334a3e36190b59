// AMSGrad is Adam with a denominator that never shrinks.
//
//   m <- m + (1 - beta1)(g - m),   v <- v + (1 - beta2)(g^2 - v)           both from 0
//   raw          V <- max(V, v),    theta <- theta - rate m' / (sqrt(V / (1 - beta2^t)) + epsilon)
//   corrected    V <- max(V, v'),   theta <- theta - rate m' / (sqrt(V) + epsilon)
//   raw_eps_hat  V <- max(V, v),    theta <- theta - alpha m / (sqrt(V) + epsilon)
//
// V is the slot vhat, from 0; m' = m / (1 - beta1^t), v' = v / (1 - beta2^t) and alpha as in adam.hpp. Reddi, Kale &
// Kumar 2018, arXiv:1904.09237 (without any correction). `raw`: PyTorch's Adam with amsgrad=True; `corrected`: Optax's
// amsgrad; `raw_eps_hat`: TensorFlow's ApplyAdamWithAmsgrad and Keras (epsilon 1e-7). Sparse gradients: a row that is
// not listed counts as gradient 0, unless sparse_mode::lazy.
//
// Source: Reddi, Kale & Kumar 2018, arXiv:1904.09237
// TensorFlow: `ApplyAdamWithAmsgrad`: `.form = amsgrad_form::raw_eps_hat`; Keras: also `.epsilon = 1e-7`
// PyTorch: `Adam(amsgrad=True)`
// Optax: `amsgrad`: `.form = amsgrad_form::corrected`
#pragma once

#include "../../base/math.hpp"
#include "../sparse_mode.hpp"

namespace gradus::inline GRADUS_BUILD {

enum class amsgrad_form { raw, corrected, raw_eps_hat };

struct amsgrad {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "AMSGrad";
  static constexpr double default_rate = 0.001;

  std::optional<double> rate = {};              // step length; unset: 0.001, or the schedule
  double beta1 = 0.9;                           // how long g is remembered: about 1/(1-beta1) steps
  double beta2 = 0.999;                         // the same for g^2
  double epsilon = 1e-8;                        // floor under the root
  amsgrad_form form = amsgrad_form::raw;        // what the maximum is taken of
  sparse_mode sparse = sparse_mode::decay_all;  // lazy: rows without a gradient stay; decay_all: they get 0

  static constexpr auto settings() {
    using line = setting<amsgrad>;
    return std::array{line{"rate", &amsgrad::rate, setting_range::not_negative},
                      line{"beta1", &amsgrad::beta1, setting_range::half_open},
                      line{"beta2", &amsgrad::beta2, setting_range::half_open},
                      line{"epsilon", &amsgrad::epsilon, setting_range::not_negative}};
  }

  constexpr auto slots() const { return std::array{slot{"m", 0.0}, slot{"v", 0.0}, slot{"vhat", 0.0}}; }

  // Holds the number of finished steps, and beta^t of the step to come.
  static constexpr std::array<std::string_view, 3> shared_names{"step", "beta1_power", "beta2_power"};
  using shared = std::array<double, 3>;
  static constexpr auto powers() { return std::array<double amsgrad::*, 3>{nullptr, &amsgrad::beta1, &amsgrad::beta2}; }
  constexpr shared start() const { return {0, beta1, beta2}; }
  constexpr void finish(shared& s) const {
    s = {s[0] + 1, portable_math::product(s[1], beta1), portable_math::product(s[2], beta2)};
  }

  template <class N>
  struct constants {
    N alpha, new_m, new_v, correction, epsilon;
  };
  constexpr constants<double> at_rate(double r) const { return {r, 1 - beta1, 1 - beta2, 1, epsilon}; }
  // left: 1 - beta^t
  template <class N>
  constexpr constants<N> corrected(constants<N> c, N left1, N left2) const {
    if (form == amsgrad_form::corrected) {
      c.alpha = c.alpha / left1, c.correction = 1 / left2;
      return c;
    }
    const N root = portable_math::sqrt(left2);
    c.alpha = c.alpha * root / left1;
    if (form == amsgrad_form::raw) c.epsilon = c.epsilon * root;
    return c;
  }
  constexpr constants<double> prepare(const step_info& at, const shared& s) const {
    return corrected(at_rate(at.rate), 1 - s[1], 1 - s[2]);
  }

  template <class N>
  N step(N theta, N g, const constants<N>& c, N& m, N& v, N& largest) const {
    m = m + c.new_m * (g - m);
    v = v + c.new_v * (g * g - v);
    largest = max(largest, v * c.correction);  // a NaN in v stays: max's second place
    return theta - c.alpha * m / (sqrt(largest) + c.epsilon);
  }
  constexpr bool decays_all_rows() const { return sparse == sparse_mode::decay_all; }
};

}  // namespace gradus
