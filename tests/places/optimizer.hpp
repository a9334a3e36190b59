// Sliding mean: descent along a running mean of the gradients. A template: tests/places/places.py adds it.
//
//   m <- m + (1 - beta)(g - m)                  mean, from 0
//   theta <- theta - rate m
//
// Source: Polyak 1964, with the mean in the place of the sum
// PyTorch: `SGD(momentum=beta, dampening=beta)`
#pragma once
#include "../rule.hpp"

namespace gradus::inline GRADUS_BUILD {

struct sliding_mean {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "SlidingMean";

  std::optional<double> rate = {};  // step length; no default
  double beta = 0.9;                // how long g is remembered: about 1/(1-beta) steps

  static constexpr auto settings() {
    using line = setting<sliding_mean>;
    return std::array{line{"rate", &sliding_mean::rate, setting_range::not_negative},
                      line{"beta", &sliding_mean::beta, setting_range::half_open}};
  }
  constexpr auto slots() const { return std::array{slot{"mean", 0.0}}; }

  template <class N>
  struct constants {
    N rate, share;
  };
  constexpr constants<double> prepare(const step_info& at) const { return {at.rate, 1 - beta}; }

  template <class N>
  N step(N theta, N g, const constants<N>& c, N& m) const {
    m = m + c.share * (g - m);
    return theta - c.rate * m;
  }
};

}  // namespace gradus
