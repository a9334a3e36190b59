// The bodies of hook.hpp.
#pragma once
#include "../base/body.hpp"
#include "hook.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY const_tensor_view hooked_session::variable(std::string_view name) const {
  if (raw_ != nullptr) return variable_of_(*raw_, name);
  return detail::named_in(state_ != nullptr ? *state_ : state_list{}, "session", name);
}

GRADUS_BODY double run_values::result(std::string_view name) const {
  if (find_ == nullptr) detail::raise_no_result(name, {});
  return find_(steps_, name);
}

namespace detail {
GRADUS_BODY const_tensor_view named_in(const state_list& state, std::string_view owner, std::string_view name) {
  const state_entry* found = state.find(name);
  if (found != nullptr && found->dynamic == nullptr) return {found->type, found->dims, found->bytes.data()};
  std::string names;
  for (const auto& e : state.entries())
    if (e.dynamic == nullptr) names += text(names.empty() ? "" : ", ", e.name);
  raise(status::not_found, text("the ", owner, " has no variable \"", name, "\"; it has ", names));
}
GRADUS_BODY void raise_no_result(std::string_view name, std::string_view those_there_are) {
  raise(status::not_found, text("a training step gives no number \"", name, "\"; it gives ",
                                those_there_are.empty() ? "none by name" : those_there_are));
}
}  // namespace detail

}  // namespace gradus
