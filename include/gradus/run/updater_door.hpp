// This header finds the most frequent mistakes in the policies of an updater. The guide that deduces an updater's type
// then names `refused_update` in the place of the device, and the constructor of that updater is unavailable: compilers
// print the caller's line first, with the sentence on it (train/door.hpp does the same for a trainer).
#pragma once
#include "../base/build.hpp"

#include <type_traits>

#include "../update/composed.hpp"
#include "device.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

using updater_kinds = kinds_and<update_kinds, kind::subnormals>;

enum class update_refusal {
  none,
  stranger,
  before_its_rule,
  after_its_rule,
  of_the_device,
  of_a_model,
  of_a_graph,
  of_a_trainer,
  of_batches,
  twice,
  no_rule,
  rate_of_a_group,
  rate
};

// True if a policy of this kind is among the policies. No list of an updater's kinds has it.
template <class Kind, class... Policies>
inline constexpr bool misplaced = policies_of<Kind, Policies...> != 0;
template <class Rule>
inline constexpr bool groups_have_schedules = false;
template <class... Groups>
inline constexpr bool groups_have_schedules<multi<Groups...>> = multi<Groups...>::schedules_groups;

template <class... Policies>
consteval update_refusal find_update_refusal() {
  using rule = policy_of<kind::rule, no_rule, Policies...>;
  constexpr bool has_schedule = policies_of<kind::schedule, Policies...> != 0;
  if constexpr (!((policy<Policies> || step_function<Policies>)&&...))
    return update_refusal::stranger;
  else if constexpr (misplaced<kind::transform, Policies...>)
    return update_refusal::before_its_rule;
  else if constexpr (misplaced<kind::follower, Policies...>)
    return update_refusal::after_its_rule;
  else if constexpr (misplaced<kind::arithmetic, Policies...>)
    return update_refusal::of_the_device;
  else if constexpr (misplaced<kind::precision, Policies...>)
    return update_refusal::of_a_model;
  else if constexpr (misplaced<kind::executor, Policies...>)
    return update_refusal::of_a_graph;
  else if constexpr (misplaced<kind::configuration, Policies...>)
    return update_refusal::of_a_trainer;
  else if constexpr (misplaced<kind::microbatch, Policies...>)
    return update_refusal::of_batches;
  else if constexpr (given_twice<Policies...>(static_cast<const updater_kinds*>(nullptr)))
    return update_refusal::twice;
  else if constexpr (policies_of<kind::rule, Policies...> == 0)
    return update_refusal::no_rule;
  else if constexpr (has_schedule && groups_have_schedules<rule>)
    return update_refusal::rate_of_a_group;
  else if constexpr ((has_schedule || groups_have_schedules<rule>)&&policies_of<kind::variation, Policies...> != 0)
    return rate_has_one_owner<Policies...> ? update_refusal::none : update_refusal::rate;
  else
    return update_refusal::none;
}

// Stands for the device of an updater that is refused.
template <update_refusal Why>
struct refused_update {};

template <update_refusal Why>
struct device_or_refusal {
  using type = refused_update<Why>;
};
template <>
struct device_or_refusal<update_refusal::none> {
  using type = default_device;
};
template <class... Policies>
using device_of_updater = typename device_or_refusal<find_update_refusal<Policies...>()>::type;

}  // namespace gradus::inline GRADUS_BUILD::detail
