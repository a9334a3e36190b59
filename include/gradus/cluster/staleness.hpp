// How stale the values may be that a cluster's worker computes a gradient from: a policy of a training run, beside
// `connected`.
//
//   gradus::asynchronous{}                        every push is an update of its own, and nobody waits (the default)
//   gradus::ssp{2}                                the same, but a worker leads the slowest by two updates at most
//   gradus::sync_replicas{}                       one update of a gradient of every worker: what one process computes
//   gradus::sync_replicas{.replicas_to_aggregate = 3, .total_num_replicas = 4}         with one backup
//
// ssp{0} is sync_replicas{}: one update of the sum, with its bits. (Ho et al., "More effective distributed ML via a
// stale synchronous parallel parameter server", 2013; Chen et al., "Revisiting distributed synchronous SGD", 2016.)
#pragma once
#include <cstdint>

#include "../base/contract.hpp"
#include "protocol/staleness.hpp"

namespace gradus::inline GRADUS_BUILD {

// TensorFlow's training with parameter servers without SyncReplicasOptimizer; there, values may be torn between two
// updates, here each worker computes from values after a whole number of updates.
struct asynchronous {
  using policy_for = kind::staleness;
};

// A worker begins its next gradient only while it leads the slowest worker by at most `bound` updates.
struct ssp {
  using policy_for = kind::staleness;
  std::uint64_t bound = 0;
};

// tf.train.SyncReplicasOptimizer (1.15): N gradients of one step are summed, divided by N, and applied as one update.
// With more workers than N the slowest of a step are left out; with fewer each contributes several times. Otherwise
// than TensorFlow a round has exactly N gradients, they are summed in the order of the workers (so arrival never
// reaches the bits), and no round is wasted at the start unless `wasted_first_round` is set.
struct sync_replicas {
  using policy_for = kind::staleness;
  int replicas_to_aggregate = 0;  // N; 0: the number of workers
  int total_num_replicas = 0;     // as TensorFlow's; 0: the number of workers, which is all that is taken
  bool wasted_first_round = false;
};

namespace detail {
// What the decider is told. Errors: invalid_argument for a number of replicas that the cluster cannot have.
inline decider_options decides_by(const asynchronous&, const cluster_shape& shape) {
  return decider_options{.shape = shape};
}
inline decider_options decides_by(const ssp& p, const cluster_shape& shape) {
  return decider_options{.shape = shape, .mode = staleness::bounded, .bound = p.bound}.settled();
}
decider_options decides_by(const sync_replicas& p, const cluster_shape& shape);
}  // namespace detail
}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "staleness.ipp"
#endif
