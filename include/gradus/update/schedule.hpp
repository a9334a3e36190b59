// A schedule gives the learning rate, or any other setting, as a pure function of global_step, the number of finished
// steps. It keeps no state, so a resumed run continues with the right rate. The table of all schedules is in
// docs/schedules.md.
//
//   struct my_schedule {
//     using policy_for = gradus::kind::schedule;
//     double operator()(std::int64_t global_step) const { return 0.1 / (1.0 + global_step); }
//   };
//
// Any function of the step is a schedule too, for instance `[](std::int64_t step) { return 0.1 / (1.0 + step); }`.
//
// All are computed in double and give the same bits on every machine (base/math.hpp). TensorFlow computes in the type
// of its learning rate, usually float32, so its values differ from the eighth digit on. As in TensorFlow, a call of a
// schedule checks nothing: decay_steps = 0 gives NaN. An update checks its schedules: it calls `void check() const`, if
// the schedule has it, when it is made, and checks every value at its step.
//
// The exception is a schedule that observes a value (reduce_on_plateau). It has `void observe(double value)`, `void
// restart()` and `template <class List> void remembers(List&)`, which saves its state in the checkpoint.
#pragma once
#include "../base/build.hpp"

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "../base/contract.hpp"
#include "../base/error.hpp"
#include "../base/math.hpp"

namespace gradus::inline GRADUS_BUILD {

template <class S>
concept rate_schedule = detail::is_of<kind::schedule, S>() && requires(const S& s, std::int64_t global_step) {
  { s(global_step) } -> std::convertible_to<double>;
};

// A stateful schedule observes values and must be saved.
template <class S>
concept observing_schedule = rate_schedule<S> && requires(S& s, double value) {
  s.observe(value);
  s.restart();
};

namespace detail {
// Returns whether the schedule, or a part of it, observes values that are better the other way than these.
template <class S>
constexpr bool observes_other_way(const S& schedule, bool higher_is_better) {
  if constexpr (requires { schedule.observes_other_way(higher_is_better); })
    return schedule.observes_other_way(higher_is_better);
  else
    return false;
}
// Returns the schedule's value in double; a user's function may return another type of number.
template <class S>
constexpr double value_at(const S& schedule, std::int64_t global_step) {
  return static_cast<double>(schedule(global_step));
}
// This is the placeholder for a missing schedule.
struct no_schedule {
  using policy_for = kind::schedule;
  constexpr double operator()(std::int64_t) const { return 0; }
};
// Raises for check() of a schedule that falls over a number of steps: without that number it would be over at step 1.
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_short(std::string_view schedule, std::string_view setting,
                                                                [[maybe_unused]] double found) {
#if defined(__cpp_exceptions)
  raise(status::invalid_argument, schedule, ": expected `", setting, "` > 1, found ", found,
        ": the schedule would be over at step 1. Set it to the number of steps that the schedule takes");
#else
  raise(status::invalid_argument, schedule, ": expected `", setting, "` > 1");
#endif
}
// The range of a setting of a schedule, for its check(): refuse_bound has it in words, check_bound as a comparison that
// a NaN fails.
enum class schedule_bound : unsigned char { positive, not_negative, share };
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_setting(std::string_view schedule, std::string_view setting,
                                                                  std::string_view words,
                                                                  [[maybe_unused]] double found) {
#if defined(__cpp_exceptions)
  raise(status::invalid_argument, schedule, ": expected `", setting, "` ", words, ", found ", found);
#else
  raise(status::invalid_argument, schedule, ": expected `", setting, "` ", words);
#endif
}
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_bound(std::string_view schedule, std::string_view setting,
                                                                schedule_bound bound, double found) {
  refuse_setting(schedule, setting,
                 bound == schedule_bound::positive       ? "finite and > 0"
                 : bound == schedule_bound::not_negative ? "finite and >= 0"
                                                         : "in [0, 1]",
                 found);
}
constexpr void check_bound(std::string_view schedule, std::string_view setting, double x,
                           schedule_bound bound = schedule_bound::positive) {
  const bool above = bound == schedule_bound::positive ? x > 0 : x >= 0;
  if (!above || !(bound == schedule_bound::share ? x <= 1 : x < portable_math::infinity))
    refuse_bound(schedule, setting, bound, x);
}
constexpr void check_length(std::string_view schedule, std::string_view setting, double steps) {
  check_bound(schedule, setting, steps);
  if (!(steps > 1)) refuse_short(schedule, setting, steps);
}
// Calls check() of those parts of a schedule that have it.
template <class... Parts>
constexpr void check_all(const Parts&... parts) {
  const auto one = [](const auto& s) {
    if constexpr (requires { s.check(); }) s.check();
  };
  (one(parts), ...);
}
// True if this schedule may return a rate below 0.
template <class S>
inline constexpr bool may_be_negative = requires { requires S::may_be_negative; };
}  // namespace detail

// Checks a schedule at compile time and reports what it lacks.
template <class S>
struct schedule_fits {
  static_assert(rate_schedule<S>,
                "gradus: this schedule gives no rate; add `double operator()(std::int64_t global_step) "
                "const`.");
  static constexpr bool value = rate_schedule<S>;
};

namespace detail {
// Returns p = global_step / decay_steps; with staircase it is rounded down.
constexpr double periods(std::int64_t global_step, double decay_steps, bool staircase) {
  const double p = static_cast<double>(global_step) / decay_steps;
  return staircase ? portable_math::floor(p) : p;
}
// Returns (1 + cos(pi x)) / 2, which falls from 1 at 0 to 0 at 1.
constexpr double half_cosine(double x) { return 0.5 * (1 + portable_math::cos_pi(x)); }
// Returns the linear interpolation between a, at share 0, and b, at share 1.
constexpr double between(double a, double b, double share) { return a + portable_math::product(b - a, share); }
}  // namespace detail

// This schedule gives the same rate at every step.
//
// Value: rate
// Settings: `rate`
// Elsewhere: Optax constant_schedule
struct constant {
  using policy_for = kind::schedule;
  double rate = 0.001;
  constexpr double operator()(std::int64_t) const { return rate; }
};

// initial * decay_rate^(global_step / decay_steps); with staircase the exponent is rounded down.
// TensorFlow: tf.train.exponential_decay. Optax: exponential_decay(init_value, transition_steps, decay_rate). PyTorch:
// ExponentialLR(gamma) is decay_steps = 1, StepLR(step_size, gamma) is staircase.
//
// Value: initial · decay_rate^p, p = s/D, rounded down with `staircase`
// Settings: `initial, decay_steps, decay_rate = 1, staircase = false`
// Elsewhere: Optax exponential_decay(init_value, transition_steps, decay_rate, staircase); PyTorch
//   ExponentialLR(gamma): D = 1; StepLR(step_size, gamma): staircase
struct exponential_decay {
  using policy_for = kind::schedule;
  double initial = 0.001;  // the rate at step 0
  double decay_steps = 0;  // steps for one factor decay_rate; it has to be set
  double decay_rate = 1;   // below 1 for a falling rate
  bool staircase = false;  // in jumps, every decay_steps, instead of smoothly

  constexpr void check() const {
    detail::check_bound("exponential_decay", "decay_steps", decay_steps);
    detail::check_bound("exponential_decay", "decay_rate", decay_rate);
  }
  constexpr double operator()(std::int64_t global_step) const {
    const double p = detail::periods(global_step, decay_steps, staircase);
    return portable_math::product(initial, portable_math::pow(decay_rate, p));
  }
};

}  // namespace gradus
