// Adam scales a step by the running moments of the gradient.
//
//   m <- m + (1 - beta1)(g - m)                 first moment, from 0
//   v <- v + (1 - beta2)(g^2 - v)               second moment, from 0
//   theta <- theta - alpha m / (sqrt(v) + epsilon),   alpha = rate sqrt(1 - beta2^t) / (1 - beta1^t)
//
// This is the form just before section 2.1 of Kingma & Ba 2015, arXiv:1412.6980, so epsilon is their epsilon-hat.
// TensorFlow 1.x has the same form; it keeps the powers of beta as running products, as here, but in float32 (here in
// double). PyTorch and Optax put epsilon inside the bias correction: their epsilon equals this one divided by sqrt(1 -
// beta2^t).
//
// Source: Kingma & Ba 2015, arXiv:1412.6980
// TensorFlow: `train.AdamOptimizer`: `.sparse = sparse_mode::decay_all`; `contrib.opt.LazyAdamOptimizer`: the default,
//   also called `lazy_adam`
// PyTorch: `Adam`: epsilon beside the corrected root: `adamw{.weight_decay = 0}`
// Optax: `adam`: as PyTorch
#pragma once

#include "../../base/math.hpp"
#include "../sparse_mode.hpp"

namespace gradus::inline GRADUS_BUILD {

struct adam {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "Adam";
  static constexpr double default_rate = 0.001;

  std::optional<double> rate = {};         // step length; unset: 0.001, or the schedule
  double beta1 = 0.9;                      // how long g is remembered: about 1/(1-beta1) steps
  double beta2 = 0.999;                    // the same for g^2
  double epsilon = 1e-8;                   // floor under sqrt(v); raise it (1e-4, 1) when steps jump where v is tiny
  sparse_mode sparse = sparse_mode::lazy;  // lazy: rows without a gradient stay; decay_all: they get 0

  static constexpr auto settings() {
    using line = setting<adam>;
    return std::array{line{"rate", &adam::rate, setting_range::not_negative},
                      line{"beta1", &adam::beta1, setting_range::half_open},
                      line{"beta2", &adam::beta2, setting_range::half_open},
                      line{"epsilon", &adam::epsilon, setting_range::not_negative}};
  }

  constexpr auto slots() const { return std::array{slot{"m", 0.0}, slot{"v", 0.0}}; }

  static constexpr std::array<std::string_view, 2> shared_names{"beta1_power", "beta2_power"};
  using shared = std::array<double, 2>;  // beta^t of the step to come
  static constexpr auto powers() { return std::array<double adam::*, 2>{&adam::beta1, &adam::beta2}; }
  constexpr shared start() const { return {beta1, beta2}; }
  constexpr void finish(shared& power) const {
    power = {portable_math::product(power[0], beta1), portable_math::product(power[1], beta2)};
  }

  template <class N>
  struct constants {
    N alpha, new_m, new_v, epsilon;
  };
  constexpr constants<double> at_rate(double r) const { return {r, 1 - beta1, 1 - beta2, epsilon}; }
  // left: 1 - beta^t
  template <class N>
  static constexpr constants<N> corrected(constants<N> c, N left1, N left2) {
    c.alpha = c.alpha * portable_math::sqrt(left2) / left1;
    return c;
  }
  constexpr constants<double> prepare(const step_info& at, const shared& power) const {
    return corrected(at_rate(at.rate), 1 - power[0], 1 - power[1]);
  }

  template <class N>
  N step(N theta, N g, const constants<N>& c, N& m, N& v) const {
    m = m + c.new_m * (g - m);
    v = v + c.new_v * (g * g - v);
    return theta - c.alpha * m / (sqrt(v) + c.epsilon);
  }
  constexpr bool decays_all_rows() const { return sparse == sparse_mode::decay_all; }
};

}  // namespace gradus
