// A multi gives different variables (parameter groups) different rules or settings.
//
//   gradus::multi{gradus::on{gradus::rank_two{}, gradus::muon{.rate = 0.02}},
//                 gradus::on{gradus::matching("bias$"), gradus::adam{}, 2.0},      // twice the rate
//                 gradus::adamw{.weight_decay = 0.01}}                             // the rest
//
// A variable belongs to the first group whose mask returns true; the last entry is the rule of all other variables.
// Each entry is a rule or a chain, with state of its own. A schedule beside the multi sets the rate of every group,
// multiplied by the group's factor; without it each group uses its own schedule, `on{mask, rule, schedule}`, or its
// rule's rate. A clip, an average or an accumulation beside the multi applies to all groups.
#pragma once
#include "../base/build.hpp"

#include <tuple>

#include "chain.hpp"
#include "mask.hpp"

namespace gradus::inline GRADUS_BUILD {

// A group is the variables of a mask, their rule and, optionally, the schedule of their rate; `rate_factor` multiplies
// the rate.
template <class Mask, class Rule, class Schedule = detail::no_schedule>
struct on {
  static_assert(variable_mask<Mask>,
                "gradus: `on` takes a mask and a rule; a mask says yes or no to (std::string_view name, const extents& "
                "dims): matrices{}, named{\"encoder/\"}, matching(\"bias$\"), or a lambda.");
  static_assert(schedule_fits<Schedule>::value);
  Mask where;
  Rule rule;
  Schedule schedule;
  double rate_factor = 1;

  // A cluster serializes a group with these two functions.
  std::tuple<Mask, Rule, Schedule, double> sent_as() const { return {where, rule, schedule, rate_factor}; }
  static on from_sent(const std::tuple<Mask, Rule, Schedule, double>& sent) {
    return {std::get<0>(sent), std::get<1>(sent), std::get<2>(sent), std::get<3>(sent)};
  }
};
template <class Mask, class Rule>
struct on<Mask, Rule, detail::no_schedule> {
  static_assert(variable_mask<Mask>,
                "gradus: `on` takes a mask and a rule; a mask says yes or no to (std::string_view name, const extents& "
                "dims): matrices{}, named{\"encoder/\"}, matching(\"bias$\"), or a lambda.");
  static constexpr detail::no_schedule schedule{};
  Mask where;
  Rule rule;
  double rate_factor = 1;

  std::tuple<Mask, Rule, double> sent_as() const { return {where, rule, rate_factor}; }
  static on from_sent(const std::tuple<Mask, Rule, double>& sent) {
    return {std::get<0>(sent), std::get<1>(sent), std::get<2>(sent)};
  }
};
template <class Mask, class Rule>
on(Mask, Rule) -> on<Mask, Rule>;
template <class Mask, class Rule>
on(Mask, Rule, double) -> on<Mask, Rule>;
template <class Mask, class Rule, rate_schedule Schedule>
on(Mask, Rule, Schedule) -> on<Mask, Rule, Schedule>;
template <class Mask, class Rule, rate_schedule Schedule>
on(Mask, Rule, Schedule, double) -> on<Mask, Rule, Schedule>;

namespace detail {
template <class G>
struct is_group : std::false_type {
  static constexpr bool of_all = true, has_schedule = false;  // a rule without a mask is the last entry of a multi
};
template <class Mask, class Rule, class Schedule>
struct is_group<on<Mask, Rule, Schedule>> : std::true_type {
  static constexpr bool of_all = std::is_same_v<Mask, all_variables>,
                        has_schedule = !std::is_same_v<Schedule, no_schedule>;
};

template <class G>
auto group_of(const G& g) {
  if constexpr (is_group<G>::value)
    return g;
  else
    return on<all_variables, G>{all_variables{}, g, 1};
}
template <class... G>
struct groups_fit {
  static constexpr std::size_t of_all = (std::size_t{0} + ... + std::size_t{is_group<G>::of_all});
  static consteval bool last_is_of_all() {
    bool last = false;
    ((last = is_group<G>::of_all), ...);
    return last;
  }
  static constexpr bool value = of_all == 1 && last_is_of_all();
};
}  // namespace detail

// Groups... are on<Mask, Rule>, the last with the mask `all_variables`.
template <class... Groups>
class multi {
  static_assert(
      detail::groups_fit<Groups...>::value,
      "gradus: multi takes groups, `on{mask, rule}` or `on{mask, rule, schedule}`, and last one rule for all other "
      "variables (with a schedule of its own: `on{all_variables{}, rule, schedule}`).");

public:
  using policy_for = kind::rule;
  static constexpr std::size_t count = sizeof...(Groups);
  static constexpr bool schedules_groups = (detail::is_group<Groups>::has_schedule || ...);
  static constexpr bool is_for_groups = true;

  template <class... Given>
    requires(!detail::is_tuple<Given> && ...)  // as chain
  explicit multi(const Given&... given) : groups_(detail::group_of(given)...) {}

  const std::tuple<Groups...>& groups() const { return groups_; }
  // A cluster serializes a multi with these two functions.
  const std::tuple<Groups...>& sent_as() const { return groups_; }
  static multi from_sent(const std::tuple<Groups...>& groups) {
    return std::apply([](const auto&... g) { return multi(g...); }, groups);
  }
  std::size_t group(std::string_view name, const extents& dims) const {
    std::size_t at = 0;
    const auto is_it = [&](const auto& g) { return g.where(name, dims) || (++at, false); };
    std::apply([&](const auto&... g) { (void)(is_it(g) || ...); }, groups_);
    return at;
  }

private:
  std::tuple<Groups...> groups_;
};
template <class... Given>
multi(const Given&...) -> multi<decltype(detail::group_of(std::declval<const Given&>()))...>;

namespace detail {
template <class R>
struct is_multi : std::false_type {};
template <class... Groups>
struct is_multi<multi<Groups...>> : std::true_type {};
}  // namespace detail

}  // namespace gradus
