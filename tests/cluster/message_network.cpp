// What every network of nodes says of itself.
#include <gradus/cluster/message_network.hpp>
#include <gradus/testing/hand_tasks.hpp>

#include <doctest/doctest.h>

using namespace gradus;
using namespace gradus::detail;

namespace {
struct quiet_network final : message_network {
  using message_network::message_network;
  mailbox& inbox(std::uint32_t) override { std::terminate(); }
  void post(const protocol_message&) override {}
  void withdraw(std::uint32_t) override {}
  void end() override {}
  void check(const std::string&) const override {}
  membership_options members(nanos) override { return {}; }
  worker_options patience(worker_options o) const override { return o; }
};
}  // namespace

TEST_CASE(
    "a network has the cluster's shape and its tasks' monotonic time, and its workers outlive a parameter server") {
  const testing::hand_tasks hand;
  const quiet_network network({2, 3}, hand.tasks());
  CHECK((network.shape().shards == 2 && network.shape().workers == 3));
  const nanos before = network.now();
  hand.advance(1.5);
  CHECK(network.now() - before == 1'500 * one_millisecond);
  hand.set(1e9);  // the wall clock is set
  CHECK(network.now() - before == 1'500 * one_millisecond);
  CHECK_FALSE(network.workers_begin_anew());
}
