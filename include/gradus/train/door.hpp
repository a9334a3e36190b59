// The door of a trainer: what cannot be made is refused here in a sentence, and nothing behind it is compiled, so that
// the sentence is not lost in what would follow from the mistake.
#pragma once
#include "composition.hpp"

namespace gradus::detail {

// Prints the first page that applies. `Kinds`: what this door takes.
template <class Kinds, class... Policies>
consteval bool policies_are_accepted() {
  if constexpr (!policies_fit<Kinds, Policies...>::value)
    return false;
  else if constexpr (policies_of<kind::rule, Policies...> == 0)
    return sizeof(update_of<Policies...>) == 0;  // its page says what is missing
  else
    return rule_fits<policy_of<kind::rule, no_rule, Policies...>>::value &&
           schedule_fits<policy_of<kind::schedule, no_schedule, Policies...>>::value &&
           clip_fits<policy_of<kind::clip, no_clip, Policies...>>::value &&
           average_fits<policy_of<kind::average, no_average, Policies...>>::value &&
           log_sink_fits<policy_of<kind::log_sink, silent, Policies...>>::value;
}

// Whether the compiler can build the training graph. A model that the program builds is refused when it runs.
template <class Source, class... Policies>
consteval bool model_is_accepted() {
  if constexpr (requires { Source::build; } && !std::is_same_v<Source, by_program>)
    return composition<Source, Policies...>::model_type::template fits<mode::train>::value;
  else
    return true;
}

template <class Kinds, class Source, class... Policies>
consteval bool door_opens() {
  if constexpr (policies_are_accepted<Kinds, Policies...>())
    return model_is_accepted<Source, Policies...>();
  else
    return false;
}

}  // namespace gradus::detail
