// LAMB makes Adam's step with a rate for each tensor, in proportion to the tensor's own size.
//
//   m <- m + (1 - beta1)(g - m),   v <- v + (1 - beta2)(g^2 - v)           both from 0
//   u = m' / (sqrt(v') + epsilon) + weight_decay theta,   m' = m / (1 - beta1^t),   v' = v / (1 - beta2^t)
//   theta <- theta - rate |theta| / |u| u       |.| is the norm over the whole tensor; ratio 1 if a norm is 0
//
// You et al. 2020, arXiv:1904.00962, without its clip of |theta|, as in Optax (lamb: weight_decay 0, no default rate)
// and Keras (epsilon 1e-7). PyTorch has no equivalent. A step reads theta, g, m and v once more than an elementwise
// rule. Sparse gradients: a row that is not listed counts as gradient 0; with sparse_mode::lazy it does not change, and
// the norms are those of the listed rows.
//
// Source: You et al. 2020, arXiv:1904.00962
// TensorFlow: Keras `Lamb`: `.epsilon = 1e-7`
// Optax: `lamb`
#pragma once
#include "../../base/build.hpp"

#include <cmath>

#include "../../base/math.hpp"
#include "../sparse_mode.hpp"

namespace gradus::inline GRADUS_BUILD {

struct lamb {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "Lamb";
  static constexpr double default_rate = 0.001;

  std::optional<double> rate = {};              // step length; unset: 0.001 (Keras), or the schedule
  double beta1 = 0.9;                           // how long g is remembered: about 1/(1-beta1) steps
  double beta2 = 0.999;                         // the same for g^2
  double epsilon = 1e-6;                        // floor under the root
  double weight_decay = 0.0;                    // times rate and ratio
  sparse_mode sparse = sparse_mode::decay_all;  // lazy: rows without a gradient stay; decay_all: they get 0

  static constexpr auto settings() {
    using line = setting<lamb>;
    return std::array{line{"rate", &lamb::rate, setting_range::not_negative},
                      line{"beta1", &lamb::beta1, setting_range::half_open},
                      line{"beta2", &lamb::beta2, setting_range::half_open},
                      line{"epsilon", &lamb::epsilon, setting_range::not_negative},
                      line{"weight_decay", &lamb::weight_decay, setting_range::not_negative}};
  }

  constexpr auto slots() const { return std::array{slot{"m", 0.0}, slot{"v", 0.0}}; }

  // Holds the number of finished steps, and beta^t of the step to come.
  static constexpr std::array<std::string_view, 3> shared_names{"step", "beta1_power", "beta2_power"};
  using shared = std::array<double, 3>;
  static constexpr auto powers() { return std::array<double lamb::*, 3>{nullptr, &lamb::beta1, &lamb::beta2}; }
  constexpr shared start() const { return {0, beta1, beta2}; }
  constexpr void finish(shared& s) const {
    s = {s[0] + 1, portable_math::product(s[1], beta1), portable_math::product(s[2], beta2)};
  }

  template <class N>
  struct constants {
    N rate, correction, new_m, new_v, epsilon, decay;
  };
  constants<double> prepare(const step_info& at, const shared& s) const {
    const double root = std::sqrt(1 - s[2]);
    return {at.rate, root / (1 - s[1]), 1 - beta1, 1 - beta2, epsilon * root, weight_decay};
  }

  static constexpr std::size_t measures = 2;
  template <class N>
  std::array<N, 2> measure(N theta, N g, const constants<N>& c, const N& m, const N& v) const {
    N new_m = m, new_v = v;
    const N u = direction(theta, g, c, new_m, new_v);
    return {theta * theta, u * u};
  }
  constants<double> adapt(constants<double> c, const subject&, std::span<const double> sums) const {
    if (sums[0] != 0 && sums[1] != 0) c.rate = c.rate * (std::sqrt(sums[0]) / std::sqrt(sums[1]));
    return c;
  }

  template <class N>
  N step(N theta, N g, const constants<N>& c, N& m, N& v) const {
    return theta - c.rate * direction(theta, g, c, m, v);
  }
  constexpr bool decays_all_rows() const { return sparse == sparse_mode::decay_all; }

private:
  template <class N>
  static N direction(N theta, N g, const constants<N>& c, N& m, N& v) {
    m = m + c.new_m * (g - m);
    v = v + c.new_v * (g * g - v);
    return c.correction * m / (sqrt(v) + c.epsilon) + c.decay * theta;
  }
};

}  // namespace gradus
