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

// One of the three policies as a value; the default is asynchronous. A strategy given by name is kept as it is, for the
// error that refuses it: TensorFlow's strategies (MirroredStrategy, ...) are objects, and this library has none of
// them. `all_reduce` has a stepper of its own, so a program can only give it as a policy.
class distribution_strategy {
public:
  using policy_for = kind::staleness;

  distribution_strategy() = default;
  distribution_strategy(const asynchronous&) {}
  distribution_strategy(const ssp& p) : mode_(modes::bounded), bound_(p) {}
  distribution_strategy(const sync_replicas& p) : mode_(modes::synchronous), round_(p) {}
  distribution_strategy(std::string name) : mode_(modes::named), name_(std::move(name)) {}
  distribution_strategy(const char* name) : distribution_strategy(std::string(name)) {}

  bool is_known() const { return mode_ != modes::named; }
  const std::string& name() const { return name_; }  // of one that is not known
  // Calls f with the policy. A name that is not known was refused before.
  template <class F>
  decltype(auto) visit(F f) const {
    if (mode_ == modes::synchronous) return f(round_);
    if (mode_ == modes::bounded) return f(bound_);
    return f(asynchronous{});
  }

private:
  enum class modes : std::uint8_t { asynchronous, bounded, synchronous, named };
  modes mode_ = modes::asynchronous;
  ssp bound_ = {};
  sync_replicas round_ = {};
  std::string name_ = {};
};

}  // namespace gradus
