// What workers bring for parameter servers to do.
#include <gradus/cluster/message_network.hpp>
#include <gradus/cluster/offered_program.hpp>

#include <doctest/doctest.h>

#include "../message.hpp"

using namespace gradus;
using namespace gradus::detail;

namespace {
struct no_network final : message_network {
  no_network() : message_network({}, {}) {}
  mailbox& inbox(std::uint32_t) override { std::terminate(); }
  void post(const protocol_message&) override {}
  void withdraw(std::uint32_t) override {}
  void end() override {}
  void check(const std::string&) const override {}
  membership_options members(nanos) override { return {}; }
  worker_options patience(worker_options o) const override { return o; }
};
}  // namespace

TEST_CASE("the first program is what all serve; another is refused, and after the end nobody waits for one") {
  no_network network;
  offered_program offered{task_system()};
  std::uint32_t served = 0;
  const auto program = [&](const char* rule) {
    shard_program p;
    p.of.rule = rule;
    p.serve = [&](message_network&, std::uint32_t shard) { served = shard; };
    return p;
  };
  {
    auto waits = task_system().start("a ps", "none", [&] { offered.serve(network, 3); });
    offered.offer(program("adam"), "worker 0");
  }
  CHECK(served == 3);
  offered.offer(program("adam"), "worker 1");
  CHECK((offered.is_there() && !offered.survives()));
  const std::string said = message_of(status::failed_precondition, [&] { offered.offer(program("sgd"), "worker 2"); });
  CHECK(says(said, "worker 0"));
  CHECK(says(said, "worker 2"));
  shard_program other = program("adam");
  other.recipe.resize(1);
  CHECK(says(message_of(status::failed_precondition, [&] { offered.offer(other, "worker 2"); }),
             "what worker 2 was given differs from what worker 0 was given"));
  offered_program ended{task_system()};
  ended.end();
  ended.serve(network, 1);
  CHECK(served == 3);
}
