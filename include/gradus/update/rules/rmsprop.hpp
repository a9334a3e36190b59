// RMSProp divides the gradient by its running root mean square, with momentum.
//
//   ms <- ms + (1 - decay)(g^2 - ms)            rms, from 1
//   mg <- mg + (1 - decay)(g - mg)              mg, from 0; only centered_rmsprop has it
//   mom <- momentum mom + rate g / sqrt(ms + epsilon)            centered: sqrt(ms - mg^2 + epsilon)
//   theta <- theta - mom                        momentum, from 0
//
// Tieleman & Hinton 2012, lecture 6.5; centered: Graves 2013, arXiv:1308.0850. As in tf.train.RMSPropOptimizer, ms
// starts at 1, epsilon is under the root, and the buffer holds steps already multiplied by the rate, so a new rate acts
// slowly. In PyTorch ms starts at 0, epsilon (1e-8) is outside the root, the buffer holds steps before the rate, and
// decay (its alpha) is 0.99. In Optax ms starts at 0; otherwise it is the same (epsilon 1e-8). The centered difference
// is not clamped: where
// rounding makes it negative the result is NaN, as in TensorFlow; raise epsilon. With sparse gradients only the listed
// rows of theta and of the slots change.
//
// Source: Tieleman & Hinton 2012, lecture 6.5
// TensorFlow: `train.RMSPropOptimizer`
// PyTorch: `RMSprop`: epsilon outside the root, the buffer before the rate, mean square from 0; alike only with
//   momentum 0 and a small epsilon
// Optax: `rmsprop(momentum=)`: `.initial_rms = 0, .epsilon = 1e-8`
#pragma once
#include "../rule.hpp"

namespace gradus::inline GRADUS_BUILD {

struct rmsprop {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "RMSProp";

  std::optional<double> rate = {};  // step length; no default
  double decay = 0.9;               // how long squares are remembered: about 1/(1-decay) steps
  double momentum = 0.0;            // how much of the last step is repeated
  double epsilon = 1e-10;           // added to the mean square, under the root
  double initial_rms = 1.0;         // where ms starts; PyTorch and Optax: 0

  static constexpr auto settings() {
    using line = setting<rmsprop>;
    return std::array{line{"rate", &rmsprop::rate, setting_range::not_negative},
                      line{"decay", &rmsprop::decay, setting_range::unit},
                      line{"momentum", &rmsprop::momentum, setting_range::not_negative},
                      line{"epsilon", &rmsprop::epsilon, setting_range::not_negative},
                      line{"initial_rms", &rmsprop::initial_rms, setting_range::not_negative}};
  }

  constexpr auto slots() const { return std::array{slot{"rms", initial_rms}, slot{"momentum", 0.0}}; }

  template <class N>
  struct constants {
    N rate, fresh, momentum, epsilon;
  };
  constexpr constants<double> at_rate(double r) const { return {r, 1 - decay, momentum, epsilon}; }
  constexpr constants<double> prepare(const step_info& at) const { return at_rate(at.rate); }

  template <class N>
  N step(N theta, N g, const constants<N>& c, N& ms, N& mom) const {
    ms = ms + c.fresh * (g * g - ms);
    mom = c.momentum * mom + c.rate * g / sqrt(ms + c.epsilon);
    return theta - mom;
  }
};

// RMSProp with centered=True divides by the running standard deviation. It is a separate rule, since it keeps one more
// array for each variable.
//
// Source: Graves 2013, arXiv:1308.0850
// TensorFlow: `train.RMSPropOptimizer(centered=True)`
// PyTorch: `RMSprop(centered=True)`, differing as rmsprop does
// Optax: `rmsprop(centered=True)`, as rmsprop
struct centered_rmsprop {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "RMSProp";

  std::optional<double> rate = {};  // settings as rmsprop's
  double decay = 0.9;
  double momentum = 0.0;
  double epsilon = 1e-10;
  double initial_rms = 1.0;

  static constexpr auto settings() {
    using line = setting<centered_rmsprop>;
    return std::array{line{"rate", &centered_rmsprop::rate, setting_range::not_negative},
                      line{"decay", &centered_rmsprop::decay, setting_range::unit},
                      line{"momentum", &centered_rmsprop::momentum, setting_range::not_negative},
                      line{"epsilon", &centered_rmsprop::epsilon, setting_range::not_negative},
                      line{"initial_rms", &centered_rmsprop::initial_rms, setting_range::not_negative}};
  }

  constexpr auto slots() const { return std::array{slot{"rms", initial_rms}, slot{"mg", 0.0}, slot{"momentum", 0.0}}; }

  template <class N>
  using constants = rmsprop::constants<N>;
  constexpr constants<double> at_rate(double r) const { return {r, 1 - decay, momentum, epsilon}; }
  constexpr constants<double> prepare(const step_info& at) const { return at_rate(at.rate); }

  template <class N>
  N step(N theta, N g, const constants<N>& c, N& ms, N& mg, N& mom) const {
    ms = ms + c.fresh * (g * g - ms);
    mg = mg + c.fresh * (g - mg);
    mom = c.momentum * mom + c.rate * g / sqrt(ms - mg * mg + c.epsilon);
    return theta - mom;
  }
};

}  // namespace gradus
