// Momentum makes steps along a decaying sum of gradients.
//
//   a <- momentum a + g                         from 0
//   theta <- theta - rate a                     or, with Nesterov: theta <- theta - (rate g + rate momentum a)
//
// Polyak 1964; Sutskever et al. 2013. As in TensorFlow 1.x, the rate is applied when a is read, so a change of rate
// acts at once. PyTorch's SGD is the same with dampening 0. With sparse gradients, rows that are not listed keep theta
// and a.
//
// Source: Polyak 1964; Sutskever et al. 2013
// TensorFlow: `train.MomentumOptimizer`; `momentum` is `decay` here
// PyTorch: `SGD(momentum=, nesterov=)` with dampening 0
// Optax: `sgd(momentum=, nesterov=)`
#pragma once
#include "../rule.hpp"

namespace gradus::inline GRADUS_BUILD {

struct momentum {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "Momentum";

  std::optional<double> rate = {};  // step length; no default: it depends on the loss
  double decay = 0.9;  // TensorFlow's `momentum`: how much of the sum stays; about 1/(1-decay) steps are remembered
  bool use_nesterov = false;  // look ahead along the sum; often steadier at high decay

  static constexpr auto settings() {
    using line = setting<momentum>;
    return std::array{line{"rate", &momentum::rate, setting_range::not_negative},
                      line{"decay", &momentum::decay, setting_range::not_negative}};
  }

  constexpr auto slots() const { return std::array{slot{"momentum", 0.0}}; }

  template <class N>
  struct constants {
    N rate, decay;
  };
  constexpr constants<double> at_rate(double r) const { return {r, decay}; }
  constexpr constants<double> prepare(const step_info& at) const { return at_rate(at.rate); }

  template <class N>
  N step(N theta, N g, const constants<N>& c, N& a) const {
    a = c.decay * a + g;
    return use_nesterov ? theta - (c.rate * g + c.rate * c.decay * a) : theta - c.rate * a;
  }
};

}  // namespace gradus
