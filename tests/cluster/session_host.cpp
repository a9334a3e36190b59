// costs: 200
// The server's side of sessions: limits, silence, and one port for sessions and training.
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/session_host.hpp>
#include <gradus/input/map.hpp>
#include <gradus/ops/elementwise.hpp>
#include <gradus/testing/hand_tasks.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/run_environment.hpp>
#include <gradus/train/session_service.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "../message.hpp"
#include "../train/run_files.hpp"
#include "../whole/cluster_models.hpp"
#include "session_ends.hpp"

using namespace session_ends;

TEST_CASE("what is above session_limits is refused by its name, and the others go on") {
  hub h;
  const server here(looped{&h, "server"}, one_task);
  const session_service there{here, session_limits{.sessions = 2, .calls = 2, .bytes = 100'000}};
  graph g;
  graph_queue q(g, make_queue_spec(queue_kind::fifo, 8, {float32}, {.shapes = {{}}, .name = "q"}));
  const value x = g.placeholder("x", {batch}), y = x + x;
  const value got = q.dequeue()[0], close = q.close();
  remote_session s(target, g, looped{&h, "one"}, quick()), t(target, g, looped{&h, "two"}, quick());
  CHECK(says(message_of(status::resource_exhausted,
                        [&] {
                          remote_session(target, g, looped{&h, "three"}, quick());
                        }),
             "the limit `sessions`"));
  const std::vector<float> large(30'000);
  CHECK(says(message_of(status::resource_exhausted, [&] { s.run(y, {{x, large}}); }), "the limit `bytes`"));
  CHECK(s.run(y, {{x, std::vector<float>{1}}}).as<float>()[0] == 2);
  std::atomic<int> begun = 0, ended = 0;
  h.saw = [&](std::span<const std::byte> frame) {
    if (is_run(frame)) ++begun;
  };
  std::vector<std::thread> wait;
  for (int i = 0; i < 2; ++i)
    wait.emplace_back([&] {
      CHECK_THROWS_AS(s.run(got), out_of_range);
      ++ended;
    });
  while (begun != 2) std::this_thread::yield();
  CHECK(says(message_of(status::resource_exhausted,
                        [&] {
                          s.run(y, {{x, std::vector<float>{1}}});
                        }),
             "the limit `calls`"));
  t.run(close);
  for (auto& w : wait) w.join();
  CHECK(ended == 2);
}

TEST_CASE("the sessions of a client that is silent are closed, and their waits end") {
  hub h;
  testing::hand_tasks hand;
  const server here(looped{&h, "server"}, one_task, hand.tasks());
  const session_service there{here, session_limits{.silent_secs = 100}};
  graph g;
  graph_queue q(g, make_queue_spec(queue_kind::fifo, 8, {float32}, {.shapes = {{}}, .name = "q"}));
  const value got = q.dequeue()[0];
  auto o = quick();
  o.alive_secs = 1e6;
  remote_session s(target, g, looped{&h, "one"}, o);
  hand.advance(90);
  CHECK(there.sessions() == 1);
  CHECK_THROWS_AS(s.run(got, {}, {.timeout_secs = 0}), deadline_exceeded);  // it is heard
  hand.advance(90);
  CHECK(there.sessions() == 1);
  hand.advance(50);
  CHECK(there.sessions() == 0);
  CHECK(says(message_of(status::aborted, [&] { s.run(got); }), "has not heard of this client for long"));
}

namespace {
// A server whose time is turned by hand, and that of its clients too, and a full queue.
struct filled_queue {
  hub h;
  testing::hand_tasks hand, theirs;
  const server here{looped{&h, "server"}, one_task, hand.tasks()};
  std::optional<session_service<>> there{std::in_place, here, session_limits{.silent_secs = 100}};
  graph g;
  graph_queue q{g, make_queue_spec(queue_kind::fifo, 1, {float32}, {.shapes = {{}}, .name = "q"})};
  value put = q.enqueue({g.constant(1.0)}), close = q.close();
  session<cpu<fast>, shared_resources> looks{g, shared_resources(here.resources())};
  any_queue in = q.in(looks);

  filled_queue() { looks.run(put); }
  std::unique_ptr<remote_session> client(const char* name) {
    auto o = quick();
    o.tasks = theirs.tasks();
    return std::make_unique<remote_session>(target, g, looped{&h, name}, o);
  }
  // A run that waits behind `before` others.
  std::thread waits(base_session& s, value op, std::int64_t before) {
    std::thread t([&s, op] { CHECK_THROWS_AS(s.run(op), error); });
    while (in.pending().enqueues != before + 1) std::this_thread::yield();
    return t;
  }
};
}  // namespace

TEST_CASE("what a client that is gone leaves waiting closes no queue of the server") {
  filled_queue m;
  const auto gone = m.client("one");
  std::thread puts = m.waits(*gone, m.put, 0), closes = m.waits(*gone, m.close, 1);
  m.hand.advance(150);
  CHECK(m.there->sessions() == 0);
  CHECK(m.in.pending() == pending_calls{});
  CHECK_FALSE(m.in.is_closed());
  m.theirs.advance(6);  // the client hears that it has no session any more
  puts.join(), closes.join();
}

TEST_CASE("nor do the sessions of a service that ends, in whichever order they were opened") {
  for (const bool first : {false, true}) {
    filled_queue m;
    const auto one = m.client("one"), two = m.client("two");
    std::thread puts = m.waits(first ? *one : *two, m.put, 0), closes = m.waits(first ? *two : *one, m.close, 1);
    m.there.reset();
    CHECK(m.in.pending() == pending_calls{});
    CHECK_FALSE(m.in.is_closed());
    m.there.emplace(m.here);
    m.theirs.advance(6);
    puts.join(), closes.join();
  }
}

TEST_CASE("sessions that end together are marked together, also while one of them is still being opened") {
  hub h;
  const server here(looped{&h, "server"}, one_task);
  graph g;
  g.placeholder("x", {});
  std::mutex mutex;
  std::vector<base_session*> made;
  std::atomic<bool> is_opening = false, ends = false;
  bool saw_one = false;
  auto there = std::make_unique<detail::session_host>(
      here,
      [&](graph& of, session_resources& box) -> std::unique_ptr<base_session> {
        auto s = sessions_of(of)(box);
        const std::lock_guard lock(mutex);
        if (made.size() < 2) return made.push_back(s.get()), std::move(s);
        // The third takes long.
        is_opening = true;
        while (!ends) std::this_thread::yield();
        for (int i = 0; i < 1000 && !saw_one; ++i) {
          for (const auto* one : made) saw_one = saw_one || one->is_closed();
          std::this_thread::yield();
        }
        return s;
      },
      [](std::string_view name) { return cpu<fast>::registry<ops<>>::named(name); }, session_limits{});
  detail::session_client client(target, "loop", looped{&h, "one"}.make({}), quick());
  const auto bytes = detail::graph_to_bytes(g);
  const std::span<const std::byte> tensors[] = {bytes};
  const auto open = [&](std::uint64_t number) {
    client.call(detail::session_op::open, number, 1, detail::bytes_of_said(detail::open_call{}), tensors);
  };
  open(1), open(3);
  std::thread third([&] {
    try {
      open(2);
    } catch (const error&) {  // or its answer comes before the end
    }
  });
  while (!is_opening) std::this_thread::yield();
  ends = true;
  there.reset();
  CHECK_FALSE(saw_one);
  third.join();
}

TEST_CASE("a call that its client has given up is stopped, and takes no element later") {
  serving at;
  graph g;
  graph_queue q(g, make_queue_spec(queue_kind::fifo, 8, {float32}, {.shapes = {{}}, .name = "q"}));
  const value put = q.enqueue({g.constant(1.0)}), got = q.dequeue()[0];
  session<cpu<fast>, shared_resources> looks{g, shared_resources(at.here.resources())};
  const any_queue in = q.in(looks);
  std::atomic<bool> fails = false;
  at.h.saw = [&](std::span<const std::byte> frame) {
    const detail::message_head head = detail::keep_frame(frame).head;
    if (fails && head.about == static_cast<std::uint64_t>(detail::session_op::ask) &&
        head.kind == detail::message_kind::call)
      raise(status::unavailable, "no network");
  };
  remote_session s(target, g, at.from("one"), quick());
  std::thread waits([&] { CHECK(message_of(status::unavailable, [&] { s.run(got); }) == "no network"); });
  while (in.pending().dequeues != 1) std::this_thread::yield();
  fails = true;
  waits.join();
  CHECK(in.pending() == pending_calls{});
  looks.run(put);
  CHECK(in.size() == 1);
}

TEST_CASE("a run that waits for a thread of the server is not begun once its client has stopped it, or given it up") {
  for (const bool stops : {true, false}) {
    CAPTURE(stops);
    hub h;
    const server here(looped{&h, "server"}, one_task);
    const session_service there{here, session_limits{.threads = 1}};
    counting k;
    graph_queue q(k.g, make_queue_spec(queue_kind::fifo, 8, {float32}, {.shapes = {{}}, .name = "q"}));
    const value put = q.enqueue({k.g.constant(1.0)}), got = q.dequeue()[0];
    session<cpu<fast>, shared_resources> looks{k.g, shared_resources(here.resources())};
    looks.initialize();
    const any_queue in = q.in(looks);
    std::atomic<std::uint64_t> number = 0;  // of the session that ran last
    std::atomic<bool> fails = false, was_stopped = false, is_heard = false, is_over = false;
    h.saw = [&](std::span<const std::byte> frame) {
      const detail::message_head head = detail::keep_frame(frame).head;
      if (is_run(frame)) number = head.incarnation;
      if (head.kind != detail::message_kind::call || head.incarnation != number) return;
      if (head.about == static_cast<std::uint64_t>(detail::session_op::cancel)) was_stopped = true;
      if (head.about != static_cast<std::uint64_t>(detail::session_op::ask)) return;
      if (was_stopped) is_heard = true;  // by the server: frames of one session come in their order
      if (fails) raise(status::unavailable, "no network");
    };
    remote_session busy(target, k.g, looped{&h, "one"}, quick()), s(target, k.g, looped{&h, "two"}, quick());
    std::thread first([&] { busy.run(got); });
    while (in.pending().dequeues != 1) std::this_thread::yield();
    cancellation stop;
    const std::uint64_t before = number;
    std::thread second([&] {
      CHECK_THROWS_AS(s.run(k.add, {}, {.stop = &stop}), error);
      is_over = true;
    });
    while (number == before) std::this_thread::yield();
    if (stops)
      stop.cancel();
    else
      fails = true;
    while (!is_over && !is_heard) std::this_thread::yield();
    fails = false;
    looks.run(put);
    first.join(), second.join();
    CHECK(s.run(k.v).as<float>()[0] == 0);
  }
}

TEST_CASE("a certificate of a parameter server opens no session, one of a worker resets none") {
  serving at;
  at.h.roles["one"] = "ps", at.h.roles["two"] = "worker", at.h.roles["three"] = "chief";
  graph g;
  g.placeholder("x", {});
  CHECK(says(message_of(status::failed_precondition, [&] { remote_session(target, g, at.from("one"), quick()); }),
             "a certificate of the role \"ps\" opens no session"));
  CHECK(says(message_of(status::permission_denied, [&] { reset_server(target, at.from("two"), {}, quick()); }),
             "may not reset a server"));
  reset_server(target, at.from("three"), {}, quick());
}

TEST_CASE("a session of one client is not another's, whatever number it says") {
  serving at;
  counting k;
  std::uint64_t number = 0;
  at.h.saw = [&](std::span<const std::byte> frame) {
    if (is_run(frame)) number = detail::keep_frame(frame).head.incarnation;
  };
  remote_session s(target, k.g, at.from("one"), quick());
  s.initialize();
  s.run(k.add);
  detail::session_client other(target, "loop", at.from("two").make({}), quick());
  detail::run_call run;
  run.fetches = {k.add.id};
  CHECK(says(
      message_of(status::aborted, [&] { other.call(detail::session_op::run, number, 9, detail::bytes_of_said(run)); }),
      "does not know the session"));
  CHECK(s.run(k.v).as<float>()[0] == 1);
}

TEST_CASE("a session is opened once: a second open does not take the graph from a run") {
  serving at;
  graph g;
  graph_queue q(g, make_queue_spec(queue_kind::fifo, 8, {float32}, {.shapes = {{}}, .name = "q"}));
  const value got = q.dequeue()[0], close = q.close();
  std::atomic<bool> begun = false;
  std::atomic<std::uint64_t> number = 0;
  at.h.saw = [&](std::span<const std::byte> frame) {
    if (is_run(frame)) number = detail::keep_frame(frame).head.incarnation, begun = true;
  };
  auto carrier = at.from("one").make({});
  detail::session_client client(target, "loop", std::move(carrier), quick());
  const auto bytes = detail::graph_to_bytes(g);
  const std::span<const std::byte> tensors[] = {bytes};
  const std::uint64_t mine = 77;
  client.call(detail::session_op::open, mine, 1, detail::bytes_of_said(detail::open_call{}), tensors);
  detail::run_call run;
  run.fetches = {got.id};
  std::thread waits([&] {
    CHECK_THROWS_AS(client.call(detail::session_op::run, mine, 2, detail::bytes_of_said(run)), out_of_range);
  });
  while (!begun) std::this_thread::yield();
  CHECK(says(message_of(status::failed_precondition,
                        [&] {
                          client.call(detail::session_op::open, mine, 3, detail::bytes_of_said(detail::open_call{}),
                                      tensors);
                        }),
             "a session is opened once"));
  run.fetches = {close.id};
  client.call(detail::session_op::run, mine, 4, detail::bytes_of_said(run));
  waits.join();
}

TEST_CASE("a parameter server runs sessions at the port of its training, while it trains") {
  const testing::temp_dir place;
  const cluster_models::points data;
  const auto train = [&](const std::string& dir, hub& h, bool with_sessions) {
    std::atomic<int> runs = 0;
    const auto said = loop::run_tasks({{"ps", {"p0"}}, {"worker", {"w0"}}}, h, [&](server& here) {
      if (here.is_ps()) {
        if (!with_sessions) return here.join();
        const session_service there{here};
        counting k;
        remote_session s("loop://p0", k.g, looped{&h, "client"}, quick());
        s.initialize();
        std::thread serves([&] { here.join(); });
        for (int i = 0; i < 50; ++i) {
          if (i == 49) CHECK(s.run(k.v).as<float>()[0] == 49);
          s.run(k.add), ++runs;
        }
        return serves.join();
      }
      auto t = make_trainer<cluster_models::mlp>(
          connected{here}, sync_replicas{}, adam{},
          run_config{
              .model_dir = dir, .tf_random_seed = 7, .save_summary_steps = 0, .checkpoint_save_graph_def = false});
      t.train(data.batches(12), {.max_steps = 20});
      while (with_sessions && runs < 50) std::this_thread::yield();
      t.train(data.batches(12), {.max_steps = 40});
    });
    for (const auto& [task, what] : said) CHECK(what == "");
    CHECK(runs == (with_sessions ? 50 : 0));
    return run_files::newest_checkpoint(posix{}, dir);
  };
  hub a, b;
  CHECK(run_files::difference(train(place / "with", a, true), train(place / "without", b, false)) == "");
}

TEST_CASE("a parameter server that runs no sessions says so") {
  hub h;
  const server here(looped{&h, "ps0"},
                    server_def{.cluster = {{"ps", {"p0:1"}}, {"worker", {"w0:1"}}}, .job_name = "ps"});
  graph g;
  CHECK(says(message_of(status::failed_precondition,
                        [&] {
                          remote_session("loop://p0:1", g, looped{&h, "one"}, quick());
                        }),
             "make a session_service of its server"));
}
