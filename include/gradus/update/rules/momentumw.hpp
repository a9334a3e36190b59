// MomentumW is momentum with decoupled weight decay: it makes momentum.hpp's step after theta <- theta - weight_decay
// theta.
//
//   a <- momentum a + g                         from 0
//   theta <- theta - weight_decay theta - rate a            with Nesterov: - (rate g + rate momentum a)
//
// It is the same as tf.contrib.opt.MomentumWOptimizer (Loshchilov & Hutter 2019, arXiv:1711.05101: SGDW): the decay is
// not multiplied by the rate, so a schedule must scale it too. The weight_decay of PyTorch's SGD is different: it adds
// weight_decay theta to g. With sparse gradients only the listed rows of theta and a change, and only they decay.
//
// Source: Loshchilov & Hutter 2019, arXiv:1711.05101
// TensorFlow: `contrib.opt.MomentumWOptimizer`
// PyTorch: –: SGD's weight_decay is added to the gradient
#pragma once
#include "../rule.hpp"

namespace gradus::inline GRADUS_BUILD {

struct momentumw {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "MomentumW";

  std::optional<double> rate = {};  // step length; no default
  double momentum = 0.9;            // how much of the sum stays; about 1/(1-momentum) steps are remembered
  bool use_nesterov = false;        // look ahead along the sum
  double weight_decay = 0.0;        // the part of theta that each step removes; TensorFlow has no default

  static constexpr auto settings() {
    using line = setting<momentumw>;
    return std::array{line{"rate", &momentumw::rate, setting_range::not_negative},
                      line{"momentum", &momentumw::momentum, setting_range::not_negative},
                      line{"weight_decay", &momentumw::weight_decay, setting_range::not_negative}};
  }

  constexpr auto slots() const { return std::array{slot{"momentum", 0.0}}; }

  template <class N>
  struct constants {
    N rate, momentum, decay;
  };
  constexpr constants<double> at_rate(double r) const { return {r, momentum, weight_decay}; }
  constexpr constants<double> prepare(const step_info& at) const { return at_rate(at.rate); }

  template <class N>
  N step(N theta, N g, const constants<N>& c, N& a) const {
    a = c.momentum * a + g;
    const N shrunk = theta - c.decay * theta;
    return use_nesterov ? shrunk - (c.rate * g + c.rate * c.momentum * a) : shrunk - c.rate * a;
  }
};

}  // namespace gradus
