// An update has one branch for a rule, or one for each group of a multi, all with the same clip and average.
#pragma once
#include "../base/build.hpp"

#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "vary.hpp"  // before multi.hpp: compilers print the path of includes before its refusals

#include "../base/error.hpp"
#include "multi.hpp"
#include "single.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Makes the branches of an update; a plain rule or a chain has one.
template <class Rule, class Schedule, class Clip, class Average, bool Scaled>
struct branches_of {
  using type = std::tuple<single_update<Rule, Schedule, Clip, Average, Scaled>>;
  static type make(const Rule& r, const Schedule& s, const Clip& c, const Average& a) { return type({r, s, c, a}); }
};
template <class... Groups, class Schedule, class Clip, class Average, bool Scaled>
struct branches_of<multi<Groups...>, Schedule, Clip, Average, Scaled> {
  static_assert(
      std::is_same_v<Schedule, no_schedule> || !multi<Groups...>::schedules_groups,
      "gradus: the learning rate of a group has two owners: the schedule in `on{mask, rule, schedule}` and the "
      "one beside the multi; keep the one beside, or give every group its own.");
  template <class G>
  using schedule_of =
      std::conditional_t<is_group<G>::has_schedule, std::remove_cvref_t<decltype(G::schedule)>, Schedule>;
  template <class G>
  using branch = single_update<decltype(G::rule), schedule_of<G>, Clip, Average, Scaled>;
  static_assert((rule_fits<decltype(Groups::rule)>::value && ...));
  using type = std::tuple<branch<Groups>...>;
  static type make(const multi<Groups...>& m, const Schedule& s, const Clip& c, const Average& a) {
    return std::apply([&](const auto&... g) { return type(single_of(g, s, c, a)...); }, m.groups());
  }
  template <class G>
  static branch<G> single_of(const G& g, const Schedule& s, const Clip& c, const Average& a) {
    if constexpr (is_group<G>::has_schedule)
      return {g.rule, g.schedule, c, a, g.rate_factor};
    else
      return {g.rule, s, c, a, g.rate_factor};
  }
};
template <class Rule>
using one_rule_fits = std::conditional_t<is_multi<Rule>::value, std::true_type, rule_fits<Rule>>;

// A state list in which scalars carry the name of their group, "group_1/beta1_power". The name is made without a heap,
// for boards.
template <class List>
struct group_list {
  List& list;
  std::size_t group;
  template <class T>
  void scalar(std::string_view name, T& x) {
    char all[128];
    constexpr std::string_view begins = "group_";
    char digits[20];
    std::size_t n = 0, at = 0;
    for (std::size_t k = group; n == 0 || k != 0; k /= 10) digits[n++] = static_cast<char>('0' + k % 10);
    if (begins.size() + n + 1 + name.size() > sizeof all)
      raise(status::invalid_argument, "the name of a rule's scalar has at most 100 characters; shorten it");
    for (char c : begins) all[at++] = c;
    while (n != 0) all[at++] = digits[--n];
    all[at++] = '/';
    for (char c : name) all[at++] = c;
    list.scalar(std::string_view(all, at), x);
  }
};

}  // namespace gradus::detail
