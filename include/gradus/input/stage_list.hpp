// The stages by name: declared here for `composable` (stage.hpp), defined in the headers of their names.
#pragma once
#include "dataset_concept.hpp"

namespace gradus {

template <dataset Source>
class shuffled;
template <dataset Source>
class repeated;
template <dataset Source>
class taken;
template <dataset Source>
class skipped;
template <dataset Source>
class batches;
template <dataset Source>
class prefetched;
template <dataset Source>
class shard_of;
template <bool Batched>
class any_units;
using any_dataset = any_units<false>;
using any_batches = any_units<true>;
template <bool Batched>
class mapped;
template <bool Batched>
class filtered;
template <bool Batched>
class zipped;
template <bool Batched>
class concatenated;
template <bool Batched>
class cached;
class enumerated;
class windowed;
class unique_elements;
class padded_batches;
class bucketed_batches;
class interleaved;
class grouped;
class regarded_batches;
struct padded_batch_options;
struct bucketing;
struct interleaving;

// About a function that `map` calls.
struct mapping {
  int parallel = 0;       // so many threads of its own call it, in order; 0: whoever asks for the element does
  bool stateful = false;  // it depends on more than its argument (external_state_policy)
};
// About a function that a stage calls, whoever asks for the element.
struct calling {
  bool stateful = false;
};

namespace detail {
template <class Stage>
concept complete = requires { sizeof(Stage); };
}  // namespace detail

}  // namespace gradus

// A stage whose header is missing is refused in a sentence; the compiler's own words are about incomplete classes.
#define GRADUS_NEEDS_HEADER(stage, header, ...)                                                                 \
  static_assert(detail::complete<__VA_ARGS__>, "gradus: ." #stage "(...) needs #include <gradus/input/" #header \
                                               ".hpp>; <gradus/data.hpp> has all stages and readers")
