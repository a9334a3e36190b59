// costs: 200
// Calls to a server: made once whatever is lost, ended when the server is gone.
#include <gradus/cluster/session_client.hpp>
#include <gradus/train/monitored_session.hpp>
#include <gradus/train/session_service.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../message.hpp"
#include "session_ends.hpp"

using namespace session_ends;

TEST_CASE("every call is made once, whatever frames are lost or said twice, by several threads at once") {
  for (const std::uint64_t every : {2u, 3u, 5u}) {
    CAPTURE(every);
    hub h;
    const server here(losing{{&h, "server"}, every}, one_task);
    const session_service there{here};
    counting k;
    remote_session s(target, k.g, losing{{&h, "one"}, every}, quick());
    s.initialize();
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 20; ++i) s.run(k.add);
      });
    for (auto& t : threads) t.join();
    CHECK(s.run(k.v).as<float>()[0] == 60);
  }
}

TEST_CASE(
    "a server that is started again does not know the session: aborted, upon which a monitored session begins anew") {
  hub h;
  counting k;
  auto here = std::make_unique<server>(looped{&h, "server"}, one_task);
  auto there = std::make_unique<session_service<>>(*here);
  remote_session s(target, k.g, looped{&h, "one"}, quick());
  s.initialize();
  s.run(k.add);
  there.reset(), here.reset();
  here = std::make_unique<server>(looped{&h, "server"}, one_task);
  there = std::make_unique<session_service<>>(*here);
  CHECK(says(message_of(status::aborted, [&] { s.run(k.add); }), "does not know the session"));
  CHECK_THROWS_AS(s.variable("v"), aborted);
}

TEST_CASE(
    "a monitored session over a server that is started again begins anew; one whose server is gone can be closed") {
  hub h;
  counting k;
  auto here = std::make_unique<server>(looped{&h, "server"}, one_task);
  auto there = std::make_unique<session_service<>>(*here);
  scaffold parts;
  chief_session_creator chief(
      [&] {
        return std::unique_ptr<base_session>(std::make_unique<remote_session>(target, k.g, looped{&h, "one"}, quick()));
      },
      k.g, parts);
  {
    monitored_session sess(chief);
    CHECK(sess.run(k.add).as<float>()[0] == 1);
    there.reset(), here.reset();
    here = std::make_unique<server>(looped{&h, "server"}, one_task);
    there = std::make_unique<session_service<>>(*here);
    CHECK(sess.run(k.add).as<float>()[0] == 1);  // of a new session, whose variable begins anew
    there.reset(), here.reset();
    CHECK_NOTHROW(sess.close());
  }
}

TEST_CASE("answers that the client has are let go, whatever frames are lost") {
  hub h;
  const server here(losing{{&h, "server"}, 2}, one_task);
  const session_service there{here, session_limits{.bytes = 20'000}};
  graph g;
  const value x = g.placeholder("x", {batch}), y = x + x;
  remote_session_options o = quick();
  o.alive_secs = 0.01;
  remote_session s(target, g, losing{{&h, "one"}, 2}, o);
  const std::vector<float> ones(1000, 1);
  // All calls together have ten times the bytes that the server keeps, so a call may have to wait for the next `alive`.
  for (int i = 0; i < 50; ++i) {
    const auto since = std::chrono::steady_clock::now();
    for (bool is_made = false; !is_made;) try {
        CHECK(s.run(y, {{x, ones}}).as<float>()[999] == 2);
        is_made = true;
      } catch (const resource_exhausted&) {
        REQUIRE(std::chrono::steady_clock::now() - since < std::chrono::seconds(20));
      }
  }
}

namespace {
// Loses every message that stops a call.
struct deaf_to_stops {
  static constexpr std::string_view protocol = "loop";
  looped by;
  std::atomic<int>* asked;  // messages that ask for a call, since one was stopped

  struct carrier final : detail::transport {
    carrier(std::unique_ptr<detail::transport> t, std::atomic<int>* n) : of(std::move(t)), asked(n) {}
    void tell(detail::transport_told& told) override { of->tell(told); }
    int listen(const std::string& address) override { return of->listen(address); }
    void connect(std::uint32_t node, const std::string& address, std::vector<std::byte> hello) override {
      of->connect(node, address, std::move(hello));
    }
    void send(std::uint32_t node, std::span<const std::span<const std::byte>> pieces) override {
      std::vector<std::byte> frame;
      for (const auto p : pieces) frame.insert(frame.end(), p.begin(), p.end());
      const auto op = static_cast<detail::session_op>(detail::keep_frame(frame).head.about);
      if (op == detail::session_op::cancel) {
        is_stopped = true;
        return;
      }
      if (is_stopped && op == detail::session_op::ask) ++*asked;
      of->send(node, pieces);
    }
    std::string problem(std::uint32_t node) const override { return of->problem(node); }
    detail::transport_counts counts() const override { return of->counts(); }
    void close(double secs) override { of->close(secs); }
    std::unique_ptr<detail::transport> of;
    std::atomic<int>* asked;
    std::atomic<bool> is_stopped = false;
  };
  std::unique_ptr<detail::transport> make(const task_system& run) const {
    return std::make_unique<carrier>(by.make(run), asked);
  }
};
}  // namespace

TEST_CASE("a call that was stopped and goes on is waited for, as long as the server says that it is at work") {
  serving at;
  graph g;
  graph_queue q(g, make_queue_spec(queue_kind::fifo, 8, {float32}, {.shapes = {{}}, .name = "q"}));
  const value x = g.placeholder("x", {});
  const value put = q.enqueue({x}), got = q.dequeue()[0];
  std::atomic<int> asked = 0;
  remote_session_options o = quick();
  o.silence_secs = 0.3;
  remote_session s(target, g, deaf_to_stops{at.from("one"), &asked}, o), other(target, g, at.from("two"), quick());
  cancellation stop;
  float taken = 0;
  std::thread waits([&] { taken = s.run(got, {}, {.stop = &stop}).as<float>()[0]; });
  stop.cancel("enough", status::aborted);
  while (asked < 60) std::this_thread::yield();  // they take twice as long as silence_secs
  other.run(put, {{x, std::vector<float>{2}}});
  waits.join();
  CHECK(taken == 2);
}

TEST_CASE("a stop ends the wait for a server that is not there yet, or not there any more") {
  hub h;
  counting k;
  remote_session_options o = quick();
  o.connect_secs = o.silence_secs = 1e6, o.close_secs = 0.05;
  cancellation stop;
  detail::session_client nobody("loop://nowhere:1", "loop", looped{&h, "one"}.make({}), o);
  const auto stopped = [&](detail::session_client& by) {
    return message_of(status::aborted, [&] { by.call(detail::session_op::run, 7, 1, {}, {}, &stop); });
  };
  std::string said;
  std::thread waits([&] { said = stopped(nobody); });
  stop.cancel("enough", status::aborted);
  waits.join();
  CHECK(said == "enough");
  // Its server dies while a run waits.
  graph g;
  graph_queue q(g, make_queue_spec(queue_kind::fifo, 8, {float32}, {.shapes = {{}}, .name = "q"}));
  const value got = q.dequeue()[0];
  const server here(looped{&h, "server"}, one_task);
  const session_service there{here};
  remote_session s(target, g, looped{&h, "two"}, o);
  cancellation later;
  std::thread runs([&] { said = message_of(status::aborted, [&] { s.run(got, {}, {.stop = &later}); }); });
  h.cut("server");
  later.cancel("it is over", status::aborted);
  runs.join();
  CHECK(said == "it is over");
}

TEST_CASE("the limits of the transport are those of calls and answers, and an error names them") {
  hub h;
  const detail::wire_limits narrow{.frame_bytes = 20'000};
  const server here(looped{&h, "server", narrow}, one_task);
  const session_service there{here};
  graph g;
  const value x = g.placeholder("x", {batch}), sum = reduce_sum(x), many = g.constant(1.0, float32, {10'000});
  remote_session s(target, g, looped{&h, "one", narrow}, quick());
  const std::vector<float> few(1000, 1), large(10'000, 1);
  CHECK(s.run(sum, {{x, few}}).as<float>()[0] == 1000);
  constexpr const char* named = "above the limit frame_bytes of 20000";
  CHECK(says(message_of(status::resource_exhausted, [&] { s.run(sum, {{x, large}}); }), named));
  CHECK(says(message_of(status::resource_exhausted, [&] { s.run(many); }), named));
  CHECK(s.run(sum, {{x, few}}).as<float>()[0] == 1000);
  // A wide client whose call the server does not take: its transport would close the connection.
  detail::message_encoder wide;
  const auto said = detail::bytes_of_said(detail::run_call{});
  const std::span<const std::byte> tensors[] = {std::as_bytes(std::span(large))};
  const detail::session_slices slices(said, tensors);
  std::vector<std::byte> frame;
  for (const auto piece : wide.encode({.kind = detail::message_kind::call}, slices.slices()))
    frame.insert(frame.end(), piece.begin(), piece.end());
  CHECK(detail::keep_frame(frame).tensors.size() == 1);
  CHECK_THROWS_AS(detail::keep_frame(frame, narrow), resource_exhausted);
}
