// This header finds the global step that a hook of a monitored session requires.
#pragma once
#include <string_view>

#include "../../session/global_step.hpp"
#include "../hook.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Returns the global step of the session's graph. Raises failed_precondition, with the hook's name, if there is none.
inline value needed_global_step(const hooked_session& s, std::string_view hook) {
  if (s.raw_session() != nullptr)
    if (const value step = get_global_step(s.raw_session()->of())) return step;
  raise(status::failed_precondition,
        text(hook,
             ": Global step should be created to use it; call create_global_step(g) and count it, as minimize "
             "does with {.global_step = step}"));
}

}  // namespace gradus::detail
