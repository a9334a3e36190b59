// These policies decide which worker waits for which in a cluster that trains (staleness.hpp explains each);
// distribution_strategy is one of them as a value, which a configuration chooses when the program runs.
//
//   gradus::run_config{.train_distribute = gradus::sync_replicas{}}   // beside connected{here}, in place of the policy
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <string>
#include <utility>

#include "../base/contract.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
template <class Alone>
class all_reduce_stepper;
template <class Device, class Update, class Staleness>
class reduced_update;
}  // namespace detail

// Every push is an update of its own, as in TensorFlow's training with parameter servers without SyncReplicasOptimizer.
// There a worker may read some values from before an update and others from after it; here each worker computes from
// values after a whole number of updates.
struct asynchronous {
  using policy_for = kind::staleness;
};

// A worker begins its next gradient only while it leads the slowest worker by at most `bound` updates.
struct ssp {
  using policy_for = kind::staleness;
  std::uint64_t bound = 0;
};

// tf.train.SyncReplicasOptimizer (1.15): N gradients of one step are summed, divided by N, and applied as one update.
// With more workers than N the slowest of a step are left out; with fewer each contributes several times. TensorFlow
// differs: here a round has exactly N gradients, they are summed in the order of the workers (so the order of arrival
// does not change the bits), and no round is wasted at the start unless `wasted_first_round` is set.
struct sync_replicas {
  using policy_for = kind::staleness;
  int replicas_to_aggregate = 0;  // N; 0: the number of workers
  int total_num_replicas = 0;     // as TensorFlow's; 0, or the number of workers, which is the only valid number
  bool wasted_first_round = false;
};

// How gradients are summed: in the tree of microbatch, or, with library_sum, by the library that carries bytes, which
// is MPI_Allreduce. That is faster on large machines, but adds in an order of its own, so the bits are not those of one
// process. library_sum works only under MPI. Rows are gathered in both cases.
enum class all_reduce_sum : std::uint8_t { tree, by_library };
inline constexpr all_reduce_sum library_sum = all_reduce_sum::by_library;

// Every worker sums the gradients of all workers and makes the whole update itself, without parameter servers and with
// the bits of one process with microbatch{n}. This suits models that each worker can hold, on machines that are about
// equally fast. The steps are in all_reduce.hpp, which a program has to include.
struct all_reduce {
  using policy_for = kind::staleness;
  std::int64_t bucket_bytes = std::int64_t{4} << 20;  // of gradients that are sent together during the backward pass
  all_reduce_sum sum = all_reduce_sum::tree;

  template <class Alone>
  using steps = detail::all_reduce_stepper<Alone>;
  template <class Device, class Update>
  using updates = detail::reduced_update<Device, Update, all_reduce>;
};

// One of the four policies as a value; the default is asynchronous. A strategy given by name is kept as it is, for the
// error that refuses it: TensorFlow's strategies (MirroredStrategy, ...) are objects, and this library has none of
// them. `all_reduce` has steps of its own, so a run takes it as a value only with the policy any_strategy
// (any_strategy.hpp).
class distribution_strategy {
public:
  using policy_for = kind::staleness;

  distribution_strategy() = default;
  distribution_strategy(const asynchronous&) {}
  distribution_strategy(const ssp& p) : mode_(modes::bounded), bound_(p) {}
  distribution_strategy(const sync_replicas& p) : mode_(modes::synchronous), round_(p) {}
  distribution_strategy(const all_reduce& p) : mode_(modes::reduced), sums_(p) {}
  distribution_strategy(std::string name) : mode_(modes::named), name_(std::move(name)) {}
  distribution_strategy(const char* name) : distribution_strategy(std::string(name)) {}

  // Returns the policy if it is all_reduce; otherwise null.
  const all_reduce* as_all_reduce() const { return mode_ == modes::reduced ? &sums_ : nullptr; }
  bool is_known() const { return mode_ != modes::named; }
  const std::string& name() const { return name_; }  // of one that is not known
  // Calls f with the policy. A name that is not known was refused before.
  template <class F>
  decltype(auto) visit(F f) const {
    if (mode_ == modes::synchronous) return f(round_);
    if (mode_ == modes::bounded) return f(bound_);
    if (mode_ == modes::reduced) return f(sums_);
    return f(asynchronous{});
  }

private:
  enum class modes : std::uint8_t { asynchronous, bounded, synchronous, reduced, named };
  modes mode_ = modes::asynchronous;
  ssp bound_ = {};
  sync_replicas round_ = {};
  all_reduce sums_ = {};
  std::string name_ = {};
};

}  // namespace gradus
