// Schedules: the learning rate as a pure function of global_step, the number of steps finished before. A schedule keeps
// no state, so a resumed run finds its rate by itself.
#pragma once
#include <cmath>
#include <concepts>
#include <cstdint>

#include "../base/contract.hpp"

namespace gradus {

template <class S>
concept rate_schedule = policy<S> && std::is_same_v<typename S::policy_for, kind::schedule> &&
                        requires(const S& s, std::int64_t global_step) {
                          { s(global_step) } -> std::convertible_to<double>;
                        };

// The error page of a schedule.
template <class S>
struct schedule_fits {
  static_assert(rate_schedule<S>,
                "gradus: this schedule cannot be asked for a rate; add `double operator()(std::int64_t global_step) "
                "const`.");
  static constexpr bool value = rate_schedule<S>;
};

namespace detail {
// base^exponent for base >= 0 by products and square roots alone: correctly rounded on every machine, so that a
// schedule gives the same bits there; libraries' pow does not. The error is below 100 units in the last place, 10 as a
// rule.
inline double power(double base, double exponent) {
  if (exponent < 0) return 1 / power(base, -exponent);
  const double whole = std::floor(exponent);
  double result = 1, square = base;
  for (double left = whole; left > 0; left = std::floor(left / 2)) {
    if (left - 2 * std::floor(left / 2) > 0) result *= square;
    square *= square;
    if (result == 0 || left > 0x1p60) break;
  }
  double root = base;
  for (double fraction = exponent - whole; fraction > 0 && root != 1;) {
    root = std::sqrt(root);
    fraction += fraction;
    if (fraction >= 1) {
      result *= root;
      fraction -= 1;
    }
  }
  return result;
}
}  // namespace detail

// The same rate at every step.
struct constant {
  using policy_for = kind::schedule;
  double rate = 0.001;
  constexpr double operator()(std::int64_t) const { return rate; }
};

// initial * decay_rate^(global_step / decay_steps); with staircase the exponent is rounded down.
// TensorFlow: tf.train.exponential_decay (which computes in float32; here in double).
struct exponential_decay {
  using policy_for = kind::schedule;
  double initial = 0.001;  // the rate at step 0
  double decay_steps = 1;  // steps for one factor decay_rate
  double decay_rate = 1;   // below 1 for a falling rate
  bool staircase = false;  // in jumps, every decay_steps, instead of smoothly

  double operator()(std::int64_t global_step) const {
    const double p = static_cast<double>(global_step) / decay_steps;
    return initial * detail::power(decay_rate, staircase ? std::floor(p) : p);
  }
};

}  // namespace gradus
