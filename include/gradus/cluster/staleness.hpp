// A staleness policy says how stale the values may be from which a cluster's worker computes a gradient; it stands
// beside `connected` in a training run.
//
//   gradus::asynchronous{}    every push is an update of its own, and no worker waits (the default)
//   gradus::ssp{2}            the same, but a worker leads the slowest by two updates at most
//   gradus::sync_replicas{}   one update of a gradient of every worker, with the bits of one process
//   gradus::sync_replicas{.replicas_to_aggregate = 3, .total_num_replicas = 4}   the same with one backup
//
// The policies themselves, and a configuration's choice among them when a program runs, are in
// distribution_strategy.hpp. ssp{0} equals sync_replicas{}: one update of the sum, with its bits. (Ho et al., "More
// effective distributed ML via a stale synchronous parallel parameter server", 2013; Chen et al., "Revisiting
// distributed synchronous SGD", 2016.)
#pragma once
#include "distribution_strategy.hpp"
#include "protocol/staleness.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// Returns the decider's settings. Raises invalid_argument for a number of replicas that the cluster cannot have.
inline decider_options decides_by(const asynchronous&, const cluster_shape& shape) {
  return decider_options{.shape = shape};
}
inline decider_options decides_by(const ssp& p, const cluster_shape& shape) {
  return decider_options{.shape = shape, .mode = staleness::bounded, .bound = p.bound}.settled();
}
decider_options decides_by(const sync_replicas& p, const cluster_shape& shape);
// Raises invalid_argument: no decider has these steps.
[[noreturn]] decider_options decides_by(const all_reduce& p, const cluster_shape& shape);
inline decider_options decides_by(const distribution_strategy& d, const cluster_shape& shape) {
  return d.visit([&](const auto& strategy) { return decides_by(strategy, shape); });
}
[[noreturn]] void raise_moving_loss_scale();
[[noreturn]] void raise_without_shards();
// Raises invalid_argument for a cluster without parameter servers, by a strategy that takes them.
template <class Staleness>
void check_shards(const Staleness& when, const cluster_shape& shape) {
  if (shape.shards == 0) decides_by(when, shape), raise_without_shards();
}
}  // namespace detail
}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "staleness.ipp"
#endif
