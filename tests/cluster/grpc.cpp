// Frames over gRPC, between transports of this process: what arrives, who is refused, what is lost.
// one thread: its many are gRPC's, whose own locks no sanitizer sees; stream_transport.cpp has ours
// needs: grpc
// without sanitizers: gRPC's name resolution leaks ten bytes; stream_transport.cpp has what is ours
// costs: 300
#include <gradus/cluster/grpc.hpp>
#include <gradus/store/crc32c.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <map>

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
  void came(std::uint32_t node, const received_frame& frame) override {
    CHECK(reinterpret_cast<std::uintptr_t>(frame.bytes.data()) % 64 == 0);
    on_frame(node, frame.bytes);
    if (frame.keeper != nullptr) kept.push_back(frame);
    change([&] { ++frames, bytes += frame.bytes.size(); });
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
  std::vector<received_frame> kept;  // those that may be kept
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

// Any client: it speaks gRPC, and says what it likes.
class stranger {
public:
  explicit stranger(int port, grpc_compression_algorithm packs = GRPC_COMPRESS_NONE) {
    context_.set_compression_algorithm(packs);
    ::grpc::ChannelArguments a;
    a.SetMaxReceiveMessageSize(-1);
    a.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ = ::grpc::CreateCustomChannel(text("127.0.0.1:", port), ::grpc::InsecureChannelCredentials(), a);
    stub_ = std::make_unique<::grpc::GenericStub>(channel_);
    call_ = stub_->PrepareCall(&context_, "/gradus/frames", &queue_);
    call_->StartCall(tag(1));
    next();
  }
  ~stranger() {
    context_.TryCancel();
    queue_.Shutdown();
    while (next()) {
    }
  }
  bool say(std::span<const std::byte> b) {
    const ::grpc::Slice s(b.data(), b.size());
    call_->Write(::grpc::ByteBuffer(&s, 1), tag(2));
    return next();
  }
  bool hear() {
    ::grpc::ByteBuffer b;
    call_->Read(&b, tag(3));
    return next();
  }
  ::grpc::Status end() {
    ::grpc::Status s;
    call_->Finish(&s, tag(4));
    next();
    return s;
  }

private:
  static void* tag(std::uintptr_t n) { return reinterpret_cast<void*>(n); }
  bool next() {
    void* which = nullptr;
    bool ok = false;
    return queue_.Next(&which, &ok) && ok;
  }
  ::grpc::CompletionQueue queue_;
  std::shared_ptr<::grpc::Channel> channel_;
  std::unique_ptr<::grpc::GenericStub> stub_;
  ::grpc::ClientContext context_;
  std::unique_ptr<::grpc::GenericClientAsyncReaderWriter> call_;
};

int connected_to(int port) {
  const int s = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::connect(s, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
  return s;
}
// The other side closes it.
void wait_for_end(int s) {
  char buffer[256];
  while (::read(s, buffer, sizeof buffer) > 0) {
  }
  ::close(s);
}

// Until it holds; what is asked is changed by threads that tell nobody.
template <class Done>
bool comes(Done done) {
  const task_system tasks;
  for (const double until = tasks.elapsed() + 30; tasks.elapsed() < until;) {
    if (done()) return true;
    ::sched_yield();
  }
  return false;
}
int threads() {
  DIR* const all = ::opendir("/proc/self/task");
  int n = 0;
  while (const dirent* const e = ::readdir(all)) n += e->d_name[0] != '.';
  ::closedir(all);
  return n;
}

// The library writes what it thinks of hostile peers to stderr.
[[maybe_unused]] const int quiet = ::setenv("GRPC_VERBOSITY", "NONE", 0);

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
  for (notes* l : {&server.told, &client.told}) REQUIRE(l->until([&] { return l->frames == sent.size(); }));
  CHECK(at_server == sent);
  CHECK(at_client == sent);
  // What is kept is as it was, whatever came after it. A frame may be kept if its memory is not much larger, and that
  // of the second large one can be that of the first, which has been sent meanwhile.
  for (notes* l : {&server.told, &client.told}) {
    CHECK(!l->kept.empty());
    auto next = sent.begin();
    for (const received_frame& f : l->kept) {
      next = std::find(next, sent.end(), std::vector(f.bytes.begin(), f.bytes.end()));
      REQUIRE(next != sent.end());
      CHECK(next++->size() >= 64 << 10);
    }
  }
  client.by->close(1);
  server.by->close(1);
  CHECK(server.by->counts().connections == 1);
  CHECK(server.by->counts().malformed == 0);
}

TEST_CASE("a frame of several messages is the frame that was sent, whatever its length") {
  end_of_wire server, client;
  std::vector<std::vector<std::byte>> at_server, at_client;
  server.told.on_frame = [&](auto, auto f) {
    at_server.emplace_back(f.begin(), f.end());
    server.by->send(3, std::array{f});
  };
  client.told.on_frame = [&](auto, auto f) { at_client.emplace_back(f.begin(), f.end()); };
  client.by->connect(0, text("127.0.0.1:", server.by->listen("127.0.0.1:0")), bytes_of("3"));
  REQUIRE(client.told.until([&] { return !client.told.welcomes.empty(); }));
  const std::size_t head = made_frame(3, 0, 4).whole().size() - 4;
  std::vector<std::vector<std::byte>> sent;
  for (const std::size_t n : {most_of_part - 4, most_of_part, most_of_part + 4, std::size_t{1000}, 2 * most_of_part,
                              3 * most_of_part + 400, std::size_t{70'000}}) {
    const made_frame f(3, n, n - head);
    sent.push_back(f.whole());
    REQUIRE(sent.back().size() == n);
    client.by->send(0, f.pieces);
  }
  for (notes* l : {&server.told, &client.told}) REQUIRE(l->until([&] { return l->frames == sent.size(); }));
  CHECK(at_server == sent);
  CHECK(at_client == sent);
  CHECK(client.by->counts().lost == 0);
  server.send(3, 0, 1, 100 << 20);
  client.by->close(30);  // in the middle of a frame: it ends all the same
  server.by->close(30);
}

TEST_CASE("parts of a frame that do not fit it end the connection of the peer that sends them") {
  gradus::grpc policy;
  policy.limits.frame_bytes = 3 * most_of_part;
  policy.receiving_bytes = 0;  // at least a frame
  end_of_wire server(policy), good;
  const int port = server.by->listen("127.0.0.1:0");
  good.by->connect(0, text("127.0.0.1:", port), bytes_of("9"));
  REQUIRE(good.told.until([&] { return good.told.welcomes.size() == 1; }));
  const auto part_of = [](const std::vector<std::byte>& whole, std::size_t k) {
    const std::size_t at = k * most_of_part;
    return std::span(whole).subspan(at, std::min(most_of_part, whole.size() - at));
  };
  const auto greeted = [&](stranger& s) {
    s.say(bytes_of("2"));
    CHECK(s.hear());
  };
  {  // longer than its head says
    stranger s(port);
    greeted(s);
    const auto whole = made_frame(2, 1, most_of_part + 4000).whole();
    CHECK(s.say(part_of(whole, 0)));
    s.say(part_of(whole, 0));
    CHECK(!s.hear());
    CHECK(says(s.end().error_message(), "its head says that it has "));
  }
  {  // too long, which its head says before the rest comes
    stranger s(port);
    greeted(s);
    s.say(part_of(made_frame(2, 1, 3 * most_of_part).whole(), 0));
    CHECK(!s.hear());
    CHECK(says(s.end().error_message(), "above the limit frame_bytes of 25165824"));
  }
  CHECK(server.by->counts().malformed == 1);
  CHECK(server.by->counts().too_large == 1);
  {  // one that is not finished is dropped with its peer, soon, and others have the room that it took
    const auto whole = made_frame(2, 1, 2 * most_of_part + 4000).whole();
    for (int k = 0; k < 4; ++k) {
      stranger s(port);
      greeted(s);
      if (s.say(part_of(whole, 0))) s.say(part_of(whole, 1));
    }
  }
  CHECK(server.by->counts().malformed == 1);
  std::size_t welcomes = 0;  // it connects again where the room was still taken
  CHECK(comes([&] {
    std::size_t now = 0, frames = 0;
    good.told.change([&] { now = good.told.welcomes[0].size(); });
    server.told.change([&] { frames = server.told.frames; });
    if (now != welcomes) good.send(0, 9, static_cast<int>(welcomes = now), 2 * most_of_part);
    return frames != 0;
  }));
}

TEST_CASE("a client comes back to a server that was started anew, and frames flow again") {
  end_of_wire client;
  int port = 0;
  {
    end_of_wire server;
    port = server.by->listen("127.0.0.1:0");
    client.by->connect(0, text("127.0.0.1:", port), bytes_of("1"));
    REQUIRE(client.told.until([&] { return client.told.welcomes[0].size() == 1; }));
    server.by->close(1);
  }
  CHECK(comes([&] { return !client.by->problem(0).empty(); }));
  client.send(0, 1, 1, 64);
  CHECK(client.by->counts().lost == 1);
  end_of_wire server;
  CHECK(server.by->listen(text("127.0.0.1:", port)) == port);
  REQUIRE(client.told.until([&] { return client.told.welcomes[0].size() == 2; }));
  client.send(0, 1, 2, 64);
  CHECK(server.told.until([&] { return server.told.frames == 1; }));
  CHECK(client.by->counts().connections == 2);
}

TEST_CASE("a server refuses a client in words, and is not asked again") {
  end_of_wire server, client;
  server.told.on_hello = [](const std::string& h) {
    if (h == "1") gradus::raise(status::failed_precondition, "the model differs:\n\"a\" is not \"b\", \xc3\xa4 100 %");
    if (h == "2") gradus::raise(status::permission_denied, "workers alone");
  };
  const std::string at = text("127.0.0.1:", server.by->listen("127.0.0.1:0"));
  client.by->connect(0, at, bytes_of("1"));
  client.by->connect(1, at, bytes_of("2"));
  client.by->connect(2, at, bytes_of("3"));
  REQUIRE(client.told.until([&] { return client.told.refusals.size() == 2 && client.told.welcomes.size() == 1; }));
  CHECK(client.told.refusals[0].at(0) == "the model differs:\n\"a\" is not \"b\", \xc3\xa4 100 %");
  CHECK(client.told.refusals[1].at(0) == "workers alone");
  CHECK(client.by->problem(0) == "has refused: the model differs:\n\"a\" is not \"b\", \xc3\xa4 100 %");
  CHECK(client.by->problem(2).empty());
  CHECK(client.by->counts().refused == 2);
  CHECK(server.by->counts().refused == 2);
  CHECK(server.by->counts().connections == 1);
}

TEST_CASE("a client refuses a server whose answer it does not like") {
  end_of_wire server, client;
  client.told.on_welcome = [] { gradus::raise(status::failed_precondition, "another cluster"); };
  client.by->connect(0, text("localhost:", server.by->listen("localhost:0")), bytes_of("1"));
  REQUIRE(client.told.until([&] { return client.told.refusals.size() == 1; }));
  CHECK(client.told.refusals[0].at(0) == "another cluster");
  CHECK(client.by->problem(0) == "has refused: another cluster");
}

TEST_CASE("a second connection of a node takes the place of the first") {
  end_of_wire server, first, second;
  const std::string at = text("127.0.0.1:", server.by->listen("127.0.0.1:0"));
  std::atomic<bool> first_may = true;
  server.told.on_hello = [&](const std::string& h) {
    if (h == "1 first" && !first_may) gradus::raise(status::failed_precondition, "you were replaced");
  };
  first.by->connect(0, at, bytes_of("1 first"));
  REQUIRE(first.told.until([&] { return first.told.welcomes.size() == 1; }));
  first_may = false;
  second.by->connect(0, at, bytes_of("1 second"));
  REQUIRE(second.told.until([&] { return second.told.welcomes.size() == 1; }));
  REQUIRE(first.told.until([&] { return first.told.refusals.size() == 1; }));
  server.send(1, 0, 1, 64);
  CHECK(second.told.until([&] { return second.told.frames == 1; }));
  CHECK(first.told.frames == 0);
}

TEST_CASE("unix sockets carry frames as well") {
  const gradus::testing::temp_dir folder;
  end_of_wire server, client;
  CHECK(server.by->listen("unix:" + (folder / "s")) == 0);
  client.by->connect(0, "unix:" + (folder / "s"), bytes_of("1"));
  REQUIRE(client.told.until([&] { return client.told.welcomes.size() == 1; }));
  client.send(0, 1, 1, 100000);
  CHECK(server.told.until([&] { return server.told.frames == 1; }));
}

TEST_CASE("addresses that cannot be had are refused with what to do") {
  end_of_wire a, b;
  const int port = a.by->listen("127.0.0.1:0");
  CHECK(says(message_of(status::unavailable, [&] { b.by->listen(text("127.0.0.1:", port)); }),
             text("127.0.0.1:", port, ": Address already in use; another process listens there")));
  CHECK(b.by->listen("127.0.0.1:0") > 0);  // after a failure another can be taken
  end_of_wire c;
  CHECK(says(message_of(status::invalid_argument, [&] { c.by->listen("localhost"); }), "it has no port"));
  CHECK(says(message_of(status::invalid_argument, [&] { c.by->connect(0, "localhost", {}); }), "it has no port"));
  for (const char* away : {"10.0.0.1:1", "example.com:1", "0.0.0.0:0", "[::]:0", "127.0.0.1.example.com:1"})
    for (const bool listens : {true, false}) {
      const std::string said = message_of(status::failed_precondition, [&] {
        if (listens)
          c.by->listen(away);
        else
          c.by->connect(0, away, {});
      });
      CHECK(says(said, "is not on this machine"));
      CHECK(says(said, "grpc{mtls{\"certs\"}}"));
      CHECK(says(said, "grpc{insecure{}}"));
    }
  end_of_wire open(gradus::grpc{insecure{}});
  CHECK(open.by->listen("0.0.0.0:0") > 0);
}

TEST_CASE("a connection above the limit is refused, and taken when there is room") {
  end_of_wire server(gradus::grpc{.max_connections = 1});
  const std::string at = text("127.0.0.1:", server.by->listen("127.0.0.1:0"));
  auto first = std::make_unique<end_of_wire>();
  first->by->connect(0, at, bytes_of("1"));
  REQUIRE(first->told.until([&] { return first->told.welcomes.size() == 1; }));
  end_of_wire second;
  second.by->connect(0, at, bytes_of("2"));
  CHECK(comes([&] { return says(second.by->problem(0), "there are 1 connections already; raise max_connections"); }));
  CHECK(server.by->counts().too_many >= 1);
  CHECK(server.told.hellos.size() == 1);
  first.reset();
  CHECK(second.told.until([&] { return second.told.welcomes.size() == 1; }));
}

TEST_CASE("what is no frame, or too large a one, ends its connection and is counted") {
  gradus::grpc policy;
  policy.limits.frame_bytes = 1 << 20;
  end_of_wire server(policy), good;
  const int port = server.by->listen("127.0.0.1:0");
  good.by->connect(0, text("127.0.0.1:", port), bytes_of("9"));
  REQUIRE(good.told.until([&] { return good.told.welcomes.size() == 1; }));
  const auto after = [&](std::span<const std::byte> b) {
    stranger s(port);
    s.say(bytes_of("2"));
    CHECK(s.hear());
    s.say(b);
    CHECK(!s.hear());
    return s.end();
  };
  const std::vector<std::byte> whole = made_frame(2, 1, 256).whole();
  std::vector<std::byte> noise(100, std::byte{7}), shorter = whole, huge = whole;
  CHECK(says(after(noise).error_message(), "does not begin with \"GRDW\""));
  CHECK(says(after(std::span(noise).first(10)).error_message(), "its head has 64 bytes, and 10 came"));
  CHECK(says(after({}).error_message(), "its head has 64 bytes, and 0 came"));
  shorter.pop_back();
  CHECK(says(after(shorter).error_message(), text("its head says that it has ", whole.size(), " bytes")));
  CHECK(server.by->counts().malformed == 4);
  const std::uint64_t payload = std::uint64_t{1} << 40;
  std::memcpy(huge.data() + 40, &payload, 8);
  const std::uint32_t crc = gradus::crc32c(std::span(huge).first(60));
  std::memcpy(huge.data() + 60, &crc, 4);
  const ::grpc::Status said = after(huge);
  CHECK(said.error_code() == ::grpc::RESOURCE_EXHAUSTED);
  CHECK(says(said.error_message(), "above the limit"));
  CHECK(server.by->counts().too_large == 1);
  const std::vector<std::byte> large(2 << 20);
  after(large);
  CHECK(comes([&] { return server.by->counts().too_large == 2; }));
  CHECK(server.told.frames == 0);
  good.send(0, 9, 1, 64);  // nobody else noticed
  CHECK(server.told.until([&] { return server.told.frames == 1; }));
  // Nor is one sent.
  server.by->send(9, std::array{std::span<const std::byte>(large)});
  CHECK(server.by->counts().too_large == 3);
}

TEST_CASE("a compressed message is not expanded: a small one could be as large as memory") {
  for (const auto algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    gradus::grpc policy;
    policy.limits.frame_bytes = 1 << 20;
    end_of_wire server(policy);
    const int port = server.by->listen("127.0.0.1:0");
    stranger s(port, algorithm);
    s.say(bytes_of("2"));  // it is too small to be compressed
    CHECK(s.hear());
    s.say(std::vector<std::byte>(64 << 20));
    CHECK(!s.hear());
    s.end();
    CHECK(comes([&] { return server.by->counts().malformed + server.by->counts().lost > 0; }));
    CHECK(server.by->counts().too_large == 0);
    CHECK(server.told.frames == 0);
  }
}

TEST_CASE("a hello has a bound of its own, since its sender is not known yet") {
  end_of_wire server;
  const int port = server.by->listen("127.0.0.1:0");
  stranger s(port);
  s.say(std::vector<std::byte>(17 << 20, std::byte{'2'}));
  CHECK(!s.hear());
  CHECK(says(s.end().error_message(), "a first message, a hello, has 17825792 bytes, above what one may have"));
  CHECK(server.by->counts().too_large == 1);
  CHECK(server.told.hellos.empty());
}

TEST_CASE("plaintext for this machine goes by no proxy, whatever the environment says") {
  ::setenv("http_proxy", "http://127.0.0.1:1", 1);
  end_of_wire server, client;
  client.by->connect(0, text("127.0.0.1:", server.by->listen("127.0.0.1:0")), bytes_of("1"));
  CHECK(client.told.until([&] { return client.told.welcomes.size() == 1; }));
  ::unsetenv("http_proxy");
}

TEST_CASE("a limit that gRPC cannot carry is refused") {
  gradus::grpc policy;
  policy.limits.frame_bytes = std::uint64_t{1} << 32;
  CHECK(says(message_of(status::invalid_argument, [&] { policy.make(task_system{}); }),
             "limits.frame_bytes is 4294967296, and gRPC carries messages of at most 4,294,967,295 bytes"));
  --policy.limits.frame_bytes;
  CHECK_NOTHROW(policy.make(task_system{})->close(0));
}

TEST_CASE("a peer that says nothing is closed") {
  end_of_wire server(gradus::grpc{.handshake_secs = 0.2});
  const int port = server.by->listen("127.0.0.1:0");
  stranger mute(port);
  CHECK(!mute.hear());
  const ::grpc::Status said = mute.end();
  CHECK(said.error_code() == ::grpc::DEADLINE_EXCEEDED);
  CHECK(says(said.error_message(), "nothing was heard for 0.2 seconds"));
  wait_for_end(connected_to(port));  // not even HTTP/2
}

TEST_CASE("a client hangs up at a server that does not answer, and says so") {
  const int s = ::socket(AF_INET, SOCK_STREAM, 0);  // the kernel takes connections, and nobody else
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof at;
  REQUIRE(::bind(s, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
  REQUIRE(::listen(s, 8) == 0);
  ::getsockname(s, reinterpret_cast<sockaddr*>(&at), &bytes);
  end_of_wire client(gradus::grpc{.handshake_secs = 0.2});
  client.by->connect(0, text("127.0.0.1:", ntohs(at.sin_port)), bytes_of("1"));
  CHECK(comes([&] { return says(client.by->problem(0), "cannot be reached at 127.0.0.1:"); }));
  client.by->close(0);
  ::close(s);
}

TEST_CASE("where the receiver is slow, what waits has a bound and the rest is lost") {
  gradus::grpc policy;
  policy.waiting_bytes = 4 << 20;
  end_of_wire server, client(policy);
  std::mutex m;
  gradus::task_condition changed;
  bool may = false;
  server.told.on_frame = [&](auto, auto) {
    std::unique_lock lock(m);
    changed.wait(lock, [&] { return may; });
  };
  client.by->connect(0, text("127.0.0.1:", server.by->listen("127.0.0.1:0")), bytes_of("1"));
  REQUIRE(client.told.until([&] { return client.told.welcomes.size() == 1; }));
  for (std::uint64_t i = 0; i < 100; ++i) client.send(0, 1, i, 1 << 20);
  const std::uint64_t lost = client.by->counts().lost;
  CHECK(lost >= 50);  // four wait, and some are in the buffers of HTTP/2 and of the kernel
  {
    std::lock_guard lock(m);
    may = true;
    changed.notify_all();
  }
  CHECK(server.told.until([&] { return server.told.frames == 100 - lost; }));
  client.send(0, 1, 200, 3 << 20);
  CHECK(server.told.until([&] { return server.told.frames == 101 - lost; }));
  client.send(0, 1, 201, 8 << 20);  // alone it may be larger than the bound
  CHECK(server.told.until([&] { return server.told.frames == 102 - lost; }));
  CHECK(client.by->counts().lost == lost);
}

TEST_CASE("closing sends what waits") {
  for (const bool by_client : {true, false}) {
    end_of_wire server, client;
    client.by->connect(0, text("127.0.0.1:", server.by->listen("127.0.0.1:0")), bytes_of("1"));
    REQUIRE(client.told.until([&] { return client.told.welcomes.size() == 1; }));
    for (std::uint64_t i = 0; i < 40; ++i) by_client ? client.send(0, 1, i, 1 << 20) : server.send(1, 0, i, 1 << 20);
    (by_client ? client : server).by->close(30);
    notes& to = by_client ? server.told : client.told;
    CHECK(to.until([&] { return to.frames == 40; }));
    (by_client ? client : server).by->close(30);  // again: nothing
  }
}

TEST_CASE("closing ends while traffic flows, leaves no thread and frees the port") {
  const int before = threads();
  for (int round = 0; round < 4; ++round) {
    int port = 0;
    {
      end_of_wire server, client;
      port = server.by->listen("127.0.0.1:0");
      client.by->connect(0, text("127.0.0.1:", port), bytes_of("1"));
      // Each frame is answered by two, up to some that are lost.
      server.told.on_frame = [&](auto, auto f) {
        server.by->send(1, std::array{f});
        server.by->send(1, std::array{f});
      };
      client.told.on_frame = [&](auto, auto f) { client.by->send(0, std::array{f}); };
      REQUIRE(client.told.until([&] { return client.told.welcomes.size() == 1; }));
      for (std::uint64_t i = 0; i < 4; ++i) client.send(0, 1, i, round < 2 ? 64 : 1 << 20);
      REQUIRE(client.told.until([&] { return client.told.frames > 100; }));
      end_of_wire& closes = round % 2 == 0 ? server : client;
      closes.by->close(round < 2 ? 0 : 0.05);
      std::size_t frames = 0;
      closes.told.change([&] { frames = closes.told.frames; });
      if (round % 2 == 0) {
        end_of_wire next;
        CHECK(next.by->listen(text("127.0.0.1:", port)) == port);
      }
      CHECK(closes.told.frames == frames);  // nothing is told any more
    }
  }
  CHECK(comes([&] { return threads() <= before; }));
}

TEST_CASE("what all peers together have sent in part has a bound") {
  gradus::grpc policy;
  policy.limits.frame_bytes = 1 << 20;
  policy.receiving_bytes = 0;  // at least a frame, and something
  end_of_wire server(policy), good;
  const int port = server.by->listen("127.0.0.1:0");
  good.by->connect(0, text("127.0.0.1:", port), bytes_of("9"));
  REQUIRE(good.told.until([&] { return good.told.welcomes.size() == 1; }));
  stranger s(port);
  s.say(bytes_of("2"));
  CHECK(s.hear());
  const std::vector<std::byte> huge(64 << 20);
  CHECK(!s.say(huge));  // it was stopped: nobody takes all this before seeing how long it is
  // Another connection may have been ended for it. Then it is made again, and what was lost is said again.
  const task_system tasks;
  for (const double until = tasks.elapsed() + 30; tasks.elapsed() < until;) {
    good.send(0, 9, 1, 1 << 16);
    if (server.told.until([&] { return server.told.frames > 0; }, 0.05)) break;
  }
  CHECK(server.told.frames > 0);
}

TEST_CASE("hundreds of connections that say nothing leave room for one that does") {
  end_of_wire server(gradus::grpc{.max_connections = 32, .handshake_secs = 0.5}), client;
  const int port = server.by->listen("127.0.0.1:0");
  std::vector<int> mute;
  for (int i = 0; i < 400; ++i) mute.push_back(connected_to(port));
  client.by->connect(0, text("127.0.0.1:", port), bytes_of("1"));
  CHECK(client.told.until([&] { return client.told.welcomes.size() == 1; }));
  client.send(0, 1, 1, 64);
  CHECK(server.told.until([&] { return server.told.frames == 1; }));
  CHECK(server.by->counts().too_many > 0);
  for (const int s : mute) wait_for_end(s);
}

namespace {

// Authorities and certificates, made by the openssl program.
class authority {
public:
  explicit authority(std::string folder) : folder_(std::move(folder)) {
    run("openssl ecparam -name prime256v1 -genkey -noout -out ca.key");
    run("openssl req -x509 -new -key ca.key -subj /CN=ca -days 30 -out ca.pem");
  }
  void sign(const std::string& name, const std::string& alternative_names, int days = 30) const {
    run("openssl ecparam -name prime256v1 -genkey -noout -out " + name + ".key");
    run("openssl req -new -key " + name + ".key -subj /CN=" + name + " -out request");
    run("printf 'subjectAltName=" + alternative_names + "\\n' > extensions");
    run("openssl x509 -req -in request -CA ca.pem -CAkey ca.key -extfile extensions -days " + std::to_string(days) +
        " -out " + name + ".pem");
  }
  const std::string& folder() const { return folder_; }
  void run(const std::string& command) const {
    INFO(command);
    REQUIRE(std::system(("cd '" + folder_ + "' && { " + command + "; } > said 2>&1").c_str()) == 0);
  }

private:
  std::string folder_;
};

// How a client with this policy fares at that server: "welcome", or what is wrong, with words of its own.
std::string fares(const gradus::grpc& policy, const std::string& at) {
  end_of_wire client(policy);
  client.by->connect(0, at, bytes_of("1"));
  std::string said;
  comes([&] {
    said = client.by->problem(0);
    return said != "is being connected to";
  });
  return said.empty() ? "welcome" : said;
}

}  // namespace

TEST_CASE("with certificates: who gets in, as what, and who does not") {
  const gradus::testing::temp_dir ours, theirs;
  const authority ca(ours.path()), other(theirs.path());
  const std::string local = "IP:127.0.0.1,DNS:localhost";
  ca.sign("ps", "URI:spiffe://gradus/ps," + local);
  ca.sign("worker", "URI:spiffe://gradus/worker");
  ca.sign("chief", "URI:spiffe://gradus/chief,URI:https://example.com/me");
  ca.sign("nobody", "DNS:worker");
  ca.sign("both", "URI:spiffe://gradus/worker,URI:spiffe://gradus/ps," + local);
  ca.sign("late", "URI:spiffe://gradus/worker," + local, -1);
  ca.sign("elsewhere", "URI:spiffe://gradus/ps,DNS:ps0.example.com");
  ca.sign("worker_server", "URI:spiffe://gradus/worker," + local);
  other.sign("worker", "URI:spiffe://gradus/worker");
  const auto as = [&](const std::string& name, const authority& whose) {
    return gradus::grpc{mtls{whose.folder(), name}};
  };

  end_of_wire server(as("ps", ca));
  const std::string at = text("127.0.0.1:", server.by->listen("127.0.0.1:0"));
  const auto role = [&](const std::string& name) {
    std::size_t before = 0;
    server.told.change([&] { before = server.told.peers.size(); });
    CHECK(fares(as(name, ca), at) == "welcome");
    REQUIRE(server.told.peers.size() == before + 1);
    CHECK(!server.told.peers.back().is_trusted);
    return server.told.peers.back().role;
  };
  CHECK(role("worker") == "worker");
  CHECK(role("chief") == "chief");
  CHECK(says(fares(as("nobody", ca), at), "has refused: your certificate says no role"));
  CHECK(says(fares(as("both", ca), at), "has refused: your certificate says no role"));
  const std::size_t hellos = server.told.hellos.size();
  CHECK(hellos == 2);

  // Another authority's certificate, an expired one, none, no encryption: none of them says hello.
  ca.run("mkdir mixed && cp ca.pem mixed && cp '" + theirs.path() + "'/worker.* mixed");
  CHECK(says(fares(gradus::grpc{mtls{ours / "mixed", "worker"}}, at), "cannot be reached at "));
  // A server closes the connection of a client whose certificate it refuses; it gives no reason to a stranger.
  CHECK(says(fares(as("late", ca), at), text("cannot be reached at ", at, ": ")));
  CHECK(says(fares(gradus::grpc{}, at), "cannot be reached at "));
  {
    ::grpc::SslCredentialsOptions no_certificate;
    no_certificate.pem_root_certs = read_certificates({ours.path(), "ps"}).authority;
    auto channel = ::grpc::CreateChannel(at, ::grpc::SslCredentials(no_certificate));
    ::grpc::GenericStub stub(channel);
    ::grpc::ClientContext context;
    ::grpc::CompletionQueue queue;
    ::grpc::Status said;
    const ::grpc::ByteBuffer nothing;
    ::grpc::ByteBuffer answer;
    const auto call = stub.PrepareUnaryCall(&context, "/gradus/frames", nothing, &queue);
    call->StartCall();
    call->Finish(&answer, &said, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    CHECK(said.error_code() == ::grpc::UNAVAILABLE);
  }
  // A server that the client's authority does not know, one of another name, one that is no parameter server.
  CHECK(says(fares(as("worker", other), at), "certificate verify failed"));
  CHECK(server.told.hellos.size() == hellos);
  {
    end_of_wire away(as("elsewhere", ca));
    const std::string there = text("127.0.0.1:", away.by->listen("127.0.0.1:0"));
    const std::string said = fares(as("worker", ca), there);
    CHECK(says(said, text("cannot be reached at ", there, ": ")));
    CHECK(says(said, "Peer name 127.0.0.1 is not in peer certificate"));
    CHECK(away.told.hellos.empty());
    mtls named{ca.folder(), "worker"};
    named.server_name = "ps0.example.com";
    CHECK(fares(gradus::grpc{named}, there) == "welcome");
    named.server_name = "ps1.example.com";
    CHECK(says(fares(gradus::grpc{named}, there), "Peer name ps1.example.com is not in peer certificate"));
  }
  end_of_wire wrong(as("worker_server", ca));
  const std::string there = text("127.0.0.1:", wrong.by->listen("127.0.0.1:0"));
  CHECK(says(fares(as("worker", ca), there), "says the role \"worker\"; expected \"ps\""));
  mtls any{ca.folder(), "worker"};
  any.server_role = "";
  CHECK(fares(gradus::grpc{any}, there) == "welcome");
  // A server whose own certificate has expired.
  end_of_wire expired(as("late", ca));
  const std::string late_at = text("127.0.0.1:", expired.by->listen("127.0.0.1:0"));
  const std::string said = fares(as("worker", ca), late_at);
  CHECK(says(said, text("cannot be reached at ", late_at, ": ")));
  CHECK(says(said, "certificate verify failed"));

  // What is missing is named before anything begins.
  CHECK(says(message_of(status::not_found, [&] { as("chef", ca).make({}); }), "chef.pem"));
}
