// Any setting of a policy as a function of global_step:
//
//   gradus::composed{gradus::adam{}, gradus::vary<&gradus::adam::beta1>(gradus::one_cycle{...})}
//
// The member is set before each step, in every part of the update that is of its class (chains and groups included).
#pragma once
#include <tuple>

#include "schedule.hpp"

namespace gradus {

template <auto Member, rate_schedule Schedule>
struct varied {
  using policy_for = kind::variation;
  static constexpr auto member = Member;
  Schedule follows;
};
template <auto Member, rate_schedule Schedule>
constexpr auto vary(const Schedule& schedule) {
  static_assert(std::is_member_object_pointer_v<decltype(Member)>,
                "gradus: vary takes the address of a setting, as vary<&gradus::adam::beta1>(schedule).");
  static_assert(
      !observing_schedule<Schedule>,
      "gradus: a schedule that keeps state (reduce_on_plateau) drives the learning rate only, where its state "
      "is saved; vary takes pure functions of the step.");
  return varied<Member, Schedule>{schedule};
}

namespace detail {
template <class P>
constexpr auto variation_of(const P& p) {
  if constexpr (is_of<kind::variation, P>())
    return std::tuple<P>(p);
  else
    return std::tuple<>();
}
}  // namespace detail

}  // namespace gradus
