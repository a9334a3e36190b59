// AdaMax is Adam with the largest recent gradient in place of the root mean square.
//
//   m <- m + (1 - beta1)(g - m)                 from 0
//   torch       u <- max(beta2 u, |g| + epsilon),   theta <- theta - rate / (1 - beta1^t) m / u           u from 0
//   tensorflow  v <- max(beta2 v, |g|),             theta <- theta - rate / (1 - beta1^t) m / (v + epsilon)
//
// Kingma & Ba 2015, arXiv:1412.6980, section 7.1. `torch` is also Optax's form; `tensorflow` is that of
// tf.contrib.opt.AdaMaxOptimizer and Keras (epsilon 1e-7), both with rate 0.001; its slot is called "v". Sparse
// gradients: the tensorflow form changes listed rows only; in the torch form a row that is not listed counts as
// gradient 0. The setting `sparse` overrules both.
//
// Source: Kingma & Ba 2015, section 7.1
// TensorFlow: `contrib.opt.AdaMaxOptimizer`: `.rate = 0.001, .form = adamax_form::tensorflow`; Keras: also `.epsilon =
//   1e-7`
// PyTorch: `Adamax`
// Optax: `adamax`
#pragma once
#include "../../base/math.hpp"
#include "../sparse_mode.hpp"

namespace gradus::inline GRADUS_BUILD {

enum class adamax_form { torch, tensorflow };

struct adamax {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "AdaMax";
  static constexpr double default_rate = 0.002;

  std::optional<double> rate = {};         // step length; unset: 0.002 (PyTorch's), or the schedule
  double beta1 = 0.9;                      // how long g is remembered: about 1/(1-beta1) steps
  double beta2 = 0.999;                    // how slowly the largest |g| is forgotten
  double epsilon = 1e-8;                   // keeps the denominator above 0
  adamax_form form = adamax_form::torch;   // where epsilon stands
  std::optional<sparse_mode> sparse = {};  // unset: lazy for tensorflow, decay_all for torch

  static constexpr auto settings() {
    using line = setting<adamax>;
    return std::array{line{"rate", &adamax::rate, setting_range::not_negative},
                      line{"beta1", &adamax::beta1, setting_range::half_open},
                      line{"beta2", &adamax::beta2, setting_range::half_open},
                      line{"epsilon", &adamax::epsilon, setting_range::not_negative}};
  }

  constexpr auto slots() const {
    return std::array{slot{"m", 0.0}, slot{form == adamax_form::tensorflow ? "v" : "u", 0.0}};
  }

  // Finished steps, and beta^t of the step to come (beta2's is not used; TensorFlow keeps it).
  static constexpr std::array<std::string_view, 3> shared_names{"step", "beta1_power", "beta2_power"};
  using shared = std::array<double, 3>;
  static constexpr auto powers() { return std::array<double adamax::*, 3>{nullptr, &adamax::beta1, &adamax::beta2}; }
  constexpr shared start() const { return {0, beta1, beta2}; }
  constexpr void finish(shared& s) const {
    s = {s[0] + 1, portable_math::product(s[1], beta1), portable_math::product(s[2], beta2)};
  }

  template <class N>
  struct constants {
    N alpha, new_m, beta2, inside, outside;
  };
  constexpr constants<double> at_rate(double r) const {
    const bool torch = form == adamax_form::torch;
    return {r, 1 - beta1, beta2, torch ? epsilon : 0, torch ? 0 : epsilon};
  }
  // left: 1 - beta^t
  template <class N>
  static constexpr constants<N> corrected(constants<N> c, N left1, N) {
    c.alpha = c.alpha / left1;
    return c;
  }
  constexpr constants<double> prepare(const step_info& at, const shared& s) const {
    return corrected(at_rate(at.rate), 1 - s[1], 1 - s[2]);
  }

  template <class N>
  N step(N theta, N g, const constants<N>& c, N& m, N& u) const {
    m = m + c.new_m * (g - m);
    u = max(c.beta2 * u, abs(g) + c.inside);  // a NaN in g stays: max's second place
    return theta - c.alpha * m / (u + c.outside);
  }
  constexpr bool decays_all_rows() const {
    return sparse.value_or(form == adamax_form::tensorflow ? sparse_mode::lazy : sparse_mode::decay_all) ==
           sparse_mode::decay_all;
  }
};

}  // namespace gradus
