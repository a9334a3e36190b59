// PowerSign multiplies steps by a factor where the gradient agrees in sign with its running mean, and divides them by
// it where it does not.
//
//   m <- beta m + (1 - beta) g                  from 0
//   theta <- theta - rate base^(sign_decay sign(g) sign(m)) g
//
// Bello et al. 2017, arXiv:1709.07417. It is the same as tf.contrib.opt.PowerSignOptimizer, whose sign_decay_fn is a
// schedule of `sign_decay` here (vary<&power_sign::sign_decay>). PyTorch and Optax have no equivalent. Sparse gradients
// (which TensorFlow does not accept): a row that is not listed counts as gradient 0, so that m decays and theta stays,
// unless sparse_mode::lazy.
//
// Source: Bello et al. 2017, arXiv:1709.07417
// TensorFlow: `contrib.opt.PowerSignOptimizer`; sign_decay_fn is a schedule of `sign_decay`
#pragma once
#include "../../base/build.hpp"

#include <numbers>

#include "../../base/math.hpp"
#include "../sparse_mode.hpp"

namespace gradus::inline GRADUS_BUILD {

struct power_sign {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "PowerSignOptimizer";
  static constexpr double default_rate = 0.1;

  std::optional<double> rate = {};              // step length; unset: 0.1, or the schedule
  double base = std::numbers::e;                // the factor; above 0
  double beta = 0.9;                            // how long g is remembered: about 1/(1-beta) steps
  double sign_decay = 1.0;                      // how much agreement counts, 0 to 1
  sparse_mode sparse = sparse_mode::decay_all;  // lazy: rows without a gradient stay; decay_all: they get 0

  static constexpr auto settings() {
    using line = setting<power_sign>;
    return std::array{line{"rate", &power_sign::rate, setting_range::not_negative},
                      line{"base", &power_sign::base, setting_range::positive},
                      line{"beta", &power_sign::beta, setting_range::half_open},
                      line{"sign_decay", &power_sign::sign_decay, setting_range::finite}};
  }

  constexpr auto slots() const { return std::array{slot{"m", 0.0}}; }

  template <class N>
  struct constants {
    N alone, agreed, opposed, beta, fresh;
  };
  constants<double> prepare(const step_info& at) const {
    const double factor = portable_math::pow(base, sign_decay);
    return {at.rate, at.rate * factor, at.rate / factor, beta, 1 - beta};
  }

  template <class N>
  N step(N theta, N g, const constants<N>& c, N& m) const {
    m = c.beta * m + c.fresh * g;
    const N agreement = sign(g) * sign(m);
    return theta - select(agreement > N(0), c.agreed, select(agreement < N(0), c.opposed, c.alone)) * g;
  }
  constexpr bool decays_all_rows() const { return sparse == sparse_mode::decay_all; }
};

}  // namespace gradus
