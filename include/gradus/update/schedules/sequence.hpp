// These schedules combine others: one after another, scaled, or multiplied. The result is a schedule, so combinations
// nest.
//
//   gradus::sequence(gradus::constant{0.1}, 1000, gradus::cosine_decay{.initial = 0.1, .decay_steps = 9000})
//   gradus::linear_warmup{.peak = 0.1, .warmup_steps = 500}.then(gradus::inverse_time_decay{...})
//   gradus::product_of(gradus::linear_warmup{.peak = 1, .warmup_steps = 500}, gradus::reduce_on_plateau{...})
//
// Where a part observes values (reduce_on_plateau), the combination does too: it passes observe, restart and remembers
// on.
#pragma once
#include "../schedule.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
template <class List, class S>
concept remembering_schedule = requires(S& s, List& list) { s.remembers(list); };

template <class... Parts>
void observe_all(double value, Parts&... parts) {
  const auto one = [value](auto& s) {
    if constexpr (observing_schedule<std::remove_reference_t<decltype(s)>>) s.observe(value);
  };
  (one(parts), ...);
}
template <class... Parts>
void restart_all(Parts&... parts) {
  const auto one = [](auto& s) {
    if constexpr (observing_schedule<std::remove_reference_t<decltype(s)>>) s.restart();
  };
  (one(parts), ...);
}
template <class List, class... Parts>
void remember_all(List& list, Parts&... parts) {
  const auto one = [&list](auto& s) {
    if constexpr (remembering_schedule<List, std::remove_reference_t<decltype(s)>>) s.remembers(list);
  };
  (one(parts), ...);
}
}  // namespace detail

// Follows `first` before at_step, and `next` from there on, whose own steps are counted from 0.
template <class First, class Next>
struct schedule_sequence {
  using policy_for = kind::schedule;
  static_assert(schedule_fits<First>::value && schedule_fits<Next>::value);
  static constexpr bool may_be_negative = detail::may_be_negative<First> || detail::may_be_negative<Next>;
  First first;
  std::int64_t at_step = 0;
  Next next;

  constexpr double operator()(std::int64_t global_step) const {
    return global_step < at_step ? detail::value_at(first, global_step) : detail::value_at(next, global_step - at_step);
  }
  constexpr void check() const {
    detail::check_bound("sequence", "at_step", static_cast<double>(at_step), detail::schedule_bound::not_negative);
    detail::check_all(first, next);
  }
  // Returns this sequence followed by `later` from at_later_step on, which counts from the beginning of the whole
  // sequence.
  template <class Later>
  constexpr schedule_sequence<schedule_sequence, Later> then(std::int64_t at_later_step, Later later) const {
    return {*this, at_later_step, later};
  }

  void observe(double value)
    requires(observing_schedule<First> || observing_schedule<Next>)
  {
    detail::observe_all(value, first, next);
  }
  constexpr bool observes_other_way(bool higher) const {
    return detail::observes_other_way(first, higher) || detail::observes_other_way(next, higher);
  }
  void restart()
    requires(observing_schedule<First> || observing_schedule<Next>)
  {
    detail::restart_all(first, next);
  }
  template <class List>
    requires(detail::remembering_schedule<List, First> || detail::remembering_schedule<List, Next>)
  void remembers(List& list) {
    detail::remember_all(list, first, next);
  }
};

// Returns the schedule that follows first, then next from at_step on, then a later schedule from a later step on, ...:
// sequence(a, 100, b, 500, c). The given steps are global steps; each schedule counts its own steps from 0. Optax:
// join_schedules({a, b, c}, {100, 500}). PyTorch: SequentialLR.
template <class First, class Next>
constexpr schedule_sequence<First, Next> sequence(First first, std::int64_t at_step, Next next) {
  return {first, at_step, next};
}
template <class First, class Next, class... Later>
  requires(sizeof...(Later) != 0)
constexpr auto sequence(First first, std::int64_t at_step, Next next, Later... later) {
  return sequence(sequence(first, at_step, next), later...);
}

// This is the value of a schedule times `factor`.
template <class S>
struct scaled_schedule {
  using policy_for = kind::schedule;
  static_assert(schedule_fits<S>::value);
  static constexpr bool may_be_negative = detail::may_be_negative<S>;
  S schedule;
  double factor = 1;

  constexpr double operator()(std::int64_t global_step) const {
    return portable_math::product(factor, detail::value_at(schedule, global_step));
  }
  constexpr void check() const { detail::check_all(schedule); }
  void observe(double value)
    requires observing_schedule<S>
  {
    schedule.observe(value);
  }
  constexpr bool observes_other_way(bool higher) const { return detail::observes_other_way(schedule, higher); }
  void restart()
    requires observing_schedule<S>
  {
    schedule.restart();
  }
  template <class List>
    requires detail::remembering_schedule<List, S>
  void remembers(List& list) {
    schedule.remembers(list);
  }
};
template <class S>
constexpr scaled_schedule<S> scaled(S schedule, double factor) {
  return {schedule, factor};
}

// a * b at every step, for instance a rate times a share. PyTorch: ChainedScheduler of multiplicative schedules.
template <class A, class B>
struct schedule_product {
  using policy_for = kind::schedule;
  static_assert(schedule_fits<A>::value && schedule_fits<B>::value);
  static constexpr bool may_be_negative = detail::may_be_negative<A> || detail::may_be_negative<B>;
  A a;
  B b;

  constexpr double operator()(std::int64_t global_step) const {
    return portable_math::product(detail::value_at(a, global_step), detail::value_at(b, global_step));
  }
  constexpr void check() const { detail::check_all(a, b); }
  void observe(double value)
    requires(observing_schedule<A> || observing_schedule<B>)
  {
    detail::observe_all(value, a, b);
  }
  constexpr bool observes_other_way(bool higher) const {
    return detail::observes_other_way(a, higher) || detail::observes_other_way(b, higher);
  }
  void restart()
    requires(observing_schedule<A> || observing_schedule<B>)
  {
    detail::restart_all(a, b);
  }
  template <class List>
    requires(detail::remembering_schedule<List, A> || detail::remembering_schedule<List, B>)
  void remembers(List& list) {
    detail::remember_all(list, a, b);
  }
};
template <class A, class B>
constexpr schedule_product<A, B> product_of(A a, B b) {
  return {a, b};
}

}  // namespace gradus
