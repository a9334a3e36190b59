// What a server asks of its network.
#include <gradus/cluster/server.hpp>
#include <gradus/cluster/shard_program.hpp>
#include <gradus/cluster/task_network.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <vector>

using namespace gradus;

namespace {

struct kept_network final : detail::task_network {
  std::vector<std::uint32_t> served;
  detail::message_network& messages() override { throw std::logic_error("nobody sends anything"); }
  void offer(detail::shard_program, const std::string&) override {}
  void serve(std::uint32_t shard) override { served.push_back(shard); }
};
const cluster_spec three{{"ps", {"p0:1", "p1:1"}}, {"worker", {"w0:1"}}};

}  // namespace

TEST_CASE("join of a parameter server is its work, and join of another task waits for a stop") {
  const auto network = std::make_shared<kept_network>();
  server ps({.cluster = three, .job_name = "ps", .task_index = 1}, network, {});
  ps.join();
  CHECK(network->served == std::vector<std::uint32_t>{1});
  CHECK(ps.network() == network);
  CHECK(network->ranks() == nullptr);  // only where workers sum among themselves
  server worker({.cluster = three, .job_name = "worker", .task_index = 0}, network, {});
  worker.stop();
  worker.join();
  CHECK(network->served.size() == 1);
}
