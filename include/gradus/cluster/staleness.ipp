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

}  // namespace gradus::detail
