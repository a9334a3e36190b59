// The bodies of staleness.hpp.
#pragma once
#include "../base/body.hpp"
#include "staleness.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY decider_options decides_by(const sync_replicas& p, const cluster_shape& shape) {
  const int workers = static_cast<int>(shape.workers);
  if (p.replicas_to_aggregate < 0 || p.total_num_replicas < 0)
    raise(status::invalid_argument,
          text("sync_replicas: expected replicas_to_aggregate and total_num_replicas of 0 or more, found ",
               p.replicas_to_aggregate, " and ", p.total_num_replicas));
  if (p.total_num_replicas != 0 && p.total_num_replicas != workers)
    raise(status::invalid_argument,
          text("sync_replicas: total_num_replicas is ", p.total_num_replicas, ", and the cluster has ", workers,
               " workers; expected that number, or 0 to take it"));
  const int needed = p.replicas_to_aggregate == 0 ? workers : p.replicas_to_aggregate;
  if (needed > workers && needed % workers != 0)
    raise(status::invalid_argument, text("sync_replicas: ", needed, " gradients cannot be shared evenly by ", workers,
                                         " workers; expected at most that many, or a multiple"));
  return decider_options{.shape = shape,
                         .mode = staleness::synchronous,
                         .round = {static_cast<std::uint32_t>(needed), shape.workers, p.wasted_first_round}}
      .settled();
}

GRADUS_BODY decider_options decides_by(const all_reduce&, const cluster_shape&) {
  raise(
      status::invalid_argument,
      "train_distribute is all_reduce{}, whose steps this run does not have; give all_reduce{} as a policy of the run, "
      "or the policy any_strategy{} (cluster/any_strategy.hpp), which takes each strategy as a value");
}
GRADUS_BODY void raise_moving_loss_scale() {
  raise(status::invalid_argument,
        "a loss scale that changes (dynamic_loss_scale, or a varied one) cannot stand beside asynchronous or ssp: "
        "another worker's update may change it between a gradient and its update, which would divide by another scale "
        "than the gradient was multiplied by. Train with sync_replicas{} or all_reduce{}, or give static_loss_scale a "
        "constant scale");
}
GRADUS_BODY void raise_without_shards() {
  raise(
      status::invalid_argument,
      "asynchronous, ssp and sync_replicas take parameter servers, and this cluster has none; give it some (.ps = 1 or "
      "more), or train with gradus::all_reduce{} (cluster/all_reduce.hpp)");
}

}  // namespace gradus::detail
