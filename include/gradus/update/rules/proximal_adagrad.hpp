// Proximal Adagrad is proximal_gradient_descent with Adagrad's rate for each element.
//
//   a <- a + g^2                                accumulator, from initial_accumulator_value
//   eta = rate / sqrt(a),   q = theta - eta g
//   theta <- sign(q) max(|q| - eta l1, 0) / (1 + eta l2)
//
// Duchi, Hazan & Singer 2011, JMLR 12. It is the same as tf.train.ProximalAdagradOptimizer, except that TensorFlow
// takes only float32 variables on dense gradients. With sparse gradients only the listed rows of theta and of the
// accumulator change, and only they are penalized. PyTorch and Optax have no equivalent.
//
// Source: Duchi, Hazan & Singer 2011
// TensorFlow: `train.ProximalAdagradOptimizer`
#pragma once
#include "../rule.hpp"
#include "../setting.hpp"

namespace gradus::inline GRADUS_BUILD {

struct proximal_adagrad {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "ProximalAdagrad";

  std::optional<double> rate = {};         // step length; no default
  double initial_accumulator_value = 0.1;  // where a starts; above 0
  double l1 = 0.0;                         // l1_regularization_strength: larger gives more zeros
  double l2 = 0.0;                         // l2_regularization_strength

  static constexpr auto settings() {
    using line = setting<proximal_adagrad>;
    return std::array{
        line{"rate", &proximal_adagrad::rate, setting_range::not_negative},
        line{"initial_accumulator_value", &proximal_adagrad::initial_accumulator_value, setting_range::positive},
        line{"l1", &proximal_adagrad::l1, setting_range::not_negative},
        line{"l2", &proximal_adagrad::l2, setting_range::not_negative}};
  }

  constexpr auto slots() const { return std::array{slot{"accumulator", initial_accumulator_value}}; }

  template <class N>
  struct constants {
    N rate, l1, l2;
  };
  constexpr constants<double> prepare(const step_info& at) const { return {at.rate, l1, l2}; }

  template <class N>
  N step(N theta, N g, const constants<N>& c, N& a) const {
    a = a + g * g;
    const N eta = c.rate / sqrt(a);
    const N q = theta - eta * g;
    return copysign(max(N(0), abs(q) - eta * c.l1), q) / (N(1) + eta * c.l2);  // a NaN stays: max's second place
  }
};

}  // namespace gradus
