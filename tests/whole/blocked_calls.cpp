// sanitized in every run: each call that can wait, ended by another thread
// Every call of the runtime that can wait (docs/runtime.md lists them) ends when a session is closed or a stop is
// requested, without time passing: time is turned by hand, and nobody turns it.
#include <gradus/cpu/device.hpp>
#include <gradus/input/dataset.hpp>
#include <gradus/input/range.hpp>
#include <gradus/ops/host.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/run/session.hpp>
#include <gradus/session/looper.hpp>
#include <gradus/session/queue_runner.hpp>
#include <gradus/testing/hand_tasks.hpp>
#include <gradus/train/input_producer.hpp>
#include <gradus/train/monitored_session.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

using namespace gradus;
using gradus::testing::hand_tasks;

namespace {
// What ended a call: the error's status, or nothing.
std::string ended_by(const std::function<void()>& call) {
  try {
    call();
  } catch (const error& e) {
    return std::string(name_of(e.kind()));
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}
// A call on a task of its own, which waits until something ends it.
class waiting_call {
public:
  waiting_call(const hand_tasks& hand, std::function<void()> call) : hand_(hand) {
    task_ = hand.tasks().start("a call", "do without", [this, f = std::move(call)] {
      how_ = ended_by(f);
      ended_ = true;
    });
    hand.settle();
    INFO(how_);
    REQUIRE(!ended_);
  }
  // After what should end it: how it ended, with no second gone.
  std::string ended() {
    hand_.settle();
    CHECK(ended_);
    CHECK(hand_.elapsed() == 0);
    return how_;
  }

private:
  hand_tasks hand_;
  std::string how_;
  std::atomic<bool> ended_ = false;
  task_handle task_;
};

// A graph with a queue that is empty or full, as a session of hand-turned time sees it.
struct queued {
  hand_tasks hand;
  session_resources box{hand.tasks()};
  graph g;
  value one = g.constant(1, int32), rows = g.constant({1, 2, 3}, {3}, int32);
  graph_queue q{g, make_queue_spec(queue_kind::fifo, 2, {int32}, {.shapes = {{}}})};
  value put = q.enqueue({one}), put_many = q.enqueue_many({rows});
  value take = q.dequeue(), take_many = q.dequeue_many(3)[0], take_up_to = q.dequeue_up_to(3)[0];
  queue_runner runner{q, {put}};
  session<cpu<fast>, shared_resources> s{g, shared_resources(box)};
  void fill() { s.run(put), s.run(put); }
};
}  // namespace

TEST_CASE(
    "closing the session ends a run that waits in a queue: every enqueue and dequeue, with and without a timeout") {
  for (const bool timed : {false, true})
    for (const int op : {0, 1, 2, 3, 4}) {
      queued m;
      if (op < 2) m.fill();
      const value all[] = {m.put, m.put_many, m.take, m.take_many, m.take_up_to};
      run_options options;
      if (timed) options.timeout_secs = 5;
      waiting_call waits(m.hand, [&] { m.s.run({all[op]}, {}, options); });
      m.s.close();
      CHECK(waits.ended() == "cancelled");
      CHECK(ended_by([&] { m.s.run(m.one); }) == "failed_precondition");
    }
}

TEST_CASE("closing one session leaves another's waits alone") {
  queued m;
  session<cpu<fast>, shared_resources> other{m.g, shared_resources(m.box)};
  waiting_call waits(m.hand, [&] { other.run(m.take); });
  m.s.close();
  m.hand.settle();
  other.close();
  CHECK(waits.ended() == "cancelled");
}

TEST_CASE("closing a queue ends who waits in it, as an object as well") {
  for (const bool cancels : {false, true}) {
    queued m;
    any_queue q = m.q.in(m.s);
    waiting_call takes(m.hand, [q]() mutable { q.dequeue(); });
    q.close(cancels);
    CHECK(takes.ended() == "out_of_range");
  }
  queued m;
  m.fill();
  any_queue q = m.q.in(m.s);
  waiting_call puts(m.hand, [q]() mutable { q.enqueue(std::int32_t{7}); });
  q.close(true);
  CHECK(puts.ended() == "cancelled");
}

TEST_CASE("a cancellation ends a call of a queue as an object") {
  queued m;
  any_queue q = m.q.in(m.s);
  cancellation stops;
  waiting_call takes(m.hand, [&, q]() mutable { q.dequeue({.cancel = &stops}); });
  stops.cancel("enough");
  CHECK(takes.ended() == "cancelled");
}

TEST_CASE("request_stop ends wait_for_stop with and without a timeout, a looper, and join") {
  hand_tasks hand;
  coordinator coord({}, hand.tasks());
  int calls = 0;
  looper_thread looper(
      coord, 10, [&] { ++calls; }, {}, hand.tasks());
  looper.start();
  waiting_call one(hand, [&] { coord.wait_for_stop(); }), two(hand, [&] { coord.wait_for_stop(1000); });
  waiting_call joins(hand, [&] { coord.join(); });
  CHECK(calls == 1);
  coord.request_stop();
  CHECK((one.ended() == "" && two.ended() == "" && joins.ended() == ""));
  CHECK(!looper.is_alive());
}

TEST_CASE("request_stop ends the threads of queue runners, and through them the runs that wait for their queue") {
  for (const bool full : {true, false}) {
    queued m;
    coordinator coord({}, m.hand.tasks());
    auto threads = m.runner.create_threads(m.s, &coord, full);
    if (!full) threads[1].start();  // only who waits for the stop: nothing fills the queue
    m.hand.settle();
    std::optional<waiting_call> waits;
    if (!full) waits.emplace(m.hand, [&] { m.s.run(m.take); });
    coord.request_stop();
    m.hand.settle();
    if (waits) CHECK(waits->ended() == "out_of_range");
    for (coordinated_thread& t : threads) CHECK(!t.is_alive());
    CHECK(m.hand.elapsed() == 0);
    if (full)
      coord.join();
    else
      threads[0].start(), coord.join();
  }
}

TEST_CASE("request_stop ends a dataset's producer that waits for room") {
  queued m;
  dataset_producer input(any_dataset(range_dataset(10)).repeat());
  graph_queue q(m.g, input.queue(2));
  session<cpu<fast>, shared_resources> s{m.g, shared_resources(m.box)};
  coordinator coord({}, m.hand.tasks());
  auto threads = input.create_threads(q, s, &coord, true);
  m.hand.settle();
  CHECK(threads[0].is_alive());
  coord.request_stop();
  m.hand.settle();
  CHECK((!threads[0].is_alive() && !threads[1].is_alive() && m.hand.elapsed() == 0));
}

TEST_CASE("a stop of a monitored session's coordinator ends its run that waits for a queue") {
  queued m;
  graph_queue idle(m.g, make_queue_spec(queue_kind::fifo, 2, {int32}, {.shapes = {{}}}));
  const value never = idle.dequeue(), fills = idle.enqueue({static_cast<value>(m.take)});  // waits for the other queue
  add_queue_runner(queue_runner(idle, {fills}));
  scaffold parts;
  chief_session_creator chief(sessions_of(m.g, shared_resources(m.box)), m.g, parts, {}, m.hand.tasks());
  std::optional<monitored_session> sess;
  sess.emplace(chief, std::vector<any_hook>{}, monitored_session_options{.tasks = m.hand.tasks()});
  waiting_call waits(m.hand, [&] { sess->run(never); });
  sess->coord().request_stop();
  CHECK(waits.ended() == "out_of_range");
  // The runner's thread waits in a queue that no runner closes: closing the session ends it.
  sess->raw_session()->close();
  m.hand.settle();
  sess.reset();
  CHECK(m.hand.elapsed() == 0);
}
