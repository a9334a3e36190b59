// The global step of a session's graph is an int64 variable in the collection `global_step`, which counts training
// steps. The functions are tf.train.create_global_step and its siblings (1.15).
#pragma once
#include "../base/build.hpp"

#include <cstdint>

#include "../run/base_session.hpp"

namespace gradus::inline GRADUS_BUILD {

// Creates the global step: a variable named "global_step" with the first value 0, not trainable, in the collections
// `variables` and `global_step`. Raises invalid_argument if the graph has one.
value create_global_step(graph& g);
// Returns the global step of a graph, or an empty value if the graph has none. Raises failed_precondition if the
// collection has several; invalid_argument if it is no scalar variable of int32 or int64.
value get_global_step(graph& g);
value get_or_create_global_step(graph& g);
// Returns the current value of the global step, by a run of its own, as tf.train.global_step. Raises the errors of a
// run.
std::int64_t global_step(base_session& s, value step);
namespace detail {
// Returns the number in a fetched global step.
std::int64_t step_in(const const_tensor_view& step);
}  // namespace detail

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "global_step.ipp"
#endif
