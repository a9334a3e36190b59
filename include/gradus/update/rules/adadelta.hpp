// Adadelta makes steps in the units of the variable, from the ratio of two running averages.
//
//   a <- rho a + (1 - rho) g^2                  accum, from 0
//   u = sqrt(d + epsilon) / sqrt(a + epsilon) g
//   theta <- theta - rate u
//   d <- rho d + (1 - rho) u^2                  accum_update, from 0
//
// Zeiler 2012, arXiv:1212.5701, which has rate 1. tf.train.AdadeltaOptimizer's default rate is 0.001, far from it;
// PyTorch has rate 1, rho 0.9, epsilon 1e-6, and Optax rho 0.9, epsilon 1e-6. All compute the same formula. With sparse
// gradients only the listed rows of theta and of the slots change.
//
// Source: Zeiler 2012, arXiv:1212.5701
// TensorFlow: `train.AdadeltaOptimizer`
// PyTorch: `Adadelta`: `.rate = 1, .rho = 0.9, .epsilon = 1e-6`
// Optax: `adadelta`: `.rho = 0.9, .epsilon = 1e-6`
#pragma once
#include "../rule.hpp"

namespace gradus::inline GRADUS_BUILD {

struct adadelta {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "Adadelta";
  static constexpr double default_rate = 0.001;

  std::optional<double> rate = {};  // step length; unset: 0.001, or the schedule
  double rho = 0.95;                // how long squares are remembered: about 1/(1-rho) steps
  double epsilon = 1e-8;            // sets the size of the first steps, sqrt(epsilon) times the rate

  static constexpr auto settings() {
    using line = setting<adadelta>;
    return std::array{line{"rate", &adadelta::rate, setting_range::not_negative},
                      line{"rho", &adadelta::rho, setting_range::unit},
                      line{"epsilon", &adadelta::epsilon, setting_range::not_negative}};
  }

  constexpr auto slots() const { return std::array{slot{"accum", 0.0}, slot{"accum_update", 0.0}}; }

  template <class N>
  struct constants {
    N rate, rho, fresh, epsilon;
  };
  constexpr constants<double> at_rate(double r) const { return {r, rho, 1 - rho, epsilon}; }
  constexpr constants<double> prepare(const step_info& at) const { return at_rate(at.rate); }

  template <class N>
  N step(N theta, N g, const constants<N>& c, N& a, N& d) const {
    a = c.rho * a + c.fresh * (g * g);
    const N u = sqrt(d + c.epsilon) / sqrt(a + c.epsilon) * g;
    d = c.rho * d + c.fresh * (u * u);
    return theta - c.rate * u;
  }
};

}  // namespace gradus
