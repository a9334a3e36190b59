// The composition: a rule and, in any order, a schedule, a clip and an average, as one policy of an update. It knows
// which arrays live beside a variable, turns a step into a few constants, and holds the optimizer's own state; the
// sweep over memory is the device's (cpu/sweep.hpp).
//
//   gradus::composed update{gradus::adam{}, gradus::clip_by_global_norm{1.0}};
#pragma once
#include <bit>
#include <string>

#include "../base/error.hpp"
#include "../base/state.hpp"
#include "average.hpp"
#include "clip.hpp"
#include "rule.hpp"
#include "schedule.hpp"

namespace gradus {

// An array beside a variable, of its shape and type: a slot of the rule, or the average.
struct mirror {
  std::string_view slot;       // what the rule calls it: "m"; the average is "average"
  std::string_view optimizer;  // what TensorFlow's checkpoints call it: "Adam", then "Adam_1", ...
  std::size_t number = 0;
  double initial = 0.0;
  bool starts_as_variable = false;  // initially a copy of the variable instead
};
// "w/Adam_1": TensorFlow's name of a mirror of w.
inline std::string checkpoint_name(std::string_view variable, const mirror& m) {
  return m.number == 0 ? text(variable, "/", m.optimizer) : text(variable, "/", m.optimizer, "_", m.number);
}

namespace detail {
// What stands in for a policy that was not given.
struct no_schedule {
  using policy_for = kind::schedule;
  constexpr double operator()(std::int64_t) const { return 0; }
};
struct no_clip {
  using policy_for = kind::clip;
  static constexpr bool needs_norm = false;
  constexpr double scale(double) const { return 1; }
};
struct no_average {
  using policy_for = kind::average;
  static constexpr std::string_view name = "no average";
  constexpr double new_share(std::int64_t) const { return 0; }
};
struct no_rule {
  using policy_for = kind::rule;
  static constexpr std::string_view name = "no rule";
  std::optional<double> rate = {};
  template <class N>
  struct constants {
    N rate;
  };
  constexpr constants<double> prepare(const step_info&) const { return {0}; }
  template <class N>
  N step(N theta, N, const constants<N>&) const {
    return theta;
  }
};

// An aggregate of n members of type From, member by member as To.
template <class R, class To, class From>
typename R::template constants<To> convert_constants(const typename R::template constants<From>& from) {
  constexpr std::size_t n = sizeof(from) / sizeof(From);
  static_assert(sizeof(typename R::template constants<To>) == n * sizeof(To),
                "gradus: `constants<N>` of a rule may only have members of type N.");
  const auto in = std::bit_cast<std::array<From, n>>(from);
  std::array<To, n> out;
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<To>(in[i]);
  return std::bit_cast<typename R::template constants<To>>(out);
}
}  // namespace detail

// What one step needs, in the type of the variable: a rule's constants, and how much of theta the average takes.
template <class Rule, class T>
struct step_constants {
  typename Rule::template constants<T> rule;
  T new_share;
};

template <class... Policies>
class composed {
  static_assert(policies_fit<kinds<kind::rule, kind::schedule, kind::clip, kind::average>, Policies...>::value);
  static_assert(!(policy<Policies> && ...) || policies_of<kind::rule, Policies...> != 0,
                "gradus: no rule was given; add one, such as gradus::adam{}, to the policies.");

public:
  using rule_type = policy_of<kind::rule, detail::no_rule, Policies...>;
  using schedule_type = policy_of<kind::schedule, detail::no_schedule, Policies...>;
  using clip_type = policy_of<kind::clip, detail::no_clip, Policies...>;
  using average_type = policy_of<kind::average, detail::no_average, Policies...>;
  static constexpr bool has_schedule = policies_of<kind::schedule, Policies...> != 0;
  static constexpr bool has_clip = policies_of<kind::clip, Policies...> != 0;
  static constexpr bool has_average = policies_of<kind::average, Policies...> != 0;
  static_assert(rule_fits<rule_type>::value);
  static_assert(schedule_fits<schedule_type>::value && clip_fits<clip_type>::value &&
                average_fits<average_type>::value);

  static constexpr std::size_t slot_count = detail::count_slots<rule_type>();
  static constexpr std::size_t mirror_count = slot_count + has_average;
  template <class T>
  using constants = step_constants<rule_type, T>;

  explicit constexpr composed(Policies... policies)
      : rule_(take_policy<kind::rule, rule_type>(policies...)),
        schedule_(take_policy<kind::schedule, schedule_type>(policies...)),
        clip_(take_policy<kind::clip, clip_type>(policies...)),
        average_(take_policy<kind::average, average_type>(policies...)) {
    if constexpr (has_schedule) {
      if (rule_.rate.has_value()) two_owners();
    } else if constexpr (!requires { rule_type::default_rate; }) {
      if (!rule_.rate.has_value()) no_rate();
    }
    if constexpr (detail::has_shared<rule_type>) shared_ = rule_.start();
  }

  const rule_type& rule() const { return rule_; }
  const average_type& average() const
    requires(has_average)
  {
    return average_;
  }

  // The mirrors of a variable: the rule's slots in order, then the average.
  constexpr std::array<mirror, mirror_count> mirrors() const {
    std::array<mirror, mirror_count> all{};
    if constexpr (slot_count != 0) {
      const auto slots = rule_.slots();
      for (std::size_t i = 0; i < slot_count; ++i)
        all[i] = {slots[i].name, rule_type::name, i, slots[i].initial, false};
    }
    if constexpr (has_average) all[slot_count] = {"average", average_type::name, 0, 0.0, true};
    return all;
  }

  // The learning rate of the step that follows `global_step` finished ones.
  double rate(std::int64_t global_step) const {
    if constexpr (has_schedule)
      return schedule_(global_step);
    else if constexpr (requires { rule_type::default_rate; })
      return rule_.rate.value_or(rule_type::default_rate);
    else
      return *rule_.rate;
  }

  static constexpr bool needs_norm = clip_type::needs_norm;
  // The factor for every gradient, given their global norm.
  double clip_scale(double norm) const { return clip_.scale(norm); }

  // The constants of the step that follows `global_step` finished ones, in T.
  template <class T>
  constants<T> prepare(std::int64_t global_step) const {
    const step_info at{global_step, rate(global_step)};
    typename rule_type::template constants<double> c;
    if constexpr (detail::prepares_shared<rule_type>)
      c = rule_.prepare(at, shared_);
    else
      c = rule_.prepare(at);
    T share = T(0);
    if constexpr (has_average) share = static_cast<T>(average_.new_share(global_step + 1));
    return {detail::convert_constants<rule_type, T, double>(c), share};
  }

  // Once per step, after every variable.
  void finish() {
    if constexpr (detail::has_shared<rule_type>) rule_.finish(shared_);
  }

  // The optimizer's own state as before the first step.
  void restart() {
    if constexpr (detail::has_shared<rule_type>) shared_ = rule_.start();
  }

  // Whether a sparse gradient also moves the rows that it does not list. Most rules never do, and say so when compiled.
  static constexpr bool may_decay_all_rows = requires(const rule_type& r) { r.decays_all_rows(); };
  bool decays_all_rows() const {
    if constexpr (may_decay_all_rows)
      return rule_.decays_all_rows();
    else
      return false;
  }

  // The optimizer's own state; that of a variable belongs to whoever holds the mirrors.
  template <class List>
  void remembers(List& list) {
    if constexpr (detail::has_shared<rule_type>)
      for (std::size_t i = 0; i < shared_.size(); ++i) list.scalar(rule_type::shared_names[i], shared_[i]);
  }

private:
  // Not constexpr, and apart: a program that cannot get here does not carry the text.
  [[noreturn]] static void two_owners() {
    raise(status::invalid_argument,
          text("the learning rate has two owners: ", rule_type::name,
               "'s `.rate` and the schedule among the policies; expected one, leave `.rate` out or drop the schedule"));
  }
  [[noreturn]] static void no_rate() {
    raise(status::invalid_argument,
          text("the learning rate has no owner: ", rule_type::name,
               " has no default; expected `.rate = ...` in the rule or a schedule among the policies"));
  }

  [[no_unique_address]] rule_type rule_;
  [[no_unique_address]] schedule_type schedule_;
  [[no_unique_address]] clip_type clip_;
  [[no_unique_address]] average_type average_;
  [[no_unique_address]] detail::shared_of<rule_type> shared_{};
};

}  // namespace gradus
