// The port of a task whose training listens: what comes for sessions goes to them, and to nobody when they have ended.
#include <gradus/cluster/session_calls.hpp>
#include <gradus/cluster/shared_port.hpp>
#include <gradus/cluster/task_hello.hpp>

#include <doctest/doctest.h>

#include <vector>

#include "../message.hpp"

namespace {
using namespace gradus;
using namespace gradus::detail;

struct sessions final : transport_told {
  std::vector<std::uint32_t> greeted_as, came_from;
  transport_greeting greeted(std::span<const std::byte>, const transport_peer&) override {
    const auto node = first_session_node + static_cast<std::uint32_t>(greeted_as.size());
    greeted_as.push_back(node);
    return {node, {}};
  }
  void welcomed(std::uint32_t, std::span<const std::byte>) override {}
  void refused(std::uint32_t, const std::string&) override {}
  void came(std::uint32_t node, const received_frame&) override { came_from.push_back(node); }
};
std::vector<std::byte> frame_of(std::span<const std::span<const std::byte>> pieces) {
  std::vector<std::byte> all;
  for (const auto piece : pieces) all.insert(all.end(), piece.begin(), piece.end());
  return all;
}
}  // namespace

TEST_CASE("a hello of sessions and frames of their nodes go to the sessions, all others to the training") {
  shared_port port;
  const auto said = bytes_of_said(session_hello{.client = 1});
  message_encoder out;
  const std::vector<std::byte> theirs =
      frame_of(out.encode({.kind = message_kind::hello}, session_slices(said, {}).slices()));
  const std::vector<std::byte> of_a_task = hello_frame(task_hello{});
  transport_greeting answer;
  const auto greets = [&](const std::vector<std::byte>& hello) { return port.greets(hello, {}, "ps 0", answer); };
  CHECK(!greets(of_a_task));
  CHECK(says(message_of(status::failed_precondition, [&] { greets(theirs); }), "ps 0 runs no sessions"));
  sessions here;
  port.give_to(&here);
  CHECK(greets(theirs));
  CHECK(answer.node == first_session_node);
  CHECK(!greets(of_a_task));
  CHECK(here.greeted_as.size() == 1);
  CHECK(port.takes(answer.node, {}));
  CHECK(!port.takes(first_session_node - 1, {}));
  CHECK(here.came_from == std::vector<std::uint32_t>{answer.node});
  port.give_to(nullptr);
  CHECK(port.takes(answer.node, {}));  // a frame that was on its way
  CHECK(here.came_from.size() == 1);
}
