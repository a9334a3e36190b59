// What a transport and who it tells agree about, on the transport of tests: hello is answered or refused, frames come
// from the node that said hello, and nothing is told after close.
#include <gradus/cluster/transport.hpp>

#include <doctest/doctest.h>

#include "loop_transport.hpp"

using namespace gradus;
using namespace gradus::detail;

namespace {
struct listening final : transport_told {
  std::vector<std::string> told;
  bool refuses = false;
  static std::string words(std::span<const std::byte> b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }
  transport_greeting greeted(std::span<const std::byte> hello, const transport_peer& from) override {
    if (refuses) raise(status::permission_denied, "not you");
    told.push_back(text("hello ", words(hello), " of ", from.address));
    return {4, {std::byte{'y'}}};
  }
  void welcomed(std::uint32_t node, std::span<const std::byte> answer) override {
    told.push_back(text("welcome ", words(answer), " of ", node));
  }
  void refused(std::uint32_t node, const std::string& why) override { told.push_back(text(node, " refused: ", why)); }
  void came(std::uint32_t node, const received_frame& frame) override {
    told.push_back(text(words(frame.bytes), " from ", node));
  }
};
std::vector<std::byte> bytes(std::string_view s) {
  const auto b = std::as_bytes(std::span(s.data(), s.size()));
  return {b.begin(), b.end()};
}
}  // namespace

TEST_CASE("a connection that waits for its peer, frames both ways, a refusal, and the end") {
  loop::hub h;
  listening server_told, client_told, third_told;
  loop::loop_transport server(h, "server"), client(h, "client"), third(h, "third");
  server.tell(server_told), client.tell(client_told), third.tell(third_told);
  client.connect(0, "here", bytes("hi"));
  CHECK(client_told.told.empty());
  CHECK(server.listen("here") == 1);
  CHECK(server_told.told == std::vector<std::string>{"hello hi of client"});
  CHECK(client_told.told == std::vector<std::string>{"welcome y of 0"});
  const auto a = bytes("ab"), b = bytes("c");
  const std::span<const std::byte> pieces[] = {a, b};
  client.send(0, pieces);
  server.send(4, pieces);
  CHECK(server_told.told.back() == "abc from 4");
  CHECK(client_told.told.back() == "abc from 0");
  server_told.refuses = true;
  third.connect(0, "here", bytes("hi"));
  CHECK(third_told.told == std::vector<std::string>{"0 refused: not you"});
  client.close(0);
  server.send(4, pieces);
  CHECK(client_told.told.size() == 2);
}
