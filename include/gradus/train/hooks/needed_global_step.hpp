// This header finds what a hook of a monitored session requires: the session, and the global step of its graph.
#pragma once
#include "../../base/build.hpp"

#include <string_view>

#include "../../session/global_step.hpp"
#include "../hook.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Returns the session, for a hook that runs ops of its own at the end. Raises failed_precondition, with the hook's
// name, in a run over the model of a trainer or a supervisor.
inline base_session& needed_session(const hooked_session& s, std::string_view hook) {
  if (s.raw_session() == nullptr)
    raise(status::failed_precondition, text(hook,
                                            ": it runs ops at the end, which needs the session of a "
                                            "monitored_session; in a trainer or a supervisor fetch them in a step"));
  return *s.raw_session();
}
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
