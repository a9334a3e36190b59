// AdamW is Adam with weight decay beside the step instead of inside the gradient.
//
//   m <- m + (1 - beta1)(g - m),   v <- v + (1 - beta2)(g^2 - v)           both from 0
//   torch       theta <- theta - rate (m' / (sqrt(v') + epsilon) + weight_decay theta)     m' = m / (1 - beta1^t),
//   keras       theta <- theta - alpha m / (sqrt(v) + epsilon) - rate weight_decay theta   v' = v / (1 - beta2^t)
//   tensorflow  theta <- theta - alpha m / (sqrt(v) + epsilon) - weight_decay theta        alpha as in adam.hpp
//
// Loshchilov & Hutter 2019, arXiv:1711.05101. `torch` is also Optax's order (adamw, where eps_root is 0 and
// weight_decay 1e-4); `keras` puts epsilon beside the uncorrected root (epsilon 1e-7, weight_decay 0.004); `tensorflow`
// is tf.contrib.opt.AdamWOptimizer: the decay is not multiplied by the rate, so a schedule must scale it too.
//
// Sparse gradients: in the tensorflow form rows that are not listed move, but do not decay; in the others such rows
// count as gradient 0, which no reference library defines. sparse_mode::lazy leaves them alone in every form.
//
// Source: Loshchilov & Hutter 2019, arXiv:1711.05101
// TensorFlow: `contrib.opt.AdamWOptimizer`: `.form = adamw_form::tensorflow`; Keras: `.form = adamw_form::keras,
//   .epsilon = 1e-7, .weight_decay = 0.004`
// PyTorch: `AdamW`
// Optax: `adamw`: `.weight_decay = 1e-4`; eps_root is 0
#pragma once

#include "../../base/math.hpp"
#include "../sparse_mode.hpp"

namespace gradus::inline GRADUS_BUILD {

enum class adamw_form { torch, keras, tensorflow };

struct adamw {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "AdamW";
  static constexpr double default_rate = 0.001;

  std::optional<double> rate = {};      // step length; unset: 0.001, or the schedule
  double beta1 = 0.9;                   // how long g is remembered: about 1/(1-beta1) steps
  double beta2 = 0.999;                 // the same for g^2
  double epsilon = 1e-8;                // floor under the root
  double weight_decay = 0.01;           // PyTorch's default; Optax 1e-4, Keras 0.004, tf.contrib none: much smaller
  adamw_form form = adamw_form::torch;  // where epsilon and weight_decay stand
  sparse_mode sparse = sparse_mode::decay_all;  // lazy: rows without a gradient stay; decay_all: they get 0

  static constexpr auto settings() {
    using line = setting<adamw>;
    return std::array{line{"rate", &adamw::rate, setting_range::not_negative},
                      line{"beta1", &adamw::beta1, setting_range::half_open},
                      line{"beta2", &adamw::beta2, setting_range::half_open},
                      line{"epsilon", &adamw::epsilon, setting_range::not_negative},
                      line{"weight_decay", &adamw::weight_decay, setting_range::not_negative}};
  }

  constexpr auto slots() const { return std::array{slot{"m", 0.0}, slot{"v", 0.0}}; }

  // Holds the number of finished steps, and beta^t of the step to come.
  static constexpr std::array<std::string_view, 3> shared_names{"step", "beta1_power", "beta2_power"};
  using shared = std::array<double, 3>;
  static constexpr auto powers() { return std::array<double adamw::*, 3>{nullptr, &adamw::beta1, &adamw::beta2}; }
  constexpr shared start() const { return {0, beta1, beta2}; }
  constexpr void finish(shared& s) const {
    s = {s[0] + 1, portable_math::product(s[1], beta1), portable_math::product(s[2], beta2)};
  }

  template <class N>
  struct constants {
    N alpha, new_m, new_v, epsilon, decay;
  };
  constexpr constants<double> at_rate(double r) const {
    return {r, 1 - beta1, 1 - beta2, epsilon, form == adamw_form::tensorflow ? weight_decay : r * weight_decay};
  }
  // left: 1 - beta^t
  template <class N>
  constexpr constants<N> corrected(constants<N> c, N left1, N left2) const {
    const N root = portable_math::sqrt(left2);
    c.alpha = c.alpha * root / left1;
    if (form == adamw_form::torch) c.epsilon = c.epsilon * root;
    return c;
  }
  constexpr constants<double> prepare(const step_info& at, const shared& s) const {
    return corrected(at_rate(at.rate), 1 - s[1], 1 - s[2]);
  }

  template <class N>
  N step(N theta, N g, const constants<N>& c, N& m, N& v) const {
    return undecayed(theta, g, c, m, v) - c.decay * theta;
  }
  constexpr bool decays_all_rows() const { return sparse == sparse_mode::decay_all; }
  template <class N>
  N rest(N theta, const constants<N>& c, N& m, N& v) const {
    const N moved = undecayed(theta, N(0), c, m, v);
    return form == adamw_form::tensorflow ? moved : moved - c.decay * theta;
  }

private:
  template <class N>
  static N undecayed(N theta, N g, const constants<N>& c, N& m, N& v) {
    m = m + c.new_m * (g - m);
    v = v + c.new_v * (g * g - v);
    return theta - c.alpha * m / (sqrt(v) + c.epsilon);
  }
};

}  // namespace gradus
