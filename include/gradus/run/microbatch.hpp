// A batch in parts: the activations of one part at a time, one update.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "../base/contract.hpp"
#include "../base/error.hpp"
#include "../ops/state.hpp"
#include "../tensor/tree_sum.hpp"
#include "model_updates.hpp"

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

// The sums of a batch's parts: gradients where gradients lie, and the outputs that are averaged.
class part_sums {
public:
  // Errors: unimplemented for a model that the parts of a batch would change.
  void prepare(machine& train, const variable_arena& variables, std::int64_t parts) {
    parts_ = parts;
    const runnable& r = train.what();
    const graph_view& v = r.graph.view;
    std::vector<bool> updated(static_cast<std::size_t>(v.size));  // by an update, or after one
    for (int i = 0; i < v.size; ++i) {
      const node& n = v.nodes[i];
      const bool own = n.op == &cards::apply || n.op == &cards::global_norm;
      bool after = false;
      for (int e = n.first, end = e + n.inputs + n.controls; e < end; ++e)
        after = after || updated[static_cast<std::size_t>(v.edges[e])];
      updated[static_cast<std::size_t>(i)] = after || n.op == &cards::apply;
      if (n.op == &cards::apply && n.inputs == 3)
        raise(status::unimplemented,
              text("microbatch: the gradient of \"", r.name_of(v.edges[n.first]),
                   "\" comes as rows, whose sum is no array; use accumulate{}, or a smaller batch"));
      if ((n.op->is(trait::writes) && !own) || (after && !own && !n.op->is(trait::control)))
        raise(status::unimplemented,
              text("microbatch: the model changes a variable while it computes (", n.op->name,
                   "), and every part would do it again; leave microbatch out, or the ", n.op->name));
    }
    train.cut(parts_);
    sums_ = tree_sum(parts_, variables.trainable_bytes());
    averaged_.clear();
    for (int i = 0; i < r.graph.output_count; ++i) {
      const output& o = r.graph.outputs[i];
      const node& n = r.at(o.node);
      const bool number = (n.type == float32 || n.type == float64) && gradus::count(n.dims) == 1;
      const bool mean = o.kind == output::loss || o.kind == output::metric || o.kind == output::summary;
      if (mean && number && r.program.places[o.node].region == node_place::slot &&
          std::find(averaged_.begin(), averaged_.end(), o.node) == averaged_.end())
        averaged_.push_back(o.node);
    }
    outputs_.resize(averaged_.size());
    output_sums_ = tree_sum(parts_, outputs_.size() * sizeof(double));
  }
  void restart() { sums_.restart(), output_sums_.restart(); }
  // What the part that `train` has just run leaves behind.
  void take(machine& train, variable_arena& variables) {
    sums_.take(variables.gradient_base(),
               [&](std::byte* to, const std::byte* from) { add_gradients(variables, to, from); });
    for (std::size_t i = 0; i < averaged_.size(); ++i) outputs_[i] = read_number(train.view(averaged_[i]));
    output_sums_.take(reinterpret_cast<std::byte*>(outputs_.data()), [this](std::byte* to, const std::byte* from) {
      add_values(reinterpret_cast<double*>(to), reinterpret_cast<const double*>(from), outputs_.size());
    });
  }
  // After the last: gradients that were summed over `of` parts become their mean, outputs that of the parts here.
  void average(machine& train, variable_arena& variables, std::int64_t of) {
    for (std::size_t i = 0; i < variables.size(); ++i) {
      if (!variables.info(i).trainable) continue;
      if (variables.info(i).type == float64)
        divide_values(reinterpret_cast<double*>(variables.gradient(i)), of, variables.info(i).size());
      else
        divide_values(reinterpret_cast<float*>(variables.gradient(i)), of, variables.info(i).size());
    }
    for (std::size_t i = 0; i < averaged_.size(); ++i) {
      const tensor_view v = train.view(averaged_[i]);
      const double mean = outputs_[i] / static_cast<double>(parts_);
      if (v.type == float64)
        *reinterpret_cast<double*>(v.mutable_data()) = mean;
      else
        *reinterpret_cast<float*>(v.mutable_data()) = static_cast<float>(mean);
    }
  }
  std::size_t bytes() const { return sums_.bytes() + output_sums_.bytes(); }

private:
  std::int64_t parts_ = 1;
  tree_sum sums_, output_sums_;
  std::vector<int> averaged_;  // outputs that are, and their values
  std::vector<double> outputs_;

  template <class T>
  static void add_values(T* to, const T* from, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) to[i] += from[i];
  }
  template <class T>
  static void divide_values(T* x, std::int64_t by, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) x[i] /= static_cast<T>(by);
  }
  static void add_gradients(const variable_arena& variables, std::byte* to, const std::byte* from) {
    for (std::size_t i = 0; i < variables.size(); ++i) {
      const variable_info& v = variables.info(i);
      if (!v.trainable) continue;
      std::byte* const sum = to + v.offset;
      if (v.type == float64)
        add_values(reinterpret_cast<double*>(sum), reinterpret_cast<const double*>(from + v.offset), v.size());
      else
        add_values(reinterpret_cast<float*>(sum), reinterpret_cast<const float*>(from + v.offset), v.size());
    }
  }
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
