// The global step of a session's graph is an int64 variable in the collection `global_step`, which counts training
// steps. tf.train.create_global_step and its siblings (1.15).
#pragma once
#include <cstdint>

#include "../run/base_session.hpp"

namespace gradus::inline GRADUS_BUILD {

// Makes it, named "global_step": 0, not trainable, in the collections `variables` and `global_step`. Error:
// invalid_argument if the graph has one.
value create_global_step(graph& g);
// Empty if the graph has none. Errors: failed_precondition for several; invalid_argument if it is no scalar variable of
// int32 or int64.
value get_global_step(graph& g);
value get_or_create_global_step(graph& g);
// Returns its current value, by a run of its own. tf.train.global_step. Error: as a run.
std::int64_t global_step(base_session& s, value step);
namespace detail {
// A fetched step.
std::int64_t step_in(const const_tensor_view& step);
}  // namespace detail

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "global_step.ipp"
#endif
