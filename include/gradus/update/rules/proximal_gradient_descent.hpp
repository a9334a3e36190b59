// Proximal gradient descent makes a gradient step, and then finds the exact minimum of the penalty near it
// (forward-backward splitting).
//
//   q = theta - rate g
//   theta <- sign(q) max(|q| - rate l1, 0) / (1 + rate l2)
//
// Duchi & Singer 2009, JMLR 10 (FOBOS). It is the same as tf.train.ProximalGradientDescentOptimizer, except that
// TensorFlow takes only float32 variables on dense gradients. With sparse gradients only the listed rows change, and
// only they are penalized.
//
// Source: Duchi & Singer 2009
// TensorFlow: `train.ProximalGradientDescentOptimizer`
#pragma once
#include "../../base/math.hpp"
#include "../rule.hpp"

namespace gradus::inline GRADUS_BUILD {

struct proximal_gradient_descent {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "ProximalGradientDescent";

  std::optional<double> rate = {};  // step length; no default
  double l1 = 0.0;                  // l1_regularization_strength: larger gives more zeros
  double l2 = 0.0;                  // l2_regularization_strength

  static constexpr auto settings() {
    using line = setting<proximal_gradient_descent>;
    return std::array{line{"rate", &proximal_gradient_descent::rate, setting_range::not_negative},
                      line{"l1", &proximal_gradient_descent::l1, setting_range::not_negative},
                      line{"l2", &proximal_gradient_descent::l2, setting_range::not_negative}};
  }

  template <class N>
  struct constants {
    N rate, l1, divisor;
  };
  constexpr constants<double> prepare(const step_info& at) const {
    return {at.rate, at.rate * l1, 1 + portable_math::product(at.rate, l2)};
  }

  template <class N>
  N step(N theta, N g, const constants<N>& c) const {
    const N q = theta - c.rate * g;
    return copysign(max(N(0), abs(q) - c.l1), q) / c.divisor;  // max keeps a NaN in its second place
  }
};

}  // namespace gradus
