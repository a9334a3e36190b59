// costs: 200
// Frames between transports of this process: what arrives, which address means whom, what is refused and lost, and that
// ends leave nothing behind. Sessions over it are in whole/local_sessions.cpp, training in
// whole/cluster_transports.cpp.
#include <gradus/cluster/local_messages.hpp>
#include <gradus/cluster/turns.hpp>
#include <gradus/train/session_service.hpp>

#include <doctest/doctest.h>

#include <dirent.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "../message.hpp"

using namespace gradus;
using namespace gradus::detail;

namespace {

std::vector<std::byte> bytes_of(std::string_view s) {
  const auto b = std::as_bytes(std::span(s));
  return {b.begin(), b.end()};
}
std::string string_of(std::span<const std::byte> b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }

// Writes down what it is told; a node number is the first character of a hello.
class notes final : public transport_told {
public:
  std::function<void(std::uint32_t, const received_frame&)> on_frame = [](auto, const auto&) {};
  transport_greeting greeted(std::span<const std::byte> hello, const transport_peer& from) override {
    const std::string h = string_of(hello);
    if (h == "bad") raise(status::failed_precondition, "not you");
    change([&] { hellos.push_back(text(h, " of ", from.address, from.is_trusted ? "" : ", a stranger")); });
    return {static_cast<std::uint32_t>(h.at(0) - '0'), bytes_of("answer to " + h)};
  }
  void welcomed(std::uint32_t node, std::span<const std::byte> answer) override {
    change([&] { welcomes.push_back(text(node, " ", string_of(answer))); });
  }
  void refused(std::uint32_t, const std::string& why) override {
    change([&] { refusals.push_back(why); });
  }
  void came(std::uint32_t node, const received_frame& frame) override {
    CHECK(reinterpret_cast<std::uintptr_t>(frame.bytes.data()) % 64 == 0);
    on_frame(node, frame);
    change([&] { ++frames; });
  }
  void change(const std::function<void()>& f) {
    const std::lock_guard lock(m);
    f();
    changed.notify_all();
  }
  template <class Done>
  bool until(Done done) {
    std::unique_lock lock(m);
    return changed.wait_for(lock, 30, done);
  }

  std::mutex m;
  task_condition changed;
  std::vector<std::string> hellos, welcomes, refusals;
  std::size_t frames = 0;
};

std::vector<std::byte> frame_of(std::uint64_t sequence, std::size_t n) {
  message_encoder out;
  const std::vector<std::byte> values(n, static_cast<std::byte>(sequence));
  std::vector<std::byte> all;
  for (const auto p : out.encode({.kind = message_kind::push, .sequence = sequence}, {{"w", dtype::uint8, 0, values}}))
    all.insert(all.end(), p.begin(), p.end());
  return all;
}
void say(transport& by, std::uint32_t node, std::span<const std::byte> frame) { by.send(node, std::array{frame}); }

struct end_of_wire {
  notes told;
  std::unique_ptr<transport> by;
  explicit end_of_wire(const local_messages& policy = {}) : by(policy.make({})) { by->tell(told); }
  ~end_of_wire() { by->close(0); }
  std::string listen(const std::string& address) { return text("localhost:", by->listen(address)); }
  void connect(const std::string& address, std::string_view hello = "1") { by->connect(0, address, bytes_of(hello)); }
  bool is_welcome(std::size_t times = 1) {
    return told.until([&] { return told.welcomes.size() == times; });
  }
};

int count_threads() {
  DIR* const all = ::opendir("/proc/self/task");
  int n = 0;
  while (const dirent* const e = ::readdir(all)) n += e->d_name[0] != '.';
  ::closedir(all);
  return n;
}
const server_def one_task{.cluster = {{"worker", {"localhost:0"}}}, .job_name = "worker", .task_index = 0};
}  // namespace

TEST_CASE("a client that is there first, frames of every size both ways, and what may be kept") {
  end_of_wire server, client;
  std::vector<std::size_t> sizes;
  std::vector<received_frame> kept;
  std::vector<std::byte> last;
  server.told.on_frame = [&](std::uint32_t node, const received_frame& f) {
    CHECK(node == 7);
    sizes.push_back(f.bytes.size());
    if (f.keeper != nullptr) kept.push_back(f);
    last.assign(f.bytes.begin(), f.bytes.end());
    say(*server.by, 7, f.bytes);
  };
  client.connect("localhost:5", "7 is here");
  CHECK(server.by->listen("localhost:5") == 5);
  REQUIRE(client.is_welcome());
  CHECK(client.told.welcomes == std::vector<std::string>{"0 answer to 7 is here"});
  CHECK(server.told.hellos == std::vector<std::string>{"7 is here of this process"});
  std::vector<std::size_t> said;
  for (std::uint64_t i = 0; const std::size_t n : {1u, 100u, 5000u, 1u << 20, 3u << 20, 10u}) {
    const auto frame = frame_of(++i, n);
    said.push_back(frame.size());
    say(*client.by, 0, frame);
    REQUIRE(server.told.until([&] { return server.told.frames == i; }));
    CHECK(last == frame);
  }
  CHECK(client.told.until([&] { return client.told.frames == 6; }));
  CHECK(sizes == said);
  REQUIRE(kept.size() == 2);  // the large ones
  for (std::size_t i = 0; i < 2; ++i) CHECK(kept[i].bytes.back() == static_cast<std::byte>(4 + i));
  CHECK(client.by->problem(0).empty());
  CHECK(server.by->problem(3) == "is not connected");
}

TEST_CASE("\"local\" and port 0 mean the only one that listens; several are listed, none is waited for") {
  end_of_wire client;
  client.connect("local");
  const task_system tasks;
  for (const double until = tasks.elapsed() + 30; says(client.by->problem(0), "is being") && tasks.elapsed() < until;)
    std::this_thread::yield();
  CHECK(client.by->problem(0) ==
        "cannot be reached at local: no server of this process listens there; make one with the transport "
        "local_messages{}, and a session_service of it");
  end_of_wire one;
  const std::string first = one.listen("localhost:0");
  CHECK(client.is_welcome());
  end_of_wire by_port;
  by_port.connect("localhost:0");
  CHECK(by_port.is_welcome());
  end_of_wire named;
  named.listen("w0:2222");
  end_of_wire again;
  again.connect("localhost:0");  // that with a name has another address
  CHECK(again.is_welcome());
  end_of_wire two, which;
  const std::string second = two.listen("localhost:0");
  CHECK(first != second);
  which.connect("localhost:0");
  REQUIRE(which.told.until([&] { return which.told.refusals.size() == 1; }));
  CHECK(which.told.refusals[0] == text("2 servers of this process listen there: local://", first, ", local://", second,
                                       "; connect to one of these targets, as its session_service::target() returns "
                                       "it"));
  which.connect("local");
  REQUIRE(which.told.until([&] { return which.told.refusals.size() == 2; }));
  CHECK(says(which.told.refusals[1], "3 servers"));
  CHECK(says(which.told.refusals[1], "local://w0:2222"));
  which.connect(second, "5");
  CHECK(which.is_welcome());
  CHECK(two.told.hellos == std::vector<std::string>{"5 of this process"});

  CHECK(says(message_of(status::unavailable, [&] { client.by->listen("w0:2222"); }),
             "local://w0:2222 is in use by another server of this process"));
  named.by->close(0);
  CHECK(client.by->listen("w0:2222") == 2222);
  for (const char* bad : {"localhost", "w0:", ":1", "w0:70000", "w 0:1"}) {
    CHECK(says(message_of(status::invalid_argument, [&] { client.by->listen(bad); }), "is no address of a task"));
    CHECK(says(message_of(status::invalid_argument, [&] { client.connect(bad); }), "is no address of a task"));
  }
}

TEST_CASE("a refusal, a frame that is malformed or too large, one connection too many, and a server that comes back") {
  std::optional<end_of_wire> server(std::in_place,
                                    local_messages{.max_connections = 2, .limits = {.frame_bytes = 5000}});
  const std::string address = server->listen("localhost:0");
  end_of_wire client, bad;
  bad.connect(address, "bad");
  REQUIRE(bad.told.until([&] { return bad.told.refusals.size() == 1; }));
  CHECK(bad.told.refusals[0] == "not you");
  CHECK(bad.by->problem(0) == "has refused: not you");
  client.connect(address);
  REQUIRE(client.is_welcome());
  std::vector<std::byte> torn = frame_of(1, 100);
  torn.pop_back();
  say(*client.by, 0, torn);
  CHECK(client.is_welcome(2));  // on another connection
  say(*client.by, 0, frame_of(2, 6000));
  CHECK(client.is_welcome(3));
  say(*client.by, 0, frame_of(3, 1000));
  CHECK(server->told.until([&] { return server->told.frames == 1; }));
  const transport_counts counts = server->by->counts();
  CHECK((counts.malformed == 1 && counts.too_large == 1 && counts.refused == 1 && counts.connections == 3));
  say(*server->by, 1, frame_of(4, 6000));  // above its own limit
  CHECK(server->by->counts().too_large == 2);
  bad.connect(address, "2");
  REQUIRE(bad.is_welcome());
  end_of_wire third;
  third.connect(address, "3");
  const task_system tasks;
  for (const double until = tasks.elapsed() + 30; !says(third.by->problem(0), "max_conn") && tasks.elapsed() < until;)
    std::this_thread::yield();
  CHECK(third.by->problem(0) ==
        text("cannot be reached at ", address, ": there are 2 connections already; raise max_connections"));
  server.reset();
  for (const double until = tasks.elapsed() + 30; client.by->problem(0).empty() && tasks.elapsed() < until;)
    std::this_thread::yield();  // it learns of that on a thread of its own
  CHECK_FALSE(client.by->problem(0).empty());
  const auto lost = client.by->counts().lost;
  say(*client.by, 0, frame_of(5, 10));
  CHECK(client.by->counts().lost == lost + 1);
  server.emplace();
  server->by->listen(address);
  CHECK(client.is_welcome(4));
  CHECK(third.is_welcome());
}

TEST_CASE("a receiver that is slow has its senders wait, and above a bound lose; closing sends what waits") {
  std::optional<end_of_wire> server(std::in_place), client(std::in_place, local_messages{.waiting_bytes = 1 << 20});
  client->connect(server->listen("localhost:0"));
  REQUIRE(client->is_welcome());
  std::mutex gate;
  std::vector<std::uint64_t> came;
  server->told.on_frame = [&](std::uint32_t, const received_frame& f) {
    const std::lock_guard wait(gate);
    message_decoder in;
    came.push_back(in.decode(f.bytes).head.sequence);
  };
  std::uint64_t lost = 0;
  {
    const std::lock_guard wait(gate);
    for (std::uint64_t i = 0; i < 200; ++i) say(*client->by, 0, frame_of(i, 64 << 10));
    lost = client->by->counts().lost;
    CHECK(lost > 150);
    CHECK(lost < 200);
  }
  client->by->close(30);
  client->by->close(30);  // again: nothing
  CHECK(server->told.until([&] { return server->told.frames == 200 - lost; }));
  CHECK(std::ranges::is_sorted(came));
  CHECK(std::ranges::adjacent_find(came) == came.end());
}

TEST_CASE("an end that is closed while frames go both ways leaves no thread, and its address is free") {
  const int before = count_threads();
  for (int round = 0; round < 20; ++round) {
    end_of_wire server, client, other;
    const std::string address = server.listen("localhost:0");
    const auto goes_on = [](end_of_wire& e, std::uint32_t node) {
      e.told.on_frame = [&e, node](std::uint32_t from, const received_frame& f) {
        say(*e.by, node == 9 ? from : node, f.bytes);
        if (e.told.frames % 8 == 0) say(*e.by, node == 9 ? from : node, f.bytes);
      };
    };
    goes_on(server, 9), goes_on(client, 0), goes_on(other, 0);
    client.connect(address), other.connect(address, "2");
    REQUIRE((client.is_welcome() && other.is_welcome()));
    say(*client.by, 0, frame_of(1, round < 10 ? 10 : 100'000)), say(*other.by, 0, frame_of(1, 10));
    REQUIRE(client.told.until([&] { return client.told.frames > 20; }));
    end_of_wire& closes = round % 2 == 0 ? server : client;
    closes.by->close(round % 4 < 2 ? 0 : 0.01);
    std::size_t frames = 0;
    closes.told.change([&] { frames = closes.told.frames; });
    if (round % 2 == 0) CHECK(end_of_wire().listen(address) == address);
    CHECK(closes.told.frames == frames);  // nothing is told any more
  }
  const task_system tasks;
  for (const double until = tasks.elapsed() + 30; count_threads() > before && tasks.elapsed() < until;)
    std::this_thread::yield();
  CHECK(count_threads() <= before);
}

TEST_CASE("a server that is destroyed while several clients call: each call ends with an error, and later ones go on") {
  graph g;
  graph_queue q(g, make_queue_spec(queue_kind::fifo, 8, {float32}, {.shapes = {{}}, .name = "q"}));
  const value v = g.variable("v", {}, {.init = zeros}), got = q.dequeue()[0];
  const value init = g.constant(1.0);
  const int before = count_threads();
  {
    std::optional<server> here(std::in_place, local_messages{}, one_task);
    std::optional<session_service<>> there(std::in_place, *here);
    remote_session_options o;
    o.retry_secs = 0.01, o.close_secs = 0.2, o.silence_secs = o.connect_secs = 30;
    std::atomic<int> calls = 0, ended = 0, waits = 0;
    std::vector<std::thread> all;
    for (int k = 0; k < 4; ++k)
      all.emplace_back([&, k] {
        remote_session s(here->target(), g, local_messages{}, o);
        ++waits;
        try {
          if (k == 3) s.run(got);  // it is there when the server goes
          for (;;) s.run(init), ++calls;
        } catch (const error& e) {
          CHECK((e.kind() == status::aborted || e.kind() == status::cancelled || e.kind() == status::unavailable));
          ++ended;
        }
      });
    while (waits < 4 || calls < 100) std::this_thread::yield();
    there.reset();
    here.reset();
    here.emplace(local_messages{}, one_task);
    there.emplace(*here);
    for (auto& one : all) one.join();
    CHECK(ended == 4);
    remote_session s("local", g, local_messages{}, o);
    CHECK(s.run(init).as<float>()[0] == 1);
  }
  const task_system tasks;
  for (const double until = tasks.elapsed() + 30; count_threads() > before && tasks.elapsed() < until;)
    std::this_thread::yield();
  CHECK(count_threads() <= before);
  static_cast<void>(v);
}

namespace {
// A session in virtual time: what its runs returned, and when.
std::string in_virtual_time(std::uint64_t seed) {
  const auto driver = std::make_shared<turn_driver>(seed, never_due);
  const turn_driver::presence me(*driver, "the test");
  const task_system tasks(driver);
  const server here(local_messages{}, one_task, tasks);
  const session_service there{here};
  graph g;
  graph_queue q(g, make_queue_spec(queue_kind::fifo, 8, {float32}, {.shapes = {{}}, .name = "q"}));
  const value got = q.dequeue()[0], put = q.enqueue({g.constant(2.0)}), size = q.size();
  remote_session_options o;
  o.tasks = tasks;
  std::string said;
  const double since = tasks.elapsed();
  const auto note = [&](const std::string& what) { said += text(what, " at ", tasks.elapsed() - since, "\n"); };
  remote_session s("local", g, local_messages{}, o), t(here.target(), g, local_messages{}, o);
  CHECK_THROWS_AS(s.run(got, {}, {.timeout_secs = 1000}), deadline_exceeded);
  note("timed out");
  task_handle waits = tasks.start("a test", "do without", [&] { note(text("got ", s.run(got).as<float>()[0])); });
  tasks.sleep(50);
  t.run(put);
  note("put");
  waits.join();
  for (int i = 0; i < 3; ++i) t.run(put);
  note(text("size ", s.run(size).as<std::int32_t>()[0]));
  return said;
}
}  // namespace

TEST_CASE("in virtual time a wait of 1000 seconds takes none, and a seed gives the same history twice") {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const std::string said = in_virtual_time(seed);
    CHECK(said == in_virtual_time(seed));
    CHECK(said == "timed out at 1000\nput at 1050\ngot 2 at 1050\nsize 3 at 1050\n");
  }
}
