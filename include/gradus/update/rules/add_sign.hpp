// AddSign makes longer steps where the gradient agrees in sign with its running mean.
//
//   m <- beta m + (1 - beta) g                  from 0
//   theta <- theta - rate (alpha + sign_decay sign(g) sign(m)) g
//
// Bello et al. 2017, arXiv:1709.07417. It is the same as tf.contrib.opt.AddSignOptimizer, whose sign_decay_fn is a
// schedule of `sign_decay` here (vary<&add_sign::sign_decay>). PyTorch has no equivalent; Optax's sign_sgd is a
// different rule. Sparse gradients (which TensorFlow does not accept): a row that is not listed counts as gradient 0,
// so that m decays and theta stays, unless sparse_mode::lazy.
//
// Source: Bello et al. 2017, arXiv:1709.07417
// TensorFlow: `contrib.opt.AddSignOptimizer`; sign_decay_fn is a schedule of `sign_decay`
#pragma once
#include "../sparse_mode.hpp"

namespace gradus::inline GRADUS_BUILD {

struct add_sign {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "AddSignOptimizer";
  static constexpr double default_rate = 0.1;

  std::optional<double> rate = {};              // step length; unset: 0.1, or the schedule
  double alpha = 1.0;                           // the part of the step without agreement
  double beta = 0.9;                            // how long g is remembered: about 1/(1-beta) steps
  double sign_decay = 1.0;                      // how much agreement counts, 0 to 1
  sparse_mode sparse = sparse_mode::decay_all;  // lazy: rows without a gradient stay; decay_all: they get 0

  static constexpr auto settings() {
    using line = setting<add_sign>;
    return std::array{line{"rate", &add_sign::rate, setting_range::not_negative},
                      line{"alpha", &add_sign::alpha, setting_range::finite},
                      line{"beta", &add_sign::beta, setting_range::half_open},
                      line{"sign_decay", &add_sign::sign_decay, setting_range::finite}};
  }

  constexpr auto slots() const { return std::array{slot{"m", 0.0}}; }

  template <class N>
  struct constants {
    N rate, alpha, beta, fresh, sign_decay;
  };
  constexpr constants<double> prepare(const step_info& at) const {
    return {at.rate, alpha, beta, 1 - beta, sign_decay};
  }

  template <class N>
  N step(N theta, N g, const constants<N>& c, N& m) const {
    m = c.beta * m + c.fresh * g;
    return theta - c.rate * (c.alpha + c.sign_decay * (sign(g) * sign(m))) * g;
  }
  constexpr bool decays_all_rows() const { return sparse == sparse_mode::decay_all; }
};

}  // namespace gradus
