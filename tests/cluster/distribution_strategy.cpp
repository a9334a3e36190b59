#include <gradus/cluster/distribution_strategy.hpp>
#include <gradus/cluster/staleness.hpp>

#include <doctest/doctest.h>

using namespace gradus;

TEST_CASE("a strategy as a value decides what the policy decides") {
  const detail::cluster_shape shape{.shards = 2, .workers = 4};
  const auto same = [&](const auto& policy) {
    const auto a = detail::decides_by(policy, shape), b = detail::decides_by(distribution_strategy(policy), shape);
    return a.mode == b.mode && a.bound == b.bound && a.round.aggregate == b.round.aggregate &&
           a.round.total == b.round.total && a.round.wasted_first_round == b.round.wasted_first_round;
  };
  CHECK(same(asynchronous{}));
  CHECK(same(ssp{0}));
  CHECK(same(ssp{3}));
  CHECK(same(sync_replicas{}));
  CHECK(same(sync_replicas{.replicas_to_aggregate = 3, .total_num_replicas = 4, .wasted_first_round = true}));
  CHECK(detail::decides_by(distribution_strategy(), shape).mode == detail::staleness::asynchronous);
  CHECK_FALSE(distribution_strategy("MirroredStrategy").is_known());
  CHECK(distribution_strategy("MirroredStrategy").name() == "MirroredStrategy");
  CHECK(distribution_strategy(ssp{1}).is_known());
}
