// Lion moves every element by a step of the same size, in the direction of the sign of an interpolated momentum. It has
// one slot instead of Adam's two.
//
//   c = beta1 m + (1 - beta1) g                 with the m of the step before
//   theta <- theta - rate (sign(c) + weight_decay theta)
//   m <- beta2 m + (1 - beta2) g                from 0
//
// Chen et al. 2023, arXiv:2302.06675, which recommends a rate 3 to 10 times below AdamW's and a weight_decay as much
// above it. Optax has weight_decay 1e-3 and no default rate; Keras has rate 0.001 and no weight_decay. sign(0) is 0.
// Sparse gradients: a row that is not listed counts as gradient 0 (it moves by its momentum), unless sparse_mode::lazy.
//
// Source: Chen et al. 2023, arXiv:2302.06675
// TensorFlow: Keras `Lion`: `.rate = 0.001`
// Optax: `lion`: `.weight_decay = 1e-3`
#pragma once
#include "../sparse_mode.hpp"

namespace gradus::inline GRADUS_BUILD {

struct lion {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "Lion";
  static constexpr double default_rate = 0.0001;

  std::optional<double> rate = {};              // step length of every element; unset: 0.0001, or the schedule
  double beta1 = 0.9;                           // how much of m the step follows
  double beta2 = 0.99;                          // how long g is remembered: about 1/(1-beta2) steps
  double weight_decay = 0.0;                    // times the rate
  sparse_mode sparse = sparse_mode::decay_all;  // lazy: rows without a gradient stay; decay_all: they get 0

  static constexpr auto settings() {
    using line = setting<lion>;
    return std::array{line{"rate", &lion::rate, setting_range::not_negative},
                      line{"beta1", &lion::beta1, setting_range::unit},
                      line{"beta2", &lion::beta2, setting_range::unit},
                      line{"weight_decay", &lion::weight_decay, setting_range::not_negative}};
  }

  constexpr auto slots() const { return std::array{slot{"m", 0.0}}; }

  template <class N>
  struct constants {
    N rate, decay, beta1, fresh1, beta2, fresh2;
  };
  constexpr constants<double> at_rate(double r) const {
    return {r, r * weight_decay, beta1, 1 - beta1, beta2, 1 - beta2};
  }
  constexpr constants<double> prepare(const step_info& at) const { return at_rate(at.rate); }

  template <class N>
  N step(N theta, N g, const constants<N>& c, N& m) const {
    const N direction = sign(c.beta1 * m + c.fresh1 * g);
    m = c.beta2 * m + c.fresh2 * g;
    return theta - c.rate * direction - c.decay * theta;
  }
  constexpr bool decays_all_rows() const { return sparse == sparse_mode::decay_all; }
};

}  // namespace gradus
