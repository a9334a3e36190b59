// Streams in memory, in a time that is turned by hand: when lost ones are made again, who is hung up, what is lost.
#include <gradus/cluster/stream_transport.hpp>
#include <gradus/testing/hand_tasks.hpp>

#include <doctest/doctest.h>

#include <array>
#include <functional>
#include <map>

#include "../message.hpp"

using namespace gradus;
using namespace gradus::detail;

namespace {

std::vector<std::byte> bytes_of(std::string_view s) {
  const auto b = std::as_bytes(std::span(s));
  return {b.begin(), b.end()};
}
std::string string_of(std::span<const std::byte> b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }

class memory_transport;

// One task carries everything, one thing after the other.
class network {
public:
  explicit network(const task_system& tasks) : tasks(tasks), changed_(tasks) {
    carrier_ = tasks.start("a test", "do without", [this] { carry(); });
  }
  ~network() {
    post(nullptr);
    carrier_.join();
  }
  void post(std::function<void()> f) {
    std::lock_guard lock(m_);
    posts_.push_back(std::move(f));
    changed_.notify_all();
  }

  const task_system tasks;
  std::map<std::string, memory_transport*> at;
  std::vector<double> dials;
  bool carries = true;    // false: what is written stays where it is
  double going_secs = 0;  // that a client's stream takes to be destroyed

private:
  void carry() {
    std::unique_lock lock(m_);
    while (true) {
      changed_.wait(lock, [&] { return !posts_.empty(); });
      const std::function<void()> f = std::move(posts_.front());
      posts_.pop_front();
      if (f == nullptr) return;
      lock.unlock();
      f();
      lock.lock();
    }
  }
  std::mutex m_;
  task_condition changed_;
  std::deque<std::function<void()>> posts_;
  task_handle carrier_;
};

// Everything but the overrides runs on the carrier.
class memory_stream final : public frame_stream {
public:
  memory_stream(stream_transport& of, network& net, bool is_client, std::string role)
      : frame_stream(of, is_client), net_(net), is_client_(is_client), role_(std::move(role)) {}
  ~memory_stream() override {
    if (is_client_ && net_.going_secs > 0) net_.tasks.sleep(net_.going_secs);
  }

  void read() override {
    post([this] { wants_ = true, pump(); });
  }
  void write(frame_memory frame) override {
    auto f = std::make_shared<frame_memory>(std::move(frame));
    post([this, f] {
      const auto p = other.lock();
      if (p != nullptr && !is_cut) p->inbox_.push_back(std::move(*f)), p->pump();
      if (net_.carries || is_cut) was_written(p != nullptr && !is_cut);
    });
  }
  void end_writing() override {
    post([this] {
      if (const auto p = other.lock()) p->is_half_ = true, p->pump();
    });
  }
  void end(const stream_end& why) override {
    post([this, why] {
      is_over_ = true;
      if (const auto p = other.lock(); p != nullptr && !is_client_) p->said = why, p->is_half_ = true, p->pump();
      if (!is_client_) is_cut = true;
      pump();
    });
  }
  void cancel() override {
    post([this] {
      is_cut = true, pump();
      if (const auto p = other.lock()) p->is_cut = true, p->pump();
    });
  }
  transport_peer peer() const override { return {"memory", role_, role_.empty()}; }

  void pump() {
    if (wants_ && !is_cut && !inbox_.empty()) {
      wants_ = false;
      now_ = std::move(inbox_.front());
      inbox_.pop_front();
      const received_frame f{now_.bytes()};
      was_read(&f);
    } else if (wants_ && (is_cut || is_half_)) {
      wants_ = false;
      was_read(nullptr);
    }
    if (!is_over_ || is_done_ || wants_ || !(is_cut || is_half_)) return;
    is_done_ = true;
    was_done(said);
  }
  void post(std::function<void()> f) {
    net_.post([f = std::move(f), self = shared_from_this()] { f(); });
  }

  std::weak_ptr<memory_stream> other;
  bool is_cut = false;
  stream_end said{status::unavailable, "it is cut"};

private:
  network& net_;
  const bool is_client_;
  const std::string role_;
  std::deque<frame_memory> inbox_;
  frame_memory now_;
  bool wants_ = false, is_half_ = false, is_over_ = false, is_done_ = false;
};

class memory_transport final : public stream_transport {
public:
  memory_transport(network& net, const stream_options& o = {}, std::string role = {})
      : stream_transport(o, net.tasks), net_(net), role_(std::move(role)) {}
  ~memory_transport() override { close(0); }
  int listen(const std::string& address) override { return net_.at[address] = this, 1; }
  void close(double secs) override {
    for (auto& [name, t] : net_.at)
      if (t == this) t = nullptr;
    end_streams(secs);
    bury();
  }
  std::shared_ptr<memory_stream> last;

private:
  std::shared_ptr<frame_stream> dial(const std::string& address) override {
    net_.dials.push_back(net_.tasks.elapsed());
    memory_transport* const to = net_.at[address];
    auto s = std::make_shared<memory_stream>(*this, net_, true, to != nullptr ? to->role_ : "");
    if (to != nullptr) {
      auto t = std::make_shared<memory_stream>(*to, net_, false, role_);
      s->other = t, t->other = s;
      s->post([to, t] { to->take(t); });
    } else {
      s->said = {status::unavailable, "nobody is there"};
      s->cancel();
    }
    last = s;
    return s;
  }
  void start(frame_stream&) override {}
  network& net_;
  const std::string role_;
};

struct notes final : transport_told {
  std::vector<std::string> said;
  std::function<void(std::string)> on_hello = [](auto) {};
  transport_greeting greeted(std::span<const std::byte> hello, const transport_peer& from) override {
    on_hello(string_of(hello));
    said.push_back("hello " + string_of(hello) + " " + from.role);
    return {static_cast<std::uint32_t>(string_of(hello).at(0) - '0'), bytes_of("answer")};
  }
  void welcomed(std::uint32_t node, std::span<const std::byte> answer) override {
    said.push_back(text("welcome ", node, " ", string_of(answer)));
  }
  void refused(std::uint32_t node, const std::string& why) override {
    said.push_back(text("refused ", node, " ", why));
  }
  void came(std::uint32_t node, const received_frame& frame) override {
    message_decoder in;
    said.push_back(text("frame ", node, " ", in.decode(frame.bytes).head.sequence));  // checks the checksums
  }
};
void send(transport& by, std::uint32_t node, std::uint64_t sequence, std::size_t bytes = 0) {
  message_encoder out;
  const std::vector<std::uint8_t> w(bytes);
  if (bytes == 0)
    by.send(node, out.encode({.kind = message_kind::heartbeat, .sequence = sequence}));
  else
    by.send(node, out.encode({.kind = message_kind::push, .sequence = sequence},
                             {{"w", dtype::uint8, 0, std::as_bytes(std::span(w))}}));
}
using lines = std::vector<std::string>;

}  // namespace

TEST_CASE("a stream that is lost is made again, ever later, and at once when it had held") {
  testing::hand_tasks hand;
  network net(hand.tasks());
  notes at_server, at_client;
  memory_transport client(net);
  client.tell(at_client);
  client.connect(0, "s", bytes_of("1"));
  hand.advance(9);
  const std::vector<double> expected{0, 0.05, 0.15, 0.35, 0.75, 1.55, 3.15, 5.15, 7.15};
  REQUIRE(net.dials.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(net.dials[i] == doctest::Approx(expected[i]));
  CHECK(client.problem(0) == "cannot be reached at s: nobody is there");
  memory_transport server(net);
  server.tell(at_server);
  server.listen("s");
  hand.advance(0.15);
  CHECK(client.problem(0).empty());
  CHECK(at_client.said == lines{"welcome 0 answer"});
  client.last->cancel();
  hand.settle();
  CHECK(client.problem(0) == "cannot be reached at s: it is cut");
  send(client, 0, 1);
  CHECK(client.counts().lost == 1);
  hand.advance(0.05);
  send(client, 0, 2);
  send(server, 1, 3);
  hand.settle();
  CHECK(at_client.said == lines{"welcome 0 answer", "welcome 0 answer", "frame 0 3"});
  CHECK(at_server.said == lines{"hello 1 ", "hello 1 ", "frame 1 2"});
  CHECK(server.problem(7) == "is not connected");
}

TEST_CASE("a stream that takes long to go does not keep the next one waiting") {
  testing::hand_tasks hand;
  network net(hand.tasks());
  notes at_server, at_client;
  memory_transport server(net), client(net);
  server.tell(at_server), client.tell(at_client);
  server.listen("s");
  client.connect(0, "s", bytes_of("1"));
  hand.advance(0.01);
  CHECK(at_client.said == lines{"welcome 0 answer"});
  net.going_secs = 100;
  client.last->cancel();
  client.last.reset();
  hand.advance(1);
  CHECK(net.dials.size() == 2);
  CHECK(at_client.said == lines{"welcome 0 answer", "welcome 0 answer"});
  hand.advance(200);
  CHECK(client.problem(0).empty());
  net.going_secs = 0;
}

TEST_CASE("who is refused is told why, and does not come back") {
  testing::hand_tasks hand;
  network net(hand.tasks());
  notes at_server, at_client;
  memory_transport server(net, {}, "ps"), client(net, {.server_role = "ps"}, "worker"),
      stray(net, {.server_role = "chief"}, "x");
  server.tell(at_server);
  server.listen("s");
  at_server.on_hello = [](const std::string& h) {
    if (h == "2") raise(status::data_loss, "who?");
  };
  client.tell(at_client);
  client.connect(0, "s", bytes_of("1"));
  client.connect(1, "s", bytes_of("2"));
  hand.advance(5);
  CHECK(net.dials.size() == 2);
  CHECK(at_server.said == lines{"hello 1 worker"});
  CHECK(at_client.said == lines{"welcome 0 answer", "refused 1 who?"});
  CHECK(client.problem(1) == "has refused: who?");
  notes at_stray;
  stray.tell(at_stray);
  stray.connect(0, "s", bytes_of("3"));
  hand.advance(5);
  CHECK(net.dials.size() == 3);
  REQUIRE(at_stray.said.size() == 1);
  CHECK(says(at_stray.said[0], "refused 0 the certificate of memory says the role \"ps\"; expected \"chief\""));
}

TEST_CASE("who is silent for too long is hung up, on both sides") {
  testing::hand_tasks hand;
  network net(hand.tasks());
  notes told;
  memory_transport server(net);
  server.tell(told);
  auto mute = std::make_shared<memory_stream>(server, net, false, "");
  auto its_end = std::make_shared<memory_stream>(server, net, false, "");
  mute->other = its_end;
  server.take(mute);
  hand.advance(9.9);
  CHECK(its_end->said.kind == status::unavailable);
  hand.advance(0.2);
  CHECK(its_end->said.kind == status::deadline_exceeded);
  CHECK(its_end->said.why == "nothing was heard for 10 seconds");
}

TEST_CASE("what waits has a bound, a frame alone has none, and the rest is lost and counted") {
  testing::hand_tasks hand;
  network net(hand.tasks());
  notes at_server, at_client;
  memory_transport server(net), client(net, {.limits = {.frame_bytes = 4096}, .waiting_bytes = 1024});
  server.tell(at_server);
  server.listen("s");
  client.tell(at_client);
  client.connect(0, "s", bytes_of("1"));
  hand.settle();
  net.carries = false;  // nothing is ever written from now on
  send(client, 0, 1, 2000);
  send(client, 0, 2);
  send(client, 0, 3, 5000);
  CHECK(client.counts().lost == 1);
  CHECK(client.counts().too_large == 1);
  hand.settle();
  CHECK(at_server.said == lines{"hello 1 ", "frame 1 1"});
}

TEST_CASE("frames that are lent come as they were sent, or not at all") {
  testing::hand_tasks hand;
  network net(hand.tasks());
  notes at_server, at_client;
  memory_transport server(net), client(net);
  server.tell(at_server), client.tell(at_client);
  server.listen("s");
  client.connect(0, "s", bytes_of("1"));
  hand.settle();
  std::vector<std::uint8_t> w(std::size_t{2} << 20, 1);
  const auto lend = [&](std::uint64_t sequence) {
    message_encoder out;
    client.send_lent(0, out.encode({.kind = message_kind::push, .sequence = sequence},
                                   {{"w", dtype::uint8, 0, std::as_bytes(std::span(w))}}));
  };
  // The first one is being written, the others wait.
  lend(1), lend(2), lend(3);
  client.part_with();
  w.assign(w.size(), 2);
  hand.settle();
  CHECK(at_server.said == lines{"hello 1 ", "frame 1 1", "frame 1 2", "frame 1 3"});
  net.carries = false;  // nothing is written to its end from now on, so what follows the next frame waits
  lend(4), lend(5), send(client, 0, 6), lend(7);
  client.take_back();
  w.assign(w.size(), 3);
  for (int i = 0; i < 200; ++i) lend(8), client.take_back();  // which does not count against the bound of what may wait
  CHECK(client.counts().lost == 0);
  hand.settle();
  CHECK(at_server.said == lines{"hello 1 ", "frame 1 1", "frame 1 2", "frame 1 3", "frame 1 4"});
  client.last->cancel();
  hand.settle();
  CHECK(client.counts().lost == 1);  // the frame that was not lent; the others were not there any more
  lend(9);                           // there is no stream: nothing is kept
  CHECK(client.counts().lost == 2);
  client.take_back(), client.part_with();
}

TEST_CASE("no more connections than are allowed; a second of a node replaces the first") {
  testing::hand_tasks hand;
  network net(hand.tasks());
  notes at_server, told;
  memory_transport server(net, {.max_connections = 2});
  server.tell(at_server);
  server.listen("s");
  memory_transport a(net), b(net), c(net);
  for (memory_transport* t : {&a, &b, &c}) t->tell(told);
  a.connect(0, "s", bytes_of("1"));
  hand.settle();
  b.connect(0, "s", bytes_of("2"));
  hand.settle();
  c.connect(0, "s", bytes_of("3"));
  hand.settle();
  CHECK(c.problem(0) == "cannot be reached at s: there are 2 connections already; raise max_connections");
  CHECK(server.counts().too_many == 1);
  b.close(0);
  hand.advance(1);
  CHECK(c.problem(0).empty());
  memory_transport again(net);
  again.tell(told);
  c.close(0);
  hand.settle();
  again.connect(0, "s", bytes_of("1"));
  hand.settle();
  CHECK(again.problem(0).empty());
  CHECK(says(a.problem(0), "another connection of this node has taken its place"));
}

TEST_CASE("closing says what waits, and what comes then is told to nobody") {
  testing::hand_tasks hand;
  network net(hand.tasks());
  notes at_server, at_client;
  memory_transport server(net), client(net);
  server.tell(at_server);
  server.listen("s");
  client.tell(at_client);
  client.connect(0, "s", bytes_of("1"));
  hand.settle();
  for (std::uint64_t i = 0; i < 3; ++i) send(client, 0, i, 100), send(server, 1, i);
  client.close(5);
  hand.settle();
  CHECK(at_server.said == lines{"hello 1 ", "frame 1 0", "frame 1 1", "frame 1 2"});
  const std::size_t told = at_client.said.size();
  send(server, 1, 9);
  hand.advance(5);
  CHECK(at_client.said.size() == told);
}

TEST_CASE("frames leave their memory to others of about their size") {
  frame_pool pool(10000);
  frame_memory a = pool.take(1000);
  CHECK(a.size() == 1000);
  const std::byte* const at = a.data();
  CHECK(reinterpret_cast<std::uintptr_t>(at) % 64 == 0);
  pool.give(std::move(a));
  CHECK(pool.take(100).data() != at);  // too small for it
  frame_memory b = pool.take(900);
  CHECK(b.data() == at);
  CHECK(b.size() == 900);
  pool.give(std::move(b));
  frame_memory c = pool.take(1001);
  CHECK(c.room() == 1001);
  pool.give(pool.take(10001));  // above what it keeps
  CHECK(pool.take(10001).room() == 10001);
}
