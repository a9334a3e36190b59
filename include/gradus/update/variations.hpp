// This header combines the `vary` policies of an update (update/vary.hpp): it finds the settings that they set, and
// computes their values at a step.
#pragma once
#include "../base/build.hpp"

#include <tuple>

#include "vary.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

template <class P>
constexpr auto variation_of(const P& p) {
  if constexpr (is_of<kind::variation, P>())
    return std::tuple<P>(p);
  else
    return std::tuple<>();
}

// True if Part, or something in it, owns the setting that V varies.
template <class V, class Part>
consteval bool varies_in() {
  if constexpr (requires { typename V::owner; })
    return has_settings_of<typename V::owner, Part>();
  else
    return false;
}
template <class V, class Part>
consteval bool varies_rate_in() {
  if constexpr (requires { requires V::of_rate; })
    return varies_in<V, Part>();
  else
    return false;
}

// Returns the value for a step of the rule. Raises if the setting cannot take it.
template <class V>
double checked_value(const V& v, std::int64_t step) {
  const double x = value_at(v.follows, step);
  if (!v.what.takes(x))
    refuse_scheduled(setting_owner<typename V::owner>(), v.what.name, v.what.range, v.what.whole(), x, step);
  if (v.what.fixed && x != value_at(v.follows, 0))
    raise(status::invalid_argument, setting_owner<typename V::owner>(), ": `", v.what.name,
          "` decides the shapes of slots, so it must stay what it is at step 0; its schedule changes it at step ",
          step);
  return x;
}

template <class Branches, class Accumulation, class Noise, class LossScale, class... Policies>
class variations;
template <class... B, class Accumulation, class Noise, class LossScale, class... Policies>
class variations<std::tuple<B...>, Accumulation, Noise, LossScale, Policies...> {
  template <std::size_t I>
  using branch = std::tuple_element_t<I, std::tuple<B...>>;
  template <class V>
  static constexpr bool found = !is_of<kind::variation, V>() || (varies_in<V, B>() || ...) ||
                                varies_in<V, Accumulation>() || varies_in<V, Noise>() || varies_in<V, LossScale>();
  template <class Branch>
  static constexpr bool varies_rate = (varies_rate_in<Policies, Branch>() || ...);

public:
  static constexpr bool finds_all = (found<Policies> && ...);
  // True if a vary<&rule::rate> sets the rate of branch I.
  template <std::size_t I>
  static constexpr bool of_rate = varies_rate<branch<I>>;
  static constexpr bool one_owner = (!(B::has_schedule && varies_rate<B>)&&...);
  // True if the number of micro-batches for a step of the rule follows a schedule.
  static constexpr bool of_pace = (varies_in<Policies, Accumulation>() || ...);
  static constexpr bool of_loss_scale = (varies_in<Policies, LossScale>() || ...);

  explicit constexpr variations(const Policies&... policies) : all_(std::tuple_cat(variation_of(policies)...)) {
    each([](const auto& v) { check_all(v.follows); });
    std::size_t a = 0;
    each([&](const auto& first) {
      std::size_t b = 0;
      each([&](const auto& second) {
        using owner = typename std::remove_cvref_t<decltype(first)>::owner;
        if constexpr (std::is_same_v<owner, typename std::remove_cvref_t<decltype(second)>::owner>)
          if (a < b && first.what == second.what)
            raise(status::invalid_argument, "`", first.what.name, "` of ", setting_owner<owner>(),
                  " follows two schedules; keep one vary of it");
        ++b;
      });
      ++a;
    });
  }

  // Returns the rate of the first branch, where it varies.
  double rate(std::int64_t step) const {
    double rate = 0;
    each([&](const auto& v) {
      if constexpr (varies_rate_in<std::remove_cvref_t<decltype(v)>, branch<0>>()) rate = value_at(v.follows, step);
    });
    return rate;
  }

  // Returns the number of finished steps of the rule. The number of micro-batches that are accumulated for each may
  // follow a schedule of steps of the rule (Optax's every_k_schedule).
  std::int64_t rule_step(const Accumulation& accumulation, std::int64_t global_step) const {
    if constexpr (of_pace)
      return pace_at(global_step).step;
    else
      return accumulation.steps(global_step);
  }
  bool only_adds(const Accumulation& accumulation, std::int64_t global_step) const {
    if constexpr (of_pace)
      return global_step - pace_at(global_step).first != accumulation.every - 1;
    else
      return accumulation.only_adds(global_step);
  }

  // Sets every setting to its value in the step that follows `global_step` finished ones.
  void set(std::tuple<B...>& branches, Accumulation& a, Noise& n, LossScale& l, std::int64_t global_step) {
    if constexpr (of_pace) pace_ = pace_at(global_step);
    const std::int64_t step = rule_step(a, global_step);
    each([&](const auto& v) { set_one(v, checked_value(v, step), branches, a, n, l); });
    std::apply([](const auto&... b) { (b.check(), ...); }, branches);
    const auto check = [](const auto& part) {
      if constexpr (requires { part.check(); }) part.check();
    };
    check(a), check(n), check(l);
  }
  // Does the same for a step that may never be made, so it raises nothing.
  void look_ahead(std::tuple<B...>& branches, Accumulation& a, Noise& n, LossScale& l, std::int64_t global_step) {
    if constexpr (of_pace) pace_ = pace_at(global_step);
    const std::int64_t step = rule_step(a, global_step);
    each([&](const auto& v) {
      if (const double x = value_at(v.follows, step); v.what.takes(x) && !v.what.fixed)
        set_one(v, x, branches, a, n, l);
    });
  }

private:
  // The step of the rule that a micro-batch belongs to, and the first of that step's micro-batches.
  struct pace {
    std::int64_t step = 0, first = 0;
  };
  struct no_pace {};

  template <class F>
  constexpr void each(F f) const {
    std::apply([&](const auto&... v) { (f(v), ...); }, all_);
  }
  template <class V>
  static void set_one(const V& v, double x, std::tuple<B...>& branches, Accumulation& a, Noise& n, LossScale& l) {
    std::apply([&](auto&... b) { (set_in(b, v.what, x), ...); }, branches);
    set_in(a, v.what, x), set_in(n, v.what, x), set_in(l, v.what, x);
  }
  pace pace_at(std::int64_t global_step) const
    requires of_pace
  {
    pace at = global_step < pace_.first ? pace{} : pace_;
    each([&](const auto& v) {
      if constexpr (varies_in<std::remove_cvref_t<decltype(v)>, Accumulation>())
        for (std::int64_t every = 1;; at.first += every, ++at.step) {
          const double x = value_at(v.follows, at.step);
          if (!v.what.takes(x)) return;  // the step that takes it raises
          every = static_cast<std::int64_t>(x);
          if (global_step - at.first < every) return;
        }
    });
    return at;
  }

  [[no_unique_address]] decltype(std::tuple_cat(variation_of(std::declval<const Policies&>())...)) all_;
  [[no_unique_address]] std::conditional_t<of_pace, pace, no_pace> pace_{};
};

}  // namespace gradus::detail
