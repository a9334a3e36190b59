// Lookahead keeps a slow copy of the weights, which steps towards the fast ones at every k-th step.
#pragma once
#include "part.hpp"

namespace gradus::inline GRADUS_BUILD {

// Every k steps: slow <- slow + alpha (theta - slow), theta <- slow. At the end of a chain:
//   chain{adam{.rate = 1e-3}, lookahead{.every = 5, .alpha = 0.5}}
// Zhang et al. 2019, arXiv:1907.08610, algorithm 1; optax.lookahead. A synchronization does not change the inner rule's
// slots ("maintain" in the paper). slow starts as the variable. With sparse gradients every row is synchronized.
struct lookahead {
  using policy_for = kind::follower;
  static constexpr std::string_view name = "Lookahead";
  std::int64_t every = 5;  // k
  double alpha = 0.5;      // how far slow moves towards theta
  static constexpr std::string_view called = "lookahead";
  static constexpr auto settings() {
    using line = setting<lookahead>;
    return std::array{line{"every", &lookahead::every, setting_range::one_or_more},
                      line{"alpha", &lookahead::alpha, setting_range::unit}};
  }

  static constexpr bool copies_variable = true;  // a slot does, so it takes no fewer bits than the variable
  constexpr auto slots() const { return std::array{slot{"slow", 0.0, true}}; }
  template <class N>
  struct constants {
    N alpha, sync;  // sync: 1 at every k-th step, else 0
  };
  constexpr constants<double> prepare(const step_info& at) const {
    return (at.global_step + 1) % every == 0 ? constants<double>{alpha, 1} : constants<double>{0, 0};
  }
  template <class N>
  N after(N theta, const constants<N>& c, N& slow) const {
    slow = slow + c.alpha * (theta - slow);
    return select(c.sync > N(0), slow, theta);
  }
};

}  // namespace gradus
