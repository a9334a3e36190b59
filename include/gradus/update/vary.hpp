// `vary` makes any numeric setting of a policy a function of the step:
//
//   gradus::updater u{gradus::adam{}, gradus::vary<&gradus::adam::beta1>(gradus::one_cycle{...}),
//                     gradus::vary<&gradus::clip_by_global_norm::max_norm>([](std::int64_t step) { return ...; }),
//                     gradus::clip_by_global_norm{}};
//
// The member is set before each step, in every part of the update that is of its class (chains, groups, the clip, the
// average, the accumulation, the noise and the loss scale included), and its value is checked as at construction. An
// update with vary<member>(constant{c}) gives the same bits as one whose member is c. Where a rule keeps the product of
// a setting over the steps (Adam's beta1_power), it is the product of the values at those steps.
//
// vary<&rule::rate> sets the rate as a schedule beside the rule does; then neither another schedule nor `.rate` may be
// given. A setting that is only an initial value (initial_accumulator_value) has its value of step 0. A setting that
// decides the shapes of slots (soap::max_precondition_dim) must keep its value.
#pragma once
#include "../base/build.hpp"

#include <string>
#include <tuple>
#include <type_traits>

#include "schedule.hpp"
#include "setting.hpp"

namespace gradus::inline GRADUS_BUILD {

// A setting of Owner that follows a schedule. Rate is true if it is the rate of a rule.
template <class Owner, rate_schedule Schedule, bool Rate = false>
struct varied {
  using policy_for = kind::variation;
  using owner = Owner;
  static constexpr bool of_rate = Rate;
  setting<Owner> what;
  Schedule follows;

  // A cluster serializes it with these two functions: the setting by its name.
  std::tuple<std::string, Schedule> sent_as() const { return {std::string(what.name), follows}; }
  static varied from_sent(const std::tuple<std::string, Schedule>& sent)
    requires detail::has_settings<Owner>
  {
    for (const setting<Owner>& line : detail::settings_of<Owner>)
      if (line.name == std::get<0>(sent)) return {line, std::get<1>(sent)};
    raise(status::data_loss, text("malformed policy: there is no setting \"", std::get<0>(sent), "\""));
  }
};

namespace detail {

template <class Member>
struct member_of {
  static constexpr bool is_member = false;
};
template <class R, class T>
struct member_of<T R::*> {
  using owner = R;
  static constexpr bool is_member = std::is_object_v<T>;
  static constexpr bool is_number = requires(T R::*m) { setting<R>{{}, m}; };
};
// Returns the line of a member in its owner's table; for an owner without a table, a line that allows every number.
template <auto Member>
constexpr auto line_of() {
  using owner = typename member_of<decltype(Member)>::owner;
  setting<owner> line{"the setting", Member, setting_range::number};
  if constexpr (has_settings<owner>)
    for (const auto& known : owner::settings())
      if (known == line) return known;
  return line;
}
template <auto Member>
consteval bool is_setting() {
  using owner = typename member_of<decltype(Member)>::owner;
  if constexpr (has_settings<owner>) {
    for (const auto& known : owner::settings())
      if (known == setting<owner>{{}, Member}) return true;
    return false;
  } else {
    return true;
  }
}
template <auto Member>
consteval bool is_rate() {
  using owner = typename member_of<decltype(Member)>::owner;
  if constexpr (is_of<kind::rule, owner>() &&
                requires { requires std::is_same_v<decltype(&owner::rate), decltype(Member)>; })
    return Member == &owner::rate;
  else
    return false;
}

template <class S>
struct varies_by {
  static_assert(rate_schedule<S>,
                "gradus: vary takes a schedule or a function of the step, which can be called with a std::int64_t and "
                "gives a number, as vary<&gradus::adam::beta1>(schedule).");
  static_assert(
      !observing_schedule<S>,
      "gradus: a schedule that keeps state (reduce_on_plateau) drives the learning rate only, where its state "
      "is saved; vary takes pure functions of the step.");
  static constexpr bool value = rate_schedule<S> && !observing_schedule<S>;
};
struct refused_variation {
  using policy_for = kind::refused;
};

}  // namespace detail

template <auto Member, class Schedule>
constexpr auto vary(Schedule schedule) {
  using member = detail::member_of<decltype(Member)>;
  static_assert(member::is_member,
                "gradus: vary takes the address of a setting, as vary<&gradus::adam::beta1>(schedule).");
  if constexpr (!member::is_member) {
    return detail::refused_variation{};
  } else if constexpr (!member::is_number) {
    static_assert(
        member::is_number,
        "gradus: vary takes a setting that is a number; a choice (a form, a mode, true or false) is made once, "
        "when the policy is.");
    return detail::refused_variation{};
  } else if constexpr (!detail::is_setting<Member>()) {
    static_assert(detail::is_setting<Member>(),
                  "gradus: vary takes a setting; this member of the policy is not in its settings(), because it is "
                  "state that the policy keeps.");
    return detail::refused_variation{};
  } else if constexpr (std::is_arithmetic_v<Schedule>) {
    static_assert(
        !std::is_arithmetic_v<Schedule>,
        "gradus: vary takes a schedule or a function of the step, as vary<&gradus::adam::beta1>(schedule); a number "
        "that stays is a setting of the policy, as adam{.beta1 = 0.5}.");
    return detail::refused_variation{};
  } else if constexpr (!detail::varies_by<Schedule>::value) {
    return detail::refused_variation{};
  } else {
    return varied<typename member::owner, Schedule, detail::is_rate<Member>()>{detail::line_of<Member>(), schedule};
  }
}
// Reports at compile time that no setting was named.
template <class... T>
constexpr auto vary(const T&...) {
  static_assert(sizeof...(T) > 1000,
                "gradus: vary takes the address of a setting in angle brackets and then a schedule, as "
                "vary<&gradus::adam::beta1>(schedule).");
  return detail::refused_variation{};
}

namespace detail {
// True if a policy, or a part of a chain, has the settings of Owner.
template <class Owner, class P>
consteval bool has_settings_of() {
  if constexpr (requires { P::template has_part<Owner>; })
    return P::template has_part<Owner>;
  else
    return std::is_base_of_v<Owner, P>;
}
template <class Owner, class P>
void set_in(P& p, const setting<Owner>& what, double x) {
  if constexpr (requires { P::template has_part<Owner>; })
    p.set(what, x);
  else if constexpr (std::is_base_of_v<Owner, P>)
    what.set(p, x);
}
// `static constexpr auto powers()` names the settings of which a rule keeps products: for each number of its shared
// state the member, or nullptr. The state holds the product up to the step to come; if that step's factor is 0, it is
// kept without it until the step is made, since the step may be left out, and nothing brings a product back from 0.
// Calls f(i, member) for each product.
template <class R, class F>
void each_power(F f) {
  static constexpr auto members = R::powers();
  for (std::size_t i = 0; i < members.size(); ++i)
    if (members[i] != nullptr) f(i, members[i]);
}
// After a step that was left out: replaces its factor by that of the step that comes instead.
template <class R>
void exchange_factors(const R& next, const R& skipped, auto& state) {
  if constexpr (requires { next.exchange(skipped, state); })
    next.exchange(skipped, state);
  else if constexpr (requires { R::powers(); })
    each_power<R>([&](std::size_t i, auto member) {
      const double given_back = skipped.*member, taken = next.*member;
      if (given_back == taken) return;
      if (given_back != 0) state[i] = state[i] / given_back;
      if (taken != 0) state[i] = state[i] * taken;
    });
}
// In a step: the products with the factors of 0 of this step, which is made.
template <class R>
void take_zeros(const R& made, auto& state) {
  if constexpr (requires { made.take_zeros(state); })
    made.take_zeros(state);
  else if constexpr (requires { R::powers(); })
    each_power<R>([&](std::size_t i, auto member) {
      if (made.*member == 0) state[i] = 0;
    });
}
// Behind a step: leaves a factor 0 of the step to come out of the products `before`.
template <class R>
void leave_zeros(const R& next, const auto& before, auto& state) {
  if constexpr (requires { next.leave_zeros(before, state); })
    next.leave_zeros(before, state);
  else if constexpr (requires { R::powers(); })
    each_power<R>([&](std::size_t i, auto member) {
      if (next.*member == 0) state[i] = before[i];
    });
}
}  // namespace detail

}  // namespace gradus
