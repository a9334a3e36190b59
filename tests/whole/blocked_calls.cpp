// sanitized in every run: each call that can wait, ended by another thread
// Every call of the runtime that can wait (docs/runtime.md lists them) ends when a session is closed or a stop is
// requested, without time passing: time is turned by hand, and nobody turns it.
#include <gradus/checkpoint/wait.hpp>
#include <gradus/cluster/server.hpp>
#include <gradus/cpu/device.hpp>
#include <gradus/input/dataset.hpp>
#include <gradus/input/range.hpp>
#include <gradus/ops/host.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/run/session.hpp>
#include <gradus/session/looper.hpp>
#include <gradus/session/master.hpp>
#include <gradus/session/queue_runner.hpp>
#include <gradus/session/session_creator.hpp>
#include <gradus/store/file_system.hpp>
#include <gradus/testing/hand_tasks.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/hooks/global_step_waiter_hook.hpp>
#include <gradus/train/input_producer.hpp>
#include <gradus/train/monitored_session.hpp>
#include <gradus/train/monitored_training_session.hpp>
#include <gradus/train/session_supervisor.hpp>

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

TEST_CASE("closing or aborting all sessions: what the wait of one leaves serves no wait of another") {
  for (const bool aborts : {false, true})
    for (const bool first : {false, true}) {
      CAPTURE(aborts);
      CAPTURE(first);
      queued m;
      session<cpu<fast>, shared_resources> other{m.g, shared_resources(m.box)};
      m.fill();
      const any_queue in = m.q.in(m.s);
      base_session &one = m.s, &two = other;
      waiting_call puts(m.hand, [&] { (first ? one : two).run(m.put); });
      waiting_call closes(m.hand, [&] { (first ? two : one).run(m.runner.close_op()); });
      if (aborts)
        m.box.abort_sessions("enough");
      else
        m.box.close_sessions("enough");
      CHECK(puts.ended() == (aborts ? "aborted" : "cancelled"));
      CHECK(closes.ended() == (aborts ? "aborted" : "cancelled"));
      CHECK_FALSE(in.is_closed());
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

TEST_CASE("request_stop ends a queue runner's thread that waits in a queue without a runner, and join comes at once") {
  for (const bool through_queue : {false, true}) {
    queued m;
    graph_queue idle(m.g, make_queue_spec(queue_kind::fifo, 1, {int32}, {.shapes = {{}}}));
    // It waits for an element of the other queue, or for room in it, in a run of this queue's op.
    const value other = through_queue ? static_cast<value>(m.take) : m.put;
    if (!through_queue) m.fill();
    const value fills = through_queue ? idle.enqueue({other}) : m.g.group({idle.enqueue({m.one}), other});
    const queue_runner runner(idle, {fills});
    coordinator coord({}, m.hand.tasks());
    session<cpu<fast>, shared_resources> s{m.g, shared_resources(m.box)};
    auto threads = runner.create_threads(s, &coord, true);
    m.hand.settle();
    CHECK(threads[0].is_alive());
    waiting_call joins(m.hand, [&] { coord.join(); });
    coord.request_stop();
    CHECK(joins.ended() == "");
    CHECK((!threads[0].is_alive() && !threads[1].is_alive()));
    CHECK(coord.suppressed().empty());
    CHECK(!s.is_closed());
  }
}

TEST_CASE("a stop of a monitored session's coordinator ends its run that waits for a queue, and its runners") {
  queued m;
  graph_queue idle(m.g, make_queue_spec(queue_kind::fifo, 2, {int32}, {.shapes = {{}}}));
  const value never = idle.dequeue(), fills = idle.enqueue({static_cast<value>(m.take)});  // waits for the other queue
  add_queue_runner(queue_runner(idle, {fills}));
  scaffold parts;
  chief_session_creator chief(sessions_of(m.g, shared_resources(m.box)), m.g, parts, {}, m.hand.tasks());
  for (const int op : {0, 1, 2, 3, 4}) {  // a queue with a runner, and the other one's calls
    CAPTURE(op);
    const value all[] = {never, m.take, m.take_many, m.take_up_to, m.put};
    std::optional<monitored_session> sess;
    sess.emplace(chief, std::vector<any_hook>{}, monitored_session_options{.tasks = m.hand.tasks()});
    if (op == 4)
      for (; m.q.in(m.s).size() < 2; m.hand.settle()) m.s.run(m.put);  // the runner takes some of them
    waiting_call waits(m.hand, [&] { sess->run(all[op]); });
    sess->coord().request_stop();
    CHECK(waits.ended() == "out_of_range");
    sess.reset();  // the runner's thread has ended too, so nobody turns time
    CHECK(m.hand.elapsed() == 0);
    m.box.reset();
  }
}

TEST_CASE("a run with a stop of its own is ended by that, and by the session's coordinator") {
  for (const bool mine : {true, false}) {
    queued m;
    scaffold parts;
    chief_session_creator chief(sessions_of(m.g, shared_resources(m.box)), m.g, parts, {}, m.hand.tasks());
    monitored_session sess(chief, {}, {.tasks = m.hand.tasks()});
    cancellation stop;
    waiting_call waits(m.hand, [&] { sess.run({m.take}, {}, {.stop = &stop}); });
    if (mine)
      stop.cancel("enough", status::failed_precondition);
    else
      sess.coord().request_stop();
    CHECK(waits.ended() == (mine ? "failed_precondition" : "out_of_range"));
  }
  for (const bool mine : {true, false}) {
    queued m;
    m.g.variable("w", {}, {});
    auto sv = make_supervisor(m.g, sessions_of(m.g, shared_resources(m.box)),
                              {.save_model_secs = 0, .tasks = m.hand.tasks()});
    cancellation stop;
    std::string how;
    waiting_call block(m.hand, [&] {
      auto sess = sv.managed_session();
      how = ended_by([&] { sess.run({m.take}, {}, {.stop = &stop}); });
      sv.request_stop();
    });
    if (mine)
      stop.cancel("enough", status::aborted);
    else
      sv.request_stop();
    block.ended();
    CHECK(how == (mine ? "aborted" : "out_of_range"));
  }
}

TEST_CASE("a stop ends what waits, and not a run that need not: what is in a queue can still be taken") {
  queued m;
  m.fill();
  coordinator coord({}, m.hand.tasks());
  const auto stops = coord.stopping();
  const run_options until_stop{.stop = stops.get()};
  coord.request_stop();
  for (int i = 0; i < 2; ++i) CHECK(m.s.run(m.take, {}, until_stop).as<std::int32_t>()[0] == 1);
  try {
    m.s.run(m.take, {}, until_stop);
    FAIL("it waited");
  } catch (const out_of_range& e) {
    CHECK(std::string(e.what()).find("a waiting call was cancelled: a stop was requested") != std::string::npos);
  }
  // The coordinator begins anew, and so do calls.
  coord.clear_stop();
  CHECK(!coord.stopping()->is_cancelled());
  CHECK(stops->is_cancelled());
  const auto again = coord.stopping();
  waiting_call waits(m.hand, [&] { m.s.run(m.take, {}, {.stop = again.get()}); });
  m.s.run(m.put);
  CHECK(waits.ended() == "");
}

TEST_CASE("a supervisor's request_stop ends a run of its session that waits for a queue") {
  queued m;
  m.g.variable("w", {}, {});
  auto sv =
      make_supervisor(m.g, sessions_of(m.g, shared_resources(m.box)), {.save_model_secs = 0, .tasks = m.hand.tasks()});
  std::string how;
  waiting_call block(m.hand, [&] {
    auto sess = sv.managed_session();
    how = ended_by([&] { sess.run(m.take); });
    sess.within([&] { sess.run(m.take_up_to); });  // leaves without an error
  });
  sv.request_stop();
  CHECK(block.ended() == "");
  CHECK(how == "out_of_range");
}

namespace {
// Who waits for the variable of a chief that never comes.
struct without_chief {
  hand_tasks hand;
  session_resources box{hand.tasks()};
  graph g;
  value v = [&] {
    const auto on_ps = g.device("/job:ps");
    return value(g.variable("v", {}, {}));
  }();
  value missing = report_uninitialized_variables(g);
  session_manager manager{{.ready_op = missing, .recovery_wait_secs = 30}, hand.tasks()};
};
}  // namespace

TEST_CASE("a stop ends wait_for_session at once: of a manager, a creator, a monitored session, a supervisor") {
  const std::string why =
      "Session was not ready: Variables not initialized: v; waiting for it ended: a stop was requested";
  {
    without_chief m;
    coordinator coord({}, m.hand.tasks());
    std::string said;
    waiting_call waits(m.hand, [&] {
      try {
        m.manager.wait_for_session(sessions_of(m.g, shared_resources(m.box)), 1000, coord.stopping().get());
      } catch (const cancelled& e) {
        said = e.what();
        throw;
      }
    });
    coord.request_stop();
    CHECK(waits.ended() == "cancelled");
    CHECK(said == why);
    // It looks once, and does not wait, if the stop was there before.
    CHECK(ended_by([&] {
            m.manager.wait_for_session(sessions_of(m.g, shared_resources(m.box)), 1000, coord.stopping().get());
          }) == "cancelled");
  }
  {
    without_chief m;
    coordinator coord({}, m.hand.tasks());
    scaffold parts({.ready_op = m.missing});
    worker_session_creator worker(sessions_of(m.g, shared_resources(m.box)), m.g, parts, {.stop = coord.stopping()},
                                  m.hand.tasks());
    waiting_call waits(m.hand, [&] { monitored_session sess(worker, {}, {.tasks = m.hand.tasks()}); });
    coord.request_stop();
    CHECK(waits.ended() == "cancelled");
  }
  {
    without_chief m;
    coordinator coord({}, m.hand.tasks());
    waiting_call waits(m.hand, [&] {
      monitored_training_session sess(m.g, sessions_of(m.g, shared_resources(m.box)),
                                      {.is_chief = false, .stop = coord.stopping(), .tasks = m.hand.tasks()});
    });
    coord.request_stop();
    CHECK(waits.ended() == "cancelled");
  }
  {
    without_chief m;
    auto sv =
        make_supervisor(m.g, sessions_of(m.g, shared_resources(m.box)), {.is_chief = false, .tasks = m.hand.tasks()});
    waiting_call waits(m.hand, [&] { auto sess = sv.managed_session(); });
    sv.request_stop();
    CHECK(waits.ended() == "cancelled");
  }
}

TEST_CASE("a server that stops ends wait_for_session, and one that is reset only wakes it") {
  without_chief m;
  server here(server::local_def(), true, m.hand.tasks());
  const auto open = in_process{here}.sessions(here.target(), sessions_of(m.g));
  waiting_call waits(m.hand, [&] { m.manager.wait_for_session(open); });
  here.reset();
  m.hand.settle();
  here.stop();
  CHECK(waits.ended() == "failed_precondition");  // none is tried again there
}

TEST_CASE("a stop, and closing the resources' sessions, end the wait for a checkpoint before a session is prepared") {
  for (const bool closes : {false, true}) {
    without_chief m;
    const testing::temp_dir dir;
    saver<> files;
    coordinator coord({}, m.hand.tasks());
    waiting_call waits(m.hand, [&] {
      m.manager.prepare_session(sessions_of(m.g, shared_resources(m.box)),
                                {.init_op = m.missing,
                                 .from = {.saver = &files,
                                          .checkpoint_dir = std::string(dir.path()),
                                          .wait_for_checkpoint = true,
                                          .stop = coord.stopping().get()}});
    });
    if (closes)
      m.box.close_sessions("enough");
    else
      coord.request_stop();
    CHECK(waits.ended() == "cancelled");
  }
  // A chief's supervisor waits so, too.
  without_chief m;
  const testing::temp_dir dir;
  auto sv = make_supervisor(
      m.g, sessions_of(m.g, shared_resources(m.box)),
      {.logdir = std::string(dir.path()), .summary_op = none, .summary_writer = none, .tasks = m.hand.tasks()});
  waiting_call waits(m.hand, [&] { sv.prepare_or_wait_for_session({}, {.wait_for_checkpoint = true}); });
  sv.request_stop();
  CHECK(waits.ended() == "cancelled");
}

TEST_CASE("a stop, closing the session, and resetting its server end global_step_waiter_hook") {
  for (const int by : {0, 1, 2}) {
    CAPTURE(by);
    hand_tasks hand;
    graph g;
    const value one = g.constant(1, int32);
    create_global_step(g);
    const server here(server::local_def(), true, hand.tasks());
    scaffold parts;
    chief_session_creator chief(in_process{here}.sessions(here.target(), sessions_of(g)), g, parts, {}, hand.tasks());
    std::optional<singular_monitored_session> sess;
    sess.emplace(chief, std::vector<any_hook>{global_step_waiter_hook(10, hand.tasks())},
                 monitored_session_options{.tasks = hand.tasks()});
    std::string said;
    waiting_call waits(hand, [&] {
      try {
        sess->run(one);
      } catch (const error& e) {
        said = e.what();
        throw;
      }
    });
    if (by == 0)
      sess->coord().request_stop();
    else if (by == 1)
      sess->raw_session()->close();
    else
      here.reset();
    CHECK(waits.ended() == (by == 0 ? "out_of_range" : by == 1 ? "cancelled" : "aborted"));
    CHECK(said == std::string("global_step_waiter_hook: waiting for global step 10 ended: ") +
                      (by == 0   ? "a stop was requested"
                       : by == 1 ? "the session was closed"
                                 : "the server \"in_process://localhost:0\" was reset"));
  }
}

TEST_CASE("a stop ends wait_for_new_checkpoint and for_each_checkpoint, which give what a time-out gives") {
  hand_tasks hand;
  const testing::temp_dir dir;
  coordinator coord({}, hand.tasks());
  const auto stops = coord.stopping();
  std::string found = "nothing yet";
  std::int64_t seen = -1;
  waiting_call one(hand, [&] {
    found = wait_for_new_checkpoint(posix{}, std::string(dir.path()), {}, {.poll = 60, .stop = stops.get()}, hand);
  });
  waiting_call all(hand, [&] {
    seen = for_each_checkpoint(
        posix{}, std::string(dir.path()), [](const std::string&) { return true; }, {.poll = 60, .stop = stops.get()},
        hand);
  });
  coord.request_stop();
  CHECK((one.ended() == "" && all.ended() == ""));
  CHECK((found.empty() && seen == 0));
}

TEST_CASE("resetting a server, whole or by container, ends a run that waits in a queue: aborted") {
  for (const bool names_container : {false, true})
    for (const bool isolates : {false, true}) {
      CAPTURE(names_container);
      CAPTURE(isolates);
      hand_tasks hand;
      graph g;
      graph_queue q(g, make_queue_spec(queue_kind::fifo, 1, {int32}, {.shapes = {{}}}));
      const value take = q.dequeue(), one = g.constant(1, int32);
      const server here(server::local_def(), true, hand.tasks());
      const auto open = in_process{here, {.isolate_session_state = isolates}}.sessions(here.target(), sessions_of(g));
      const auto sess = open(), closed = open();
      closed->close();
      waiting_call takes(hand, [&] { sess->run(take); });
      if (names_container)
        here.reset({"localhost"});
      else
        here.reset();
      CHECK(takes.ended() == "aborted");
      CHECK(ended_by([&] { sess->run(one); }) == "aborted");
      CHECK(ended_by([&] { closed->run(one); }) == "failed_precondition");  // it was closed before
    }
  // Who waits for room, and a monitored session, which makes another one and waits there.
  hand_tasks hand;
  graph g;
  graph_queue q(g, make_queue_spec(queue_kind::fifo, 1, {int32}, {.shapes = {{}}}));
  const value take = q.dequeue(), one = g.constant(1, int32), put = q.enqueue({one});
  const server here(server::local_def(), true, hand.tasks());
  const auto open = in_process{here}.sessions(here.target(), sessions_of(g));
  scaffold parts;
  chief_session_creator chief(open, g, parts, {}, hand.tasks());
  std::optional<monitored_session> again;
  again.emplace(chief, std::vector<any_hook>{}, monitored_session_options{.tasks = hand.tasks()});
  {
    const auto sess = open();
    sess->run(put);
    waiting_call puts(hand, [&] { sess->run(put); });
    here.reset({"other"});
    CHECK(puts.ended() == "aborted");
  }
  here.reset();
  waiting_call takes(hand, [&] { again->run(take); });
  here.reset();
  hand.settle();
  CHECK(!again->raw_session()->is_closed());
  open()->run(put);
  CHECK(takes.ended() == "");
}
