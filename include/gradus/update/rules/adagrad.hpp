// With Adagrad each element's step shrinks with the gradients that it has seen.
//
//   a <- a + g^2                                from initial_accumulator_value
//   theta <- theta - rate g / (sqrt(a) + epsilon)
//
// Duchi, Hazan & Singer 2011, JMLR 12. TensorFlow 1.x: tf.train.AdagradOptimizer, which has no epsilon (here 0); its
// initial accumulator prevents the division by 0. PyTorch: initial_accumulator_value 0, epsilon 1e-10. Keras: epsilon
// 1e-7. Optax: epsilon 1e-7 under the root. With sparse gradients only the listed rows of theta and a change.
//
// Source: Duchi, Hazan & Singer 2011
// TensorFlow: `train.AdagradOptimizer`
// PyTorch: `Adagrad` without lr_decay: `.initial_accumulator_value = 0, .epsilon = 1e-10`
// Optax: `adagrad`: epsilon 1e-7 stands under the root there
#pragma once
#include "../rule.hpp"
#include "../setting.hpp"

namespace gradus::inline GRADUS_BUILD {

struct adagrad {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "Adagrad";

  std::optional<double> rate = {};         // step length; no default (the canned DNN models take 0.05)
  double initial_accumulator_value = 0.1;  // where a starts; above 0, or 0 with an epsilon
  double epsilon = 0.0;                    // added to sqrt(a)

  static constexpr auto settings() {
    using line = setting<adagrad>;
    return std::array{
        line{"rate", &adagrad::rate, setting_range::not_negative},
        line{"initial_accumulator_value", &adagrad::initial_accumulator_value, setting_range::not_negative},
        line{"epsilon", &adagrad::epsilon, setting_range::not_negative}};
  }

  constexpr auto slots() const { return std::array{slot{"accumulator", initial_accumulator_value}}; }
  constexpr void check() const {
    check_setting(initial_accumulator_value > 0 || (initial_accumulator_value == 0 && epsilon > 0), name,
                  "initial_accumulator_value", initial_accumulator_value, "> 0 (or 0 with an epsilon > 0)");
  }

  template <class N>
  struct constants {
    N rate, epsilon;
  };
  constexpr constants<double> at_rate(double r) const { return {r, epsilon}; }
  constexpr constants<double> prepare(const step_info& at) const { return at_rate(at.rate); }

  template <class N>
  N step(N theta, N g, const constants<N>& c, N& a) const {
    a = a + g * g;
    return theta - c.rate * g / (sqrt(a) + c.epsilon);
  }
};

}  // namespace gradus
