// What the policies asynchronous, ssp and sync_replicas say to the decider, and what they refuse.
#include <gradus/cluster/staleness.hpp>

#include <doctest/doctest.h>

#include "../message.hpp"

using namespace gradus;
using namespace gradus::detail;

TEST_CASE("each policy is a mode of the decider") {
  const cluster_shape shape{2, 3};
  CHECK(decides_by(asynchronous{}, shape).mode == staleness::asynchronous);
  const decider_options bounded = decides_by(ssp{2}, shape);
  CHECK(bounded.mode == staleness::bounded);
  CHECK(bounded.bound == 2);
  CHECK(bounded.shape.workers == 3);
  const decider_options all = decides_by(sync_replicas{}, shape);
  CHECK(all.mode == staleness::synchronous);
  CHECK(all.round.aggregate == 3);
  CHECK(all.round.total == 3);
  CHECK_FALSE(all.round.wasted_first_round);
  const decider_options backups =
      decides_by(sync_replicas{.replicas_to_aggregate = 2, .total_num_replicas = 3, .wasted_first_round = true}, shape);
  CHECK(backups.round.aggregate == 2);
  CHECK(backups.round.total == 3);
  CHECK(backups.round.wasted_first_round);
  CHECK(decides_by(sync_replicas{.replicas_to_aggregate = 6}, shape).round.aggregate == 6);
}

TEST_CASE("ssp of bound 0 is the synchronous round of all workers") {
  const decider_options none_ahead = decides_by(ssp{0}, {1, 4}), all = decides_by(sync_replicas{}, {1, 4});
  CHECK(none_ahead.mode == all.mode);
  CHECK(none_ahead.round.aggregate == all.round.aggregate);
  CHECK(none_ahead.round.total == all.round.total);
}

TEST_CASE("numbers of replicas that this cluster cannot have are refused") {
  const auto said = [](const sync_replicas& p) {
    return message_of(status::invalid_argument, [&] { decides_by(p, {1, 3}); });
  };
  CHECK(says(said({.replicas_to_aggregate = -1}), "of 0 or more, found -1 and 0"));
  CHECK(says(said({.total_num_replicas = 4}), "total_num_replicas is 4, and the cluster has 3 workers"));
  CHECK(says(said({.replicas_to_aggregate = 4}), "4 gradients cannot be shared evenly by 3 workers"));
}
