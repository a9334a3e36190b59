// The door of a trainer: what cannot be made is refused here in a sentence, and nothing behind it is compiled, so that
// the sentence is not lost in what would follow from the mistake.
#pragma once
#include <type_traits>

#include "composition.hpp"

namespace gradus::detail {

template <class... Policies>
struct rule_is_given {
  static constexpr bool value = policies_of<kind::rule, Policies...> != 0;
  static_assert(value, "gradus: no rule was given; add one, such as gradus::adam{}, to the policies.");
};

// Whether the compiler can build the training graph. A model that the program builds is refused when it runs.
template <class Source, class... Policies>
struct model_is_accepted : std::true_type {
  using page = std::true_type;
};
template <auto Build, class... Policies>
struct model_is_accepted<by_compiler<Build>, Policies...>
    : composition<by_compiler<Build>, Policies...>::model_type::template fits<mode::train> {};

// The pages in order; the first that refuses is the last that is read. Classes, not functions: clang takes a function
// in which an assertion failed for no constant. `Kinds`: what this door takes.
template <class Kinds, class... Policies>
using policies_are_accepted = std::conjunction<policies_fit<Kinds, Policies...>, rule_is_given<Policies...>,
                                               one_rule_fits<policy_of<kind::rule, no_rule, Policies...>>,
                                               schedule_fits<policy_of<kind::schedule, no_schedule, Policies...>>,
                                               clip_fits<policy_of<kind::clip, no_clip, Policies...>>,
                                               average_fits<policy_of<kind::average, no_average, Policies...>>,
                                               log_sink_fits<policy_of<kind::log_sink, warnings, Policies...>>>;
template <class Kinds, class Source, class... Policies>
using door = std::conjunction<policies_are_accepted<Kinds, Policies...>, model_is_accepted<Source, Policies...>>;
// Behind a door that is shut: why, if the policies' pages have not said it.
template <class Kinds, class Source, class... Policies>
constexpr void print_refusal() {
  if constexpr (policies_are_accepted<Kinds, Policies...>::value) {
    [[maybe_unused]] constexpr bool open = model_is_accepted<Source, Policies...>::page::value;
  }
}

}  // namespace gradus::detail
