// The branches of an update: one for a rule, one for each group of a multi, all with the same schedule, clip and
// average.
#pragma once
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "../base/error.hpp"
#include "multi.hpp"
#include "single.hpp"

namespace gradus::detail {

// The branches: of a plain rule or a chain one.
template <class Rule, class Schedule, class Clip, class Average, bool Scaled>
struct branches_of {
  using type = std::tuple<single_update<Rule, Schedule, Clip, Average, Scaled>>;
  static type make(const Rule& r, const Schedule& s, const Clip& c, const Average& a) { return type({r, s, c, a}); }
};
template <class... Groups, class Schedule, class Clip, class Average, bool Scaled>
struct branches_of<multi<Groups...>, Schedule, Clip, Average, Scaled> {
  template <class G>
  using branch = single_update<decltype(G::rule), Schedule, Clip, Average, Scaled>;
  static_assert((rule_fits<decltype(Groups::rule)>::value && ...));
  using type = std::tuple<branch<Groups>...>;
  static type make(const multi<Groups...>& m, const Schedule& s, const Clip& c, const Average& a) {
    return std::apply([&](const auto&... g) { return type(single_of(g, s, c, a)...); }, m.groups());
  }
  template <class G>
  static branch<G> single_of(const G& g, const Schedule& s, const Clip& c, const Average& a) {
    return {g.rule, s, c, a, g.rate_factor};
  }
};
template <class Rule>
using one_rule_fits = std::conditional_t<is_multi<Rule>::value, std::true_type, rule_fits<Rule>>;

// A state list in which scalars carry the name of their group.
template <class List>
struct group_list {
  List& list;
  std::size_t group;
  template <class T>
  void scalar(std::string_view name, T& x) {
    list.scalar(text("group_", group, "/", name), x);
  }
};

}  // namespace gradus::detail
