// Gradient descent makes a step against the gradient.
//
//   theta <- theta - rate g
//
// It is the same as TensorFlow's GradientDescentOptimizer and PyTorch's SGD without momentum. With sparse gradients
// only the listed rows change.
//
// Source: Robbins & Monro 1951
// TensorFlow: `train.GradientDescentOptimizer`
// PyTorch: `SGD`
// Optax: `sgd`
#pragma once
#include "../rule.hpp"

namespace gradus::inline GRADUS_BUILD {

struct gradient_descent {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "GradientDescent";

  std::optional<double> rate = {};  // step length; no default: it depends on the loss

  static constexpr auto settings() {
    using line = setting<gradient_descent>;
    return std::array{line{"rate", &gradient_descent::rate, setting_range::not_negative}};
  }

  template <class N>
  struct constants {
    N rate;
  };
  constexpr constants<double> at_rate(double r) const { return {r}; }
  constexpr constants<double> prepare(const step_info& at) const { return at_rate(at.rate); }

  template <class N>
  N step(N theta, N g, const constants<N>& c) const {
    return theta - c.rate * g;
  }
};

}  // namespace gradus
