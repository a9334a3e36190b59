// Frames over gRPC, between transports of this process: what arrives, who is refused, what is lost.
// needs: grpc
// costs: 300
#include <gradus/cluster/grpc.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <functional>
#include <map>

#include <gradus/testing/temp_dir.hpp>

#include "../message.hpp"

using namespace gradus::detail;
using gradus::float32;
using gradus::insecure;
using gradus::mtls;
using gradus::status;
using gradus::task_system;
using gradus::text;

namespace {

std::vector<std::byte> bytes_of(std::string_view s) {
  const auto b = std::as_bytes(std::span(s));
  return {b.begin(), b.end()};
}
std::string string_of(std::span<const std::byte> b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }

// Writes down what it is told; a node number is the first character of a hello.
class notes final : public transport_told {
public:
  std::function<void(std::uint32_t, std::span<const std::byte>)> on_frame = [](auto, auto) {};
  std::function<void(const std::string&)> on_hello = [](auto) {};
  std::function<void()> on_welcome = [] {};

  transport_greeting greeted(std::span<const std::byte> hello, const transport_peer& from) override {
    const std::string h = string_of(hello);
    on_hello(h);
    change([&] { hellos.push_back(h), peers.push_back(from); });
    return {static_cast<std::uint32_t>(h.at(0) - '0'), bytes_of("answer to " + h)};
  }
  void welcomed(std::uint32_t node, std::span<const std::byte> answer) override {
    on_welcome();
    change([&] { welcomes[node].push_back(string_of(answer)); });
  }
  void refused(std::uint32_t node, const std::string& why) override {
    change([&] { refusals[node].push_back(why); });
  }
  void came(std::uint32_t node, std::span<const std::byte> frame) override {
    CHECK(reinterpret_cast<std::uintptr_t>(frame.data()) % 64 == 0);
    on_frame(node, frame);
    change([&] { ++frames, bytes += frame.size(); });
  }
  void change(const std::function<void()>& f) {
    std::lock_guard lock(m);
    f();
    changed.notify_all();
  }
  template <class Done>
  bool until(Done done, double secs = 30) {
    std::unique_lock lock(m);
    return changed.wait_for(lock, secs, done);
  }

  std::mutex m;
  gradus::task_condition changed;
  std::vector<std::string> hellos;
  std::vector<transport_peer> peers;
  std::map<std::uint32_t, std::vector<std::string>> welcomes, refusals;
  std::size_t frames = 0, bytes = 0;
};

// A push of so many bytes, whose contents follow from `sequence`.
struct made_frame {
  message_encoder encoder;
  std::vector<std::uint32_t> values;
  std::span<const std::span<const std::byte>> pieces;
  made_frame(std::uint32_t sender, std::uint64_t sequence, std::size_t n) : values(n / 4) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint32_t>(i * 2654435761u + sequence);
    pieces = encoder.encode({.kind = message_kind::push, .sender = sender, .sequence = sequence},
                            {{"w", gradus::int32, 0, std::as_bytes(std::span(values))}});
  }
  std::vector<std::byte> whole() const {
    std::vector<std::byte> all;
    for (const auto p : pieces) all.insert(all.end(), p.begin(), p.end());
    return all;
  }
};

struct end_of_wire {
  notes told;
  std::unique_ptr<transport> by;
  explicit end_of_wire(const gradus::grpc& policy = {}) : by(policy.make(task_system{})) { by->tell(told); }
  ~end_of_wire() { by->close(0); }
  void send(std::uint32_t node, std::uint32_t me, std::uint64_t sequence, std::size_t n) {
    by->send(node, made_frame(me, sequence, n).pieces);
  }
};

}  // namespace

TEST_CASE("frames of all sizes arrive on both sides, whole, in their order and aligned") {
  end_of_wire server, client;
  std::vector<std::vector<std::byte>> at_server, at_client;
  server.told.on_frame = [&](std::uint32_t node, auto f) {
    CHECK(node == 3);
    at_server.emplace_back(f.begin(), f.end());
    server.by->send(3, std::array{f});
  };
  client.told.on_frame = [&](std::uint32_t node, auto f) {
    CHECK(node == 0);
    at_client.emplace_back(f.begin(), f.end());
  };
  const int port = server.by->listen("127.0.0.1:0");
  CHECK(port > 0);
  client.by->connect(0, text("127.0.0.1:", port), bytes_of("3 here"));
  REQUIRE(client.told.until([&] { return !client.told.welcomes.empty(); }));
  CHECK(client.told.welcomes[0].at(0) == "answer to 3 here");
  CHECK(client.by->problem(0).empty());
  CHECK(server.told.hellos.at(0) == "3 here");
  CHECK(server.told.peers.at(0).is_trusted);
  std::vector<std::vector<std::byte>> sent;
  for (const std::size_t n : {4u, 64u, 1000u, 16384u, 8u << 20, 4u, 4u << 20}) {
    const made_frame f(3, n, n);
    sent.push_back(f.whole());
    client.by->send(0, f.pieces);
  }
  REQUIRE(client.told.until([&] { return client.told.frames == sent.size(); }));
  CHECK(at_server == sent);
  CHECK(at_client == sent);
  client.by->close(1);
  server.by->close(1);
  CHECK(server.by->counts().connections == 1);
  CHECK(server.by->counts().malformed == 0);
}
