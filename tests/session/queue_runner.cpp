// sanitized in every run: threads that fill and drain queues
#include <gradus/session/queue_runner.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/ops/host.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/run/session.hpp>
#include <gradus/run/variable_ops.hpp>
#include <gradus/testing/hand_tasks.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <latch>
#include <string>
#include <thread>
#include <vector>

using namespace gradus;

namespace {
template <class Error, class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "(nothing was refused)";
}
bool says(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// An op that fails as it is told to.
status fails_with = status::invalid_argument;
void run_failing(session_call&) { raise(fails_with, "the op failed"); }
constexpr session_card failing{
    {"Failing", 0, trait::keeps | trait::blocks | trait::session | trait::at_session}, &run_failing, run_phase::after};

// An op that does what a test says.
std::function<void()> does;
void run_given(session_call&) { does(); }
constexpr session_card given{
    {"Given", 0, trait::keeps | trait::blocks | trait::session | trait::at_session}, &run_given, run_phase::after};

// A queue of int64 scalars that counters fill, each up to a limit of its own.
struct counted {
  graph g;
  graph_queue q;
  std::vector<value> counters, ops;
  value out;
  explicit counted(std::vector<std::int64_t> limits, std::int64_t capacity = 100)
      : q(g, make_queue_spec(queue_kind::fifo, capacity, {int64}, {.shapes = {{}}})) {
    for (const std::int64_t limit : limits) {
      counters.push_back(g.variable("counter", {}, {.init = zeros, .trainable = false, .type = int64}));
      ops.push_back(q.enqueue({count_up_to(counters.back(), limit)}));
    }
    out = q.dequeue();
  }
  std::int64_t at(base_session& s, std::size_t k) { return s.run(counters[k]).as<std::int64_t>()[0]; }
};
void join_all(std::vector<coordinated_thread>& threads) {
  for (coordinated_thread& t : threads) t.join();
}
}  // namespace

TEST_CASE("Q1 an enqueue op that raises out_of_range ends its thread, and the counter stands at its limit") {
  counted m({3});
  session s{m.g};
  s.initialize();
  queue_runner runner(m.q, m.ops);
  auto threads = runner.create_threads(s);
  CHECK(threads.size() == 1);
  for (auto& t : threads) t.start();
  join_all(threads);
  CHECK(runner.exceptions_raised().empty());
  CHECK(m.at(s, 0) == 3);
}

TEST_CASE("Q2 two enqueue ops with limits 3 and 30 run to their own limits, and the last closes the queue") {
  counted m({3, 30});
  session s{m.g};
  s.initialize();
  queue_runner runner(m.q, m.ops);
  auto threads = runner.create_threads(s, nullptr, true);
  CHECK(threads.size() == 2);
  join_all(threads);
  CHECK(runner.exceptions_raised().empty());
  CHECK(m.at(s, 0) == 3);
  CHECK(m.at(s, 1) == 30);
  any_queue q = m.q.in(s);
  CHECK((q.is_closed() && q.size() == 33));
  std::vector<std::int64_t> all;
  for (int i = 0; i < 33; ++i) all.push_back(s.run(m.out).as<std::int64_t>()[0]);
  std::sort(all.begin(), all.end());
  CHECK((all.front() == 0 && all.back() == 29));
  CHECK(says(refusal<out_of_range>([&] { s.run(m.out); }), "closed"));
}

TEST_CASE("Q3 ops that fail, without a coordinator: one captured exception for each") {
  counted m({});
  fails_with = status::not_found;
  const value bad = m.g.add(failing, nullptr, 0);
  session s{m.g};
  queue_runner runner(m.q, {bad, bad});
  auto threads = runner.create_threads(s, nullptr, true);
  join_all(threads);
  const auto raised = runner.exceptions_raised();
  CHECK(raised.size() == 2);
  for (const auto& e : raised) CHECK(refusal<not_found>([&] { std::rethrow_exception(e); }) == "the op failed");
  CHECK(!m.q.in(s).is_closed());
}

TEST_CASE("Q4 q0 -> runner -> q1: after two enqueues and a close of q0, q1 yields the two values, then out_of_range") {
  graph g;
  graph_queue q0(g, make_queue_spec(queue_kind::fifo, 3, {float32}, {.shapes = {{}}, .name = "q0"}));
  graph_queue q1(g, make_queue_spec(queue_kind::fifo, 30, {float32}, {.shapes = {{}}, .name = "q1"}));
  const value x = g.placeholder("x", {}), put = q0.enqueue({x}), close = q0.close(), out = q1.dequeue();
  queue_runner runner(q1, {q1.enqueue({q0.dequeue()})});
  session s{g};
  auto threads = runner.create_threads(s, nullptr, true);
  for (const float v : {10.0f, 20.0f}) s.run(put, {{x, std::vector<float>{v}}});
  s.run(close);
  CHECK(s.run(out).as<float>()[0] == 10);
  CHECK(s.run(out).as<float>()[0] == 20);
  CHECK(says(refusal<out_of_range>([&] { s.run(out); }), "closed"));
  join_all(threads);
  CHECK(runner.exceptions_raised().empty());
}

TEST_CASE("Q5 a coordinator that stopped before the threads start: no op runs, and join succeeds") {
  counted m({3});
  session s{m.g};
  s.initialize();
  any_coordinator coord;
  coord.request_stop();
  queue_runner runner(m.q, m.ops);
  auto threads = runner.create_threads(s, &coord, true);
  CHECK(threads.size() == 2);  // and the one that cancels
  coord.join();
  CHECK(runner.exceptions_raised().empty());
  CHECK(m.at(s, 0) == 0);
}

TEST_CASE("Q6 a bad op with a coordinator: join raises its error") {
  counted m({});
  fails_with = status::not_found;
  session s{m.g};
  queue_runner runner(m.q, {m.g.add(failing, nullptr, 0)});
  any_coordinator coord;
  auto threads = runner.create_threads(s, &coord, true);
  CHECK(refusal<not_found>([&] { coord.join(); }) == "the op failed");
  CHECK(runner.exceptions_raised().empty());
}

TEST_CASE("Q7 a producer blocked on a full queue: after request_stop, join succeeds in a grace of 0.05 s") {
  testing::hand_tasks hand;
  graph g;
  graph_queue q(g, make_queue_spec(queue_kind::fifo, 1, {float32}, {.shapes = {{}}}));
  session_resources box(hand.tasks());
  session s{g, shared_resources(box)};
  queue_runner runner(q, {q.enqueue({g.constant(10.0)})});
  any_coordinator coord({}, hand.tasks());
  auto threads = runner.create_threads(s, &coord, true);
  hand.settle();
  CHECK(q.in(s).pending().enqueues == 1);
  coord.request_stop();
  hand.settle();  // time stands still: the join below has all of its grace
  coord.join({.stop_grace_period_secs = 0.05});
  CHECK(runner.exceptions_raised().empty());
}

TEST_CASE("Q7 a producer that the cancel op ends has no error, however long that op takes") {
  graph g;
  graph_queue q(g, make_queue_spec(queue_kind::fifo, 1, {float32}, {.shapes = {{}}}));
  queue_runner runner(q, {q.enqueue({g.constant(10.0)})}, {.cancel_op = g.add(given, nullptr, 0)});
  session s{g};
  any_coordinator coord;
  auto threads = runner.create_threads(s, &coord);
  any_queue in = q.in(s);
  does = [&] {
    in.close(true);
    threads[0].join();
  };
  for (auto& t : threads) t.start();
  while (in.pending().enqueues == 0) std::this_thread::yield();
  coord.request_stop();
  coord.join();
  CHECK(coord.suppressed().empty());
}

TEST_CASE("Q6 an error that comes behind a stop is kept, unless it says that the stop or its cancel op has come") {
  for (const status kind : {status::data_loss, status::cancelled, status::out_of_range, status::not_found}) {
    CAPTURE(name_of(kind));
    counted m({});
    std::latch inside(1), go(1);
    does = [&] {
      inside.count_down();
      go.wait();
      raise(kind, "the op failed");
    };
    session s{m.g};
    queue_runner runner(m.q, {m.g.add(given, nullptr, 0)}, {.queue_closed_exception_types = {status::not_found}});
    any_coordinator coord;
    auto threads = runner.create_threads(s, &coord, true);
    inside.wait();
    coord.request_stop();
    threads[1].join();  // the cancel op has run
    go.count_down();
    coord.join();
    CHECK(coord.suppressed().size() == (kind == status::data_loss ? 1 : 0));
  }
}

TEST_CASE(
    "Q8 twice for one session: the second gives none; Q9 two sessions have threads of their own; Q10 again after") {
  counted m({3});
  session s{m.g}, other{m.g};
  s.initialize(), other.initialize();
  queue_runner runner(m.q, m.ops);
  auto threads = runner.create_threads(s);
  CHECK(threads.size() == 1);
  CHECK(runner.create_threads(s).empty());
  auto others = runner.create_threads(other);
  CHECK(others.size() == 1);
  for (auto* const list : {&threads, &others}) {
    for (auto& t : *list) t.start();
    join_all(*list);
  }
  CHECK((m.at(s, 0) == 3 && m.at(other, 0) == 3));
  fails_with = status::internal;
  queue_runner failing_one(m.q, {m.g.add(failing, nullptr, 0)});
  auto first = failing_one.create_threads(s, nullptr, true);
  join_all(first);
  CHECK(failing_one.exceptions_raised().size() == 1);
  auto second = failing_one.create_threads(s);
  CHECK(second.size() == 1);
  CHECK(failing_one.exceptions_raised().empty());
  second[0].start();
  join_all(second);
  CHECK(failing_one.exceptions_raised().size() == 1);
}

TEST_CASE("Q8 a runner and the collection that it is in are one: the second gives none") {
  counted m({30}, 3);
  queue_runner runner(m.q, m.ops);
  add_queue_runner(runner);
  for (const bool collection_first : {true, false}) {
    session s{m.g};
    s.initialize();
    coordinator coord;
    auto first = collection_first ? start_queue_runners(s, &coord) : runner.create_threads(s, &coord, true);
    CHECK(first.size() == 2);
    CHECK((collection_first ? runner.create_threads(s, &coord) : start_queue_runners(s, &coord)).empty());
    coord.request_stop();
    coord.join();
  }
}

TEST_CASE("Q11 its name is the queue's, with its scope") {
  graph g;
  const auto scope = g.name_scope("scope");
  graph_queue q(g, make_queue_spec(queue_kind::fifo, 10, {float32}, {.shapes = {{}}, .name = "queue"}));
  CHECK(queue_runner(q, {q.enqueue({g.constant(1.0)})}).name() == "scope/queue");
}

TEST_CASE("Q12 add_queue_runner puts it into a collection, from which the threads of all are started") {
  counted m({30, 5}, 3);  // the queue is full after three: the first runner cannot end before it is told to
  queue_runner one(m.q, {m.ops[0]}),
      two(m.q, {m.ops[1]}, {.queue_closed_exception_types = {status::not_found, status::out_of_range}});
  CHECK(queue_runners_of(m.g).empty());
  add_queue_runner(one);
  add_queue_runner(two, "others");
  CHECK(queue_runners_of(m.g).size() == 1);
  const auto others = queue_runners_of(m.g, "others");
  REQUIRE(others.size() == 1);
  CHECK(others[0].name() == two.name());
  CHECK(others[0].enqueue_ops()[0].id == m.ops[1].id);
  CHECK((others[0].close_op().id == two.close_op().id && others[0].cancel_op().id == two.cancel_op().id));
  CHECK(others[0].queue_closed_exception_types() == two.queue_closed_exception_types());
  session s{m.g};
  s.initialize();
  any_coordinator coord;
  auto threads = start_queue_runners(s, &coord);
  CHECK(threads.size() == 2);
  CHECK(start_queue_runners(s, &coord).empty());  // they run, or wait for the stop
  while (m.q.in(s).pending().enqueues == 0) std::this_thread::yield();
  coord.request_stop();
  coord.join();
  CHECK((m.at(s, 0) == 4 && m.at(s, 1) == 0));
}

TEST_CASE("Q13 start_queue_runners for a session of another graph: nothing, or an error that says so") {
  counted m({3}), n({3});
  session s{n.g};
  CHECK(start_queue_runners(s).empty());
  queue_runner runner(m.q, m.ops);
  CHECK(says(refusal<invalid_argument>([&] { (void)runner.create_threads(s); }), "another graph than the session's"));
}

TEST_CASE("Q14 to_proto and from_proto keep the names and the codes; a proto without codes means out_of_range") {
  counted m({3});
  for (const auto& types : {std::vector<status>{status::out_of_range},
                            std::vector<status>{status::out_of_range, status::cancelled, status::aborted}}) {
    queue_runner runner(m.q, {m.ops[0], m.ops[0]}, {.queue_closed_exception_types = types});
    const std::vector<std::byte> bytes = runner.to_proto();
    const queue_runner again = queue_runner::from_proto(m.g, bytes);
    CHECK(again.name() == runner.name());
    CHECK(again.queue().id == m.q.node().id);
    CHECK(again.enqueue_ops().size() == 2);
    CHECK(again.enqueue_ops()[1].id == m.ops[0].id);
    CHECK((again.close_op().id == runner.close_op().id && again.cancel_op().id == runner.cancel_op().id));
    CHECK(again.queue_closed_exception_types() == types);
    CHECK(again.to_proto() == bytes);
  }
  // what TensorFlow writes for such a runner, by hand: no field 5
  const auto put = [](std::vector<std::byte>& to, int number, std::string_view text) {
    to.push_back(static_cast<std::byte>(number << 3 | 2)), to.push_back(static_cast<std::byte>(text.size()));
    for (const char c : text) to.push_back(static_cast<std::byte>(c));
  };
  queue_runner runner(m.q, m.ops);
  const auto name_of = [&](value v) { return m.g.name_of(v.id); };
  std::vector<std::byte> old;
  put(old, 1, name_of(m.q.node())), put(old, 2, name_of(m.ops[0])), put(old, 3, name_of(runner.close_op()));
  CHECK(says(refusal<data_loss>([&] { queue_runner::from_proto(m.g, old); }), "names a queue"));
  put(old, 4, name_of(runner.cancel_op()));
  CHECK(queue_runner::from_proto(m.g, old).queue_closed_exception_types() == std::vector<status>{status::out_of_range});
  put(old, 2, "elsewhere");
  CHECK(says(refusal<not_found>([&] { queue_runner::from_proto(m.g, old); }), "no node named \"elsewhere\""));
  CHECK(refusal<data_loss>([&] { queue_runner::from_proto(m.g, std::vector<std::byte>(3, std::byte{0xff})); }) !=
        "(nothing was refused)");
}

TEST_CASE("Q15 what is no runner: without ops, without types, ops of another graph") {
  counted m({3}), n({3});
  CHECK(says(refusal<invalid_argument>([&] { queue_runner(m.q, {}); }), "at least one enqueue op"));
  CHECK(says(refusal<invalid_argument>([&] { queue_runner(m.q, m.ops, {.queue_closed_exception_types = {}}); }),
             "queue_closed_exception_types"));
  CHECK(says(refusal<invalid_argument>([&] { queue_runner(m.q, n.ops); }), "another graph"));
}

TEST_CASE("Q16 a custom closed type ends threads quietly") {
  counted m({});
  fails_with = status::not_found;
  session s{m.g};
  queue_runner runner(m.q, {m.g.add(failing, nullptr, 0)}, {.queue_closed_exception_types = {status::not_found}});
  any_coordinator coord;
  auto threads = runner.create_threads(s, &coord, true);
  threads[0].join();
  CHECK(m.q.in(s).is_closed());
  CHECK(!coord.should_stop());
  coord.request_stop();
  coord.join();
}
