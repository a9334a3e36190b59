// Adagrad dual averaging computes the variable anew each step from all gradients so far, which makes it truly sparse.
//
//   G <- G + g                                  gradient_accumulator, from 0
//   Q <- Q + g^2                                gradient_squared_accumulator, from initial_accumulator_value
//   theta <- - rate sign(G) max(|G| - T l1, 0) / (T l2 rate + sqrt(Q)),     T = global_step + 1
//
// Duchi, Hazan & Singer 2011, JMLR 12, in the form of tf.train.AdagradDAOptimizer. The initial theta has no effect
// after the first step. T is the updater's global_step + 1, so it also counts steps in which this variable had no
// gradient, and a row whose first gradient comes late is regularized for all of them. TensorFlow never advances the
// step by itself; an updater does, once per apply. With sparse gradients only the listed rows change. PyTorch and Optax
// have no equivalent.
//
// Source: Duchi, Hazan & Singer 2011
// TensorFlow: `train.AdagradDAOptimizer`; the step is the updater's global_step
#pragma once
#include "../rule.hpp"
#include "../setting.hpp"

namespace gradus::inline GRADUS_BUILD {

struct adagrad_da {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "AdagradDA";
  static constexpr bool variable_from_slots = true;

  std::optional<double> rate = {};         // step length; no default
  double initial_accumulator_value = 0.1;  // TensorFlow's initial_gradient_squared_accumulator_value; above 0
  double l1 = 0.0;                         // l1_regularization_strength: larger gives more zeros
  double l2 = 0.0;                         // l2_regularization_strength

  static constexpr auto settings() {
    using line = setting<adagrad_da>;
    return std::array{
        line{"rate", &adagrad_da::rate, setting_range::not_negative},
        line{"initial_accumulator_value", &adagrad_da::initial_accumulator_value, setting_range::positive},
        line{"l1", &adagrad_da::l1, setting_range::not_negative},
        line{"l2", &adagrad_da::l2, setting_range::not_negative}};
  }

  constexpr auto slots() const {
    return std::array{slot{"gradient_accumulator", 0.0},
                      slot{"gradient_squared_accumulator", initial_accumulator_value}};
  }

  template <class N>
  struct constants {
    N rate, l1, l2;
  };
  constexpr constants<double> prepare(const step_info& at) const {
    const double t = static_cast<double>(at.global_step) + 1;
    return {at.rate, t * l1, t * at.rate * l2};
  }

  template <class N>
  N step(N, N g, const constants<N>& c, N& sum, N& squares) const {
    sum = sum + g;
    squares = squares + g * g;
    const N kept = copysign(max(N(0), abs(sum) - c.l1), sum);  // max keeps a NaN in its second place
    return -(c.rate * kept) / (c.l2 + sqrt(squares));
  }
};

}  // namespace gradus
