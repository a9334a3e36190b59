// This header declares the stages for `composable` (stage.hpp); the headers of their names define them.
#pragma once
#include "../base/build.hpp"

#include <memory>

#include "dataset_concept.hpp"

namespace gradus::inline GRADUS_BUILD {

class task_system;
class task_driver;
template <dataset Source>
class shuffled_dataset;
template <dataset Source>
class repeated_dataset;
template <dataset Source>
class taken_dataset;
template <dataset Source>
class skipped_dataset;
template <dataset Source>
class batches;
template <dataset Source>
class prefetched_dataset;
template <dataset Source>
class shard_of;
template <bool Batched>
class any_units;
using any_dataset = any_units<false>;
using any_batches = any_units<true>;
template <bool Batched>
class mapped_dataset;
template <bool Batched>
class filtered_dataset;
template <bool Batched>
class zipped_dataset;
template <bool Batched>
class concatenated_dataset;
template <bool Batched>
class cached_dataset;
class enumerated_dataset;
class windowed_dataset;
class unique_elements;
class padded_batches;
class bucketed_batches;
class interleaved_dataset;
class grouped_dataset;
class elements_as_batches;
struct padded_batch_options;
struct bucket_options;
struct interleave_options;

// Options of a function that `map` calls.
struct map_options {
  int parallel = 0;       // number of threads that call it; results keep their order; 0: the thread that pulls calls it
  bool stateful = false;  // the function depends on more than its argument (external_state_policy)
  // The task system that starts those threads (base/tasks.hpp); null: the system's threads.
  std::shared_ptr<task_driver> driver = {};
};
// Options of a function that a stage calls on the thread that pulls the element.
struct call_options {
  bool stateful = false;
};

namespace detail {
template <class Stage>
concept complete = requires { sizeof(Stage); };
}  // namespace detail

}  // namespace gradus

// The sentence of an assertion that the header of a stage is there; the compiler's own error would be about incomplete
// classes. The macro gives the sentence only, since clang prints three more lines about an assertion inside a macro.
#define GRADUS_HEADER_OF(stage, header)                            \
  "gradus: ." #stage "(...) needs #include <gradus/input/" #header \
  ".hpp>; <gradus/data.hpp> has all stages and "                   \
  "readers"
