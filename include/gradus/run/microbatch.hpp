// A batch in parts: the activations of one part at a time, one update.
#pragma once
#include <cstdint>

#include "../base/contract.hpp"
#include "../base/error.hpp"

namespace gradus {

// The batch is cut into `parts` equal parts, in order; each goes forward and backward alone. Their gradients are summed
// as a tree fixed by the number of parts (tensor/tree_sum.hpp) and divided by it, so a loss that is a mean over the
// batch gives the gradient of the whole; then comes one update, with its clip on the norm of the whole. Loss, scalar
// metrics and scalar summaries are averaged the same way; other outputs are those of the last part. The bits depend on
// `parts`, not on who computes a part: n processes that hold a power of two of them each agree with one that holds all.
// Costs a sum and up to log2(parts) + 1 arrays of all gradients; saves the activations of the other parts.
//
// Where it differs from accumulate{}: that makes one update of several calls of train_step; this cuts one call. An
// operation that draws random numbers draws others in every part.
// Errors: invalid_argument for a batch that does not divide; unimplemented for a gradient that comes as rows, and for a
// model that changes variables while it computes (batch_norm's moving averages), which every part would do again.
struct microbatch {
  using policy_for = kind::microbatch;
  std::int64_t parts = 1;

  void check() const {
    if (parts < 1) raise(status::invalid_argument, text("microbatch: expected parts >= 1, found ", parts));
  }
};

namespace detail {
struct whole_batch {
  using policy_for = kind::microbatch;
  static constexpr std::int64_t parts = 1;
};
}  // namespace detail

// Where a run's bytes are.
struct memory_use {
  std::size_t variables = 0, gradients = 0;
  std::size_t mirrors = 0;       // slots and averages
  std::size_t activations = 0;   // of a training step: what the plan needs,
  std::size_t all_tensors = 0;   // and what it would without sharing memory
  std::size_t partial_sums = 0;  // of microbatch, and its whole batch
  std::size_t total() const { return variables + gradients + mirrors + activations + partial_sums; }
};

}  // namespace gradus
