// A single_update is one rule with the policies beside it, as the sweep over memory uses it (cpu/sweep.hpp): it lists
// the arrays beside a variable, and computes the constants of a step. `composed` (update/composed.hpp) holds one or
// several.
#pragma once
#include "../base/build.hpp"

#include <string>

#include "../base/error.hpp"
#include "../base/state.hpp"
#include "average.hpp"
#include "chain.hpp"
#include "clip.hpp"
#include "schedule.hpp"

namespace gradus::inline GRADUS_BUILD {

// This is an array beside a variable, of its shape and type: a slot of the rule, or the average.
struct mirror {
  std::string_view slot;       // the rule's name for it: "m"; the average is "average"; empty: not kept
  std::string_view optimizer;  // its name in TensorFlow's checkpoints: "Adam", then "Adam_1", ...
  std::size_t number = 0;
  double initial = 0.0;
  bool starts_as_variable = false;  // initially a copy of the variable instead
};
// Returns TensorFlow's name of a mirror of a variable w, such as "w/Adam_1".
inline std::string checkpoint_name(std::string_view variable, const mirror& m) {
  return m.number == 0 ? text(variable, "/", m.optimizer) : text(variable, "/", m.optimizer, "_", m.number);
}

namespace detail {
// Placeholders for missing policies.
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

// A clip beside a rule applies one factor to all gradients, or a factor to each column, or becomes the first part of a
// chain.
template <class Clip>
concept scales_all = requires(const Clip& c) {
  { c.scale(1.0) } -> std::convertible_to<double>;
};
template <class Clip>
concept scales_columns = requires(const Clip& c) {
  { c.column_scale(1.0, 1.0) } -> std::convertible_to<double>;
};
template <class Clip, class Rule>
auto rule_behind(const Clip& clip, const Rule& rule) {
  if constexpr (scales_all<Clip> || scales_columns<Clip>)
    return rule;
  else
    return chain(clip, rule);
}
}  // namespace detail

// The inputs of one step, in the type of the variable: the constants of the rule, and the share of theta in the
// average.
template <class Rule, class T>
struct step_constants {
  typename Rule::template constants<T> rule;
  T new_share;
};

// `Scaled` is true if gradients have a factor even without a clip (loss scale, accumulation).
template <class Rule, class Schedule, class Clip, class Average, bool Scaled = false>
class single_update {
public:
  using rule_type = decltype(detail::rule_behind(std::declval<const Clip&>(), std::declval<const Rule&>()));
  using schedule_type = Schedule;
  using clip_type = Clip;
  using average_type = Average;
  static constexpr bool has_schedule = !std::is_same_v<Schedule, detail::no_schedule>;
  static constexpr bool clips_columns = detail::scales_columns<Clip>;
  static constexpr bool has_clip =
      Scaled || clips_columns || (detail::scales_all<Clip> && !std::is_same_v<Clip, detail::no_clip>);
  static constexpr bool has_average = !std::is_same_v<Average, detail::no_average>;

  static constexpr std::size_t slot_count = detail::count_slots<rule_type>();
  static constexpr std::size_t mirror_count = slot_count + has_average;
  static constexpr std::size_t stages = detail::count_stages<rule_type>();
  static constexpr std::size_t global_stages = detail::count_global_stages<rule_type>();
  static constexpr bool observes = detail::has_observe<rule_type>;
  template <class T>
  using constants = step_constants<rule_type, T>;

  [[gnu::always_inline]] constexpr single_update(const Rule& rule, const Schedule& schedule, const Clip& clip,
                                                 const Average& average, double rate_factor = 1)
      : rule_(detail::rule_behind(clip, rule)),
        schedule_(schedule),
        clip_(clip),
        average_(average),
        rate_factor_(rate_factor) {
    detail::check_settings(rule_);
    if constexpr (detail::scales_all<Clip> || detail::scales_columns<Clip>) detail::check_settings(clip_);
    detail::check_settings(average_);
    detail::check_settings(schedule_);
    if constexpr (detail::has_shared<rule_type>) shared_ = rule_.start();
    if constexpr (settles) {
      rule.check_settled();
      if (rate_factor != 1) rule_.settle(rate(0));
    }
  }

  // Raises unless the learning rate has exactly one owner. `Varied` is true if a vary<&rule::rate> sets it.
  template <bool Varied>
  constexpr void check_owner() const {
    if constexpr (has_schedule || Varied) {
      if (rule_.rate.has_value()) two_owners<Varied>();
    } else if constexpr (!requires { rule_type::default_rate; }) {
      if (!rule_.rate.has_value()) no_rate();
    }
  }

  const rule_type& rule() const { return rule_; }
  const clip_type& clip() const { return clip_; }
  const average_type& average() const
    requires(has_average)
  {
    return average_;
  }
  // ---- settings that follow a schedule (update/vary.hpp)
  template <class Owner>
  static constexpr bool has_part = detail::has_settings_of<Owner, rule_type>() || std::is_base_of_v<Owner, Clip> ||
                                   std::is_base_of_v<Owner, Average>;
  template <class Owner>
  void set(const setting<Owner>& what, double x) {
    detail::set_in(rule_, what, x);
    if constexpr (settles) rule_.settle(rate(0));
    detail::set_in(clip_, what, x);
    detail::set_in(average_, what, x);
  }
  void check() const {
    if constexpr (requires { rule_.check(); }) rule_.check();
  }
  double rate_factor() const { return rate_factor_; }

  // The mirrors of a variable are the rule's slots in order, then the average.
  constexpr std::array<mirror, mirror_count> mirrors() const {
    std::array<mirror, mirror_count> all{};
    if constexpr (slot_count != 0) {
      const auto slots = rule_.slots();
      for (std::size_t i = 0; i < slot_count; ++i) {
        const std::string_view owner = slots[i].owner.empty() ? rule_type::name : slots[i].owner;
        std::size_t number = 0;
        for (std::size_t k = 0; k < i; ++k) number += all[k].optimizer == owner;
        all[i] = {slots[i].name, owner, number, slots[i].initial, slots[i].starts_as_variable};
      }
    }
    if constexpr (has_average) all[slot_count] = {"average", average_type::name, 0, 0.0, true};
    return all;
  }
  extents mirror_dims(std::size_t k, const extents& variable) const {
    if constexpr (detail::has_slot_dims<rule_type>)
      if (k < slot_count) return rule_.slot_dims(k, variable);
    return variable;
  }
  // Returns the mirror that evaluation uses in the variable's place; mirror_count if there is none.
  static constexpr bool has_evaluation_copy = has_average || requires { rule_type::evaluates_at; };
  std::size_t evaluation_mirror() const {
    if constexpr (has_average) return slot_count;
    if constexpr (requires { rule_type::evaluates_at; }) {
      const auto slots = rule_.slots();
      for (std::size_t i = 0; i < slot_count; ++i)
        if (slots[i].name == rule_type::evaluates_at) return i;
    }
    return mirror_count;
  }

  // Returns the learning rate of the step that follows `step` finished ones.
  constexpr double rate(std::int64_t step) const {
    if constexpr (has_schedule)
      return detail::value_at(schedule_, step) * rate_factor_;
    else if constexpr (requires { rule_type::default_rate; })
      return rule_.rate.value_or(rule_type::default_rate) * rate_factor_;
    else
      return rule_.rate.value_or(0.0) * rate_factor_;  // it has one, or the constructor raised
  }

  // Returns the constants of the step that follows `step` finished ones, in T. `Varied` is true if settings follow a
  // schedule.
  template <class T, bool Varied = false>
  constants<T> prepare(std::int64_t step) const {
    T share = T(0);
    if constexpr (has_average) share = static_cast<T>(average_.new_share(step + 1));
    // The running products as this step takes them.
    const auto products = [this]() -> decltype(auto) {
      if constexpr (Varied && detail::has_shared<rule_type>) {
        auto now = shared_;
        detail::take_zeros(rule_, now);
        return now;
      } else {
        return (shared_);
      }
    };
    if constexpr (settles) {
      return {detail::convert_constants<rule_type, T, float>(rule_.prepare_settled(products())), share};
    } else {
      const step_info at{step, rate(step)};
      if constexpr (has_schedule) detail::check_rate(rule_type::name, at.rate, step, detail::may_be_negative<Schedule>);
      typename rule_type::template constants<double> c;
      if constexpr (detail::prepares_shared<rule_type>)
        c = rule_.prepare(at, products());
      else
        c = rule_.prepare(at);
      return {detail::convert_constants<rule_type, T, double>(c), share};
    }
  }
  template <class T>
  static constants<T> convert(const constants<double>& c) {
    return {detail::convert_constants<rule_type, T, double>(c.rule), static_cast<T>(c.new_share)};
  }

  // Ends a step: call it once per step, after the last variable.
  void finish(std::int64_t step) {
    if constexpr (detail::has_shared<rule_type>) detail::finish_shared(rule_, shared_, {step, rate(step)}, rule_);
  }
  // Does the same where settings follow a schedule. The rule then already has the settings of the next step; `done` and
  // `rate` are those of the finished step. pass_varied is for a step that was left out.
  void finish_varied(std::int64_t step, const rule_type& done, double rate) {
    if constexpr (detail::has_shared<rule_type>) {
      detail::take_zeros(done, shared_);
      const auto made = shared_;
      detail::finish_shared(rule_, shared_, {step, rate}, done);
      detail::leave_zeros(rule_, made, shared_);
    }
  }
  void pass_varied(const rule_type& skipped) {
    if constexpr (detail::has_shared<rule_type>) detail::exchange_factors(rule_, skipped, shared_);
  }
  // Resets the optimizer's own state to that before the first step.
  template <bool Varied = false>
  void restart() {
    if constexpr (detail::has_shared<rule_type>) {
      auto units = shared_;
      shared_ = rule_.start();
      if constexpr (Varied) {
        units.fill(1);
        detail::leave_zeros(rule_, units, shared_);
      }
    }
    if constexpr (observing_schedule<schedule_type>) schedule_.restart();
  }
  // Passes a loss or metric to schedules that observe one (reduce_on_plateau).
  void watch(double value) {
    if constexpr (observing_schedule<schedule_type>) schedule_.observe(value);
  }
  bool observes_other_way(bool higher_is_better) const {
    return detail::observes_other_way(schedule_, higher_is_better);
  }

  // True if a sparse gradient also moves the rows that it does not list. Most rules never do; this is known when
  // compiling.
  static constexpr bool may_decay_all_rows = requires(const rule_type& r) { r.decays_all_rows(); };
  bool decays_all_rows() const {
    if constexpr (may_decay_all_rows)
      return rule_.decays_all_rows();
    else
      return false;
  }

  // Lists the optimizer's own state; the state of a variable belongs to the owner of the mirrors.
  template <class List>
  void remembers(List& list) {
    if constexpr (detail::has_shared<rule_type>)
      for (std::size_t i = 0; i < shared_.size(); ++i) list.scalar(rule_type::shared_names[i], shared_[i]);
    remembers_observed(list);
  }
  // Lists the part of it that the schedule keeps of the values that it observed.
  template <class List>
  void remembers_observed(List& list) {
    if constexpr (observing_schedule<schedule_type>) schedule_.remembers(list);
  }

  // True if the rule has constants of a settled rate, in float (update/float_constants.hpp), so that a step computes
  // none in double.
  static constexpr bool settles = !has_schedule && requires { &rule_type::prepare_settled; };

private:
  // These functions are separate and not constexpr, so that a program that cannot reach them does not contain their
  // texts.
  template <bool Varied>
  struct two_owners_pieces {
    static constexpr std::string_view all[] = {"the learning rate has two owners: ",
                                               rule_type::name,
                                               "'s `.rate` and ",
                                               Varied ? "vary<&rule::rate>" : "the schedule",
                                               " among the policies; expected one, leave `.rate` out or drop ",
                                               Varied ? "vary" : "the schedule"};
  };
  struct no_rate_pieces {
    static constexpr std::string_view all[] = {
        "the learning rate has no owner: ", rule_type::name,
        " has no default; expected `.rate = ...` in the rule or a schedule among the policies"};
  };
  template <bool Varied>
  [[noreturn]] static void two_owners() {
    raise(status::invalid_argument, detail::constant_text<two_owners_pieces<Varied>>.data());
  }
  [[noreturn]] static void no_rate() { raise(status::invalid_argument, detail::constant_text<no_rate_pieces>.data()); }

  [[no_unique_address]] rule_type rule_;
  [[no_unique_address]] schedule_type schedule_;
  [[no_unique_address]] clip_type clip_;
  [[no_unique_address]] average_type average_;
  [[no_unique_address]] detail::shared_of<rule_type> shared_{};
  double rate_factor_ = 1;
};

}  // namespace gradus
