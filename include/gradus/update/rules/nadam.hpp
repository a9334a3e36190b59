// Nadam is Adam with Nesterov's momentum. Three different formulas carry the name.
//
//   m <- m + (1 - beta1)(g - m),   v <- v + (1 - beta2)(g^2 - v)           both from 0
//   theta <- theta - rate (n / (sqrt(v') + epsilon) + weight_decay theta)           v' = v / (1 - beta2^t), with
//
//   torch       n = mu_(t+1) m / (1 - P_t mu_(t+1)) + (1 - mu_t) g / (1 - P_t)
//               mu_t = beta1 (1 - 0.96^(t momentum_decay) / 2),   P_t = mu_1 ... mu_t
//   constant    n = beta1 m / (1 - beta1^(t+1)) + (1 - beta1) g / (1 - beta1^t)
//   tensorflow  n = (beta1 m + (1 - beta1) g) / (1 - beta1^t), and epsilon beside the uncorrected root
//
// Dozat 2016, ICLR workshop. `torch` is the form of PyTorch's NAdam (momentum_decay 0.004; releases before 2.0 had one
// factor mu_t too many in P) and Keras (momentum_decay 1, epsilon 1e-7, rate 0.001); `constant` that of Optax's nadam
// and nadamw (rate has no default); `tensorflow` that of tf.contrib.opt.NadamOptimizer (rate 0.001), with the slots of
// Adam. weight_decay is decoupled, as in Optax's nadamw and with PyTorch's decoupled_weight_decay.
//
// Sparse gradients: in the tensorflow form m and v decay in all rows, theta moves in listed rows only; in the others a
// row that is not listed counts as gradient 0. sparse_mode::lazy leaves such rows alone in every form.
//
// Source: Dozat 2016
// TensorFlow: `contrib.opt.NadamOptimizer`: `.rate = 0.001, .form = nadam_form::tensorflow`; Keras: `.rate = 0.001,
//   .epsilon = 1e-7, .momentum_decay = 1`
// PyTorch: `NAdam` (from 2.0); weight_decay is its decoupled_weight_decay
// Optax: `nadam`, `nadamw`: `.form = nadam_form::constant`
#pragma once
#include "../../base/build.hpp"

#include <cmath>

#include "../../base/math.hpp"
#include "../sparse_mode.hpp"

namespace gradus::inline GRADUS_BUILD {

enum class nadam_form { torch, constant, tensorflow };

struct nadam {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "Nadam";
  static constexpr double default_rate = 0.002;

  std::optional<double> rate = {};              // step length; unset: 0.002 (PyTorch's), or the schedule
  double beta1 = 0.9;                           // how long g is remembered: about 1/(1-beta1) steps
  double beta2 = 0.999;                         // the same for g^2
  double epsilon = 1e-8;                        // floor under the root
  double momentum_decay = 0.004;                // torch form: how fast mu grows from beta1 / 2 to beta1
  double weight_decay = 0.0;                    // times the rate
  nadam_form form = nadam_form::torch;          // which formula
  sparse_mode sparse = sparse_mode::decay_all;  // lazy: rows without a gradient stay; decay_all: they get 0

  static constexpr auto settings() {
    using line = setting<nadam>;
    return std::array{line{"rate", &nadam::rate, setting_range::not_negative},
                      line{"beta1", &nadam::beta1, setting_range::half_open},
                      line{"beta2", &nadam::beta2, setting_range::half_open},
                      line{"epsilon", &nadam::epsilon, setting_range::not_negative},
                      line{"momentum_decay", &nadam::momentum_decay, setting_range::not_negative},
                      line{"weight_decay", &nadam::weight_decay, setting_range::not_negative}};
  }

  constexpr auto slots() const { return std::array{slot{"m", 0.0}, slot{"v", 0.0}}; }

  // Holds the number of finished steps, beta^t of the step to come, and P of the finished steps.
  static constexpr std::array<std::string_view, 4> shared_names{"step", "beta1_power", "beta2_power", "mu_product"};
  using shared = std::array<double, 4>;
  static constexpr auto powers() {
    return std::array<double nadam::*, 4>{nullptr, &nadam::beta1, &nadam::beta2, nullptr};
  }
  constexpr shared start() const { return {0, beta1, beta2, 1}; }
  constexpr void finish(shared& s, const step_info&, const nadam& done) const {
    using portable_math::product;
    s = {s[0] + 1, product(s[1], beta1), product(s[2], beta2), product(s[3], done.mu(s[0] + 1))};
  }

  template <class N>
  struct constants {
    N from_m, from_g, new_m, new_v, epsilon, decay;
  };
  constants<double> prepare(const step_info& at, const shared& s) const {
    using portable_math::product;
    const double root = std::sqrt(1 - s[2]), scale = at.rate * root, c1 = 1 - s[1];
    constants<double> c{0, 0, 1 - beta1, 1 - beta2, epsilon * root, at.rate * weight_decay};
    if (form == nadam_form::torch) {
      const double now = mu(s[0] + 1), next = mu(s[0] + 2), seen = product(s[3], now);
      c.from_m = scale * next / (1 - product(seen, next));
      c.from_g = scale * (1 - now) / (1 - seen);
    } else if (form == nadam_form::constant) {
      c.from_m = scale * beta1 / (1 - product(s[1], beta1));
      c.from_g = scale * (1 - beta1) / c1;
    } else {
      c.from_m = scale * beta1 / c1;
      c.from_g = scale * (1 - beta1) / c1;
      c.epsilon = epsilon;
    }
    return c;
  }

  template <class N>
  N step(N theta, N g, const constants<N>& c, N& m, N& v) const {
    m = m + c.new_m * (g - m);
    v = v + c.new_v * (g * g - v);
    return theta - (c.from_m * m + c.from_g * g) / (sqrt(v) + c.epsilon) - c.decay * theta;
  }
  constexpr bool decays_all_rows() const { return sparse == sparse_mode::decay_all; }
  template <class N>
  N rest(N theta, const constants<N>& c, N& m, N& v) const {
    const N moved = step(theta, N(0), c, m, v);
    return form == nadam_form::tensorflow ? theta : moved;
  }

private:
  constexpr double mu(double t) const { return beta1 * (1 - 0.5 * portable_math::pow(0.96, t * momentum_decay)); }
};

}  // namespace gradus
