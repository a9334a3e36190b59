// microbatch runs a batch in parts: it keeps the activations of one part at a time, and makes one update.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "../base/contract.hpp"
#include "../base/error.hpp"
#include "../ops/state.hpp"
#include "../tensor/tree_sum.hpp"
#include "model_updates.hpp"

namespace gradus::inline GRADUS_BUILD {

// The batch is cut into `parts` equal parts, in order; each goes forward and backward alone. Their gradients are summed
// as a tree fixed by the number of parts (tensor/tree_sum.hpp) and divided by it, so a loss that is a mean over the
// batch gives the gradient of the whole; then comes one update, with its clip on the norm of the whole. Loss, scalar
// metrics and scalar summaries are averaged the same way; other outputs are those of the last part. The bits depend on
// `parts`, not on the process that computes a part: n processes that hold a power of two of them each agree with one
// that holds all. It costs a sum and up to log2(parts) + 1 arrays of all gradients, and saves the activations of the
// other parts.
//
// microbatch{parts, in_order} adds each part's gradients to the sum of those before it instead, with one array beside;
// with a part for each example these are the bits of a board that has one_by_one (run/gradient_life.hpp). Processes
// cannot share such a sum: they are refused (invalid_argument).
//
// It differs from accumulate{}, which makes one update of several calls of train_step: this cuts one call. An operation
// that draws random numbers draws other numbers in every part.
//
// Raises invalid_argument for a batch that does not divide; unimplemented for a gradient that comes as rows, and for a
// model that changes variables while it computes (batch_norm's moving averages), which every part would do again.
struct microbatch {
  using policy_for = kind::microbatch;
  std::int64_t parts = 1;
  summation sum = summation::tree;

  void check() const;
  // Raises invalid_argument for a sum that so many processes cannot share.
  void check_shared(std::int64_t processes) const;
};

namespace detail {
struct whole_batch {
  using policy_for = kind::microbatch;
  static constexpr std::int64_t parts = 1;
};

// The sums of a batch's parts: of gradients, which stay where gradients are, and of the outputs that are averaged.
class part_sums {
public:
  // Raises unimplemented for a model that the parts of a batch would change.
  void prepare(step_machine& train, const variable_arena& variables, const microbatch& cut);
  // Is called in place of prepare for a batch that is not cut, whose outputs are averaged with those of others.
  void prepare_outputs(step_machine& train);
  void restart() { sums_.restart(), output_sums_.restart(); }
  // Adds the results of the part that `train` has just run.
  void take(step_machine& train, variable_arena& variables);
  // Is called after the last part: gradients that were summed over `of` parts become their mean, outputs the mean of
  // the parts here.
  void average(step_machine& train, variable_arena& variables, std::int64_t of);
  void average_outputs(step_machine& train) { average_outputs(train, cut_.parts); }
  void average_outputs(step_machine& train, std::int64_t of);
  // Returns the sums of the outputs that are averaged. For a batch that is not cut, call take_outputs first.
  std::span<double> outputs();
  void take_outputs(step_machine& train);
  // `of` is the number of parts that a dense gradient of this type was summed over.
  static void divide_gradient(dtype type, std::byte* values, std::size_t n, std::int64_t of);
  std::size_t bytes() const { return sums_.bytes() + output_sums_.bytes(); }

private:
  microbatch cut_;
  tree_sum sums_, output_sums_;
  std::vector<int> averaged_;  // the outputs that are averaged, and their values
  std::vector<double> outputs_;

  template <class T>
  static void add_values(T* to, const T* from, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) to[i] += from[i];
  }
  template <class T>
  static void divide_values(T* x, std::int64_t by, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) x[i] /= static_cast<T>(by);
  }
  static void add_gradients(const variable_arena& variables, std::byte* to, const std::byte* from);
};
}  // namespace detail

// How many bytes a run uses for what.
struct memory_use {
  std::size_t variables = 0, gradients = 0;
  std::size_t mirrors = 0;       // slots and averages
  std::size_t activations = 0;   // of a training step: what the plan needs,
  std::size_t all_tensors = 0;   // and what it would need without sharing memory
  std::size_t partial_sums = 0;  // of microbatch, and its whole batch
  std::size_t total() const { return variables + gradients + mirrors + activations + partial_sums; }
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "microbatch.ipp"
#endif
