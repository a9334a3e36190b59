// FTRL-Proximal follows the regularized leader, with rates per element as Adagrad's; it is the rule for sparse linear
// models.
//
//   n' = n + g^2                                accum, from initial_accumulator_value
//   s = (n'^p - n^p) / rate                     p = -learning_rate_power
//   z <- z + g + 2 l2_shrinkage theta - s theta             linear, from 0
//   q = (n'^p + beta) / rate + 2 l2             ftrl_l2::mcmahan: + l2
//   theta <- 0 if |z| <= l1, else (sign(z) l1 - z) / q
//
// McMahan et al. 2013, "Ad click prediction: a view from the trenches", algorithm 1; shrinkage: TensorFlow 1.3. It is
// the same as tf.train.FtrlOptimizer, where l2 counts twice and there is no beta; Keras has the beta; the paper has
// beta and counts l2 once. An initial theta other than 0 is lost: with z = 0 and g = 0 the first step sets it to 0.
// Where q and z are both 0, TensorFlow's dense kernel gives 0 and its sparse kernel NaN; here both give 0. A NaN in z
// stays visible in theta. With l1 = l2 = 0 from theta = 0 this is adagrad (learning_rate_power -0.5) or
// gradient_descent (0). With sparse gradients only the listed rows of theta and of the slots change, and only they
// shrink.
//
// Source: McMahan et al. 2013
// TensorFlow: `train.FtrlOptimizer`; Keras: has `beta` too
#pragma once
#include "../rule.hpp"
#include "../setting.hpp"

namespace gradus::inline GRADUS_BUILD {

// This says how l2 enters the denominator.
enum class ftrl_l2 {
  tensorflow,  // 2 l2
  mcmahan      // l2, as in the paper
};

struct ftrl {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "Ftrl";
  static constexpr bool variable_from_slots = true;

  std::optional<double> rate = {};    // step length, above 0; no default (the canned linear models take 0.2 at most)
  double learning_rate_power = -0.5;  // at most 0; 0 keeps the rate fixed. Other than -0.5, -1 and 0 it costs two pow
  double initial_accumulator_value = 0.1;       // where n starts; at least 0
  double l1 = 0.0;                              // l1_regularization_strength: larger gives more zeros
  double l2 = 0.0;                              // l2_regularization_strength: a penalty that stabilizes
  double l2_shrinkage = 0.0;                    // l2_shrinkage_regularization_strength: a penalty on the magnitude
  double beta = 0.0;                            // added to n'^p: smaller first steps
  ftrl_l2 l2_convention = ftrl_l2::tensorflow;  // whether l2 counts twice

  static constexpr auto settings() {
    using line = setting<ftrl>;
    return std::array{line{"rate", &ftrl::rate, setting_range::positive},
                      line{"learning_rate_power", &ftrl::learning_rate_power, setting_range::not_positive},
                      line{"initial_accumulator_value", &ftrl::initial_accumulator_value, setting_range::not_negative},
                      line{"l1", &ftrl::l1, setting_range::not_negative},
                      line{"l2", &ftrl::l2, setting_range::not_negative},
                      line{"l2_shrinkage", &ftrl::l2_shrinkage, setting_range::not_negative},
                      line{"beta", &ftrl::beta, setting_range::not_negative}};
  }

  constexpr auto slots() const { return std::array{slot{"accum", initial_accumulator_value}, slot{"linear", 0.0}}; }

  template <class N>
  struct constants {
    N inverse_rate, power, l1, l2, shrinkage, least;
  };
  // Raises for a scheduled rate that is not above 0.
  constexpr constants<double> prepare(const step_info& at) const {
    check_setting(at.rate > 0, name, "rate", at.rate, "> 0");
    return {1 / at.rate, -learning_rate_power, l1, l2_convention == ftrl_l2::tensorflow ? 2 * l2 : l2, 2 * l2_shrinkage,
            beta};
  }

  template <class N>
  N step(N theta, N g, const constants<N>& c, N& n, N& z) const {
    return step_with([&](N sums) { return powered(sums, c); }, theta, g, c, n, z);
  }
  // Calls f with this rule or, where the power is a square root, with a rule that does not test the power at every
  // element.
  template <class F>
  void in_form(F f) const {
    if (learning_rate_power == -0.5)
      f(with_root{});
    else
      f(*this);
  }

private:
  template <class Power, class N>
  static N step_with(Power power, N theta, N g, const constants<N>& c, N& n, N& z) {
    const N before = power(n);
    n = n + g * g;
    const N after = power(n);
    z = z + (g + c.shrinkage * theta) - (after - before) * c.inverse_rate * theta;
    const N q = (after + c.least) * c.inverse_rate + c.l2;
    return select(abs(z) <= c.l1, N(0), (copysign(c.l1, z) - z) / q);
  }
  struct with_root {
    template <class N>
    N step(N theta, N g, const constants<N>& c, N& n, N& z) const {
      return step_with([](N sums) { return sqrt(sums); }, theta, g, c, n, z);
    }
  };
  template <class N>
  N powered(N n, const constants<N>& c) const {
    if (learning_rate_power == -0.5) return sqrt(n);
    if (learning_rate_power == 0) return N(1);
    if (learning_rate_power == -1) return n;
    return pow(n, c.power);
  }
};

}  // namespace gradus
