// sanitized in every run: runs of a session that wait in queues
#include <gradus/session/queue/graph_queue.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/ops/reduce.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/run/session.hpp>
#include <gradus/run/variable_ops.hpp>
#include <gradus/testing/hand_tasks.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <string>
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
template <class T = float>
std::vector<T> numbers(const const_tensor_view& v) {
  const auto s = v.as<T>();
  return {s.begin(), s.end()};
}
queue_spec fifo(std::int64_t capacity, std::vector<dtype> types, queue_options o = {}) {
  return make_queue_spec(queue_kind::fifo, capacity, std::move(types), std::move(o));
}
// A queue of float scalars: fed elements go in, one or all at once.
struct scalars {
  graph g;
  graph_queue q;
  value x = g.placeholder("x", {}), xs = g.placeholder("xs", {batch});
  value put = q.enqueue({x}), put_all = q.enqueue_many({xs});
  value one = q.dequeue(), size = q.size(), closed = q.is_closed(), close = q.close(), cancel = q.close(true);
  explicit scalars(std::int64_t capacity = 10, queue_kind kind = queue_kind::fifo)
      : q(g, make_queue_spec(kind, capacity, {float32}, {.shapes = {{}}})) {}

  void fill(base_session& s, const std::vector<float>& all) { s.run(put_all, {{xs, all}}); }
  void add(base_session& s, float v) { s.run(put, {{x, std::vector<float>{v}}}); }
  float take(base_session& s) { return s.run(one).as<float>()[0]; }
  int size_in(base_session& s) { return s.run(size).as<std::int32_t>()[0]; }
};
std::vector<float> counted(int n, int from = 0) {
  std::vector<float> v;
  for (int i = 0; i < n; ++i) v.push_back(static_cast<float>(from + i));
  return v;
}
// A call on a thread of its own; when it has ended, why.
class blocked {
public:
  blocked(const task_system& t, std::function<void()> f)
      : task_(t.start("a test", "do without", [this, f = std::move(f)] {
          try {
            f();
          } catch (const error& e) {
            kind_ = e.kind(), what_ = e.what();
          }
          ended_ = true;
        })) {}
  bool ended() const { return ended_; }
  int kind() {
    task_.join();
    return static_cast<int>(kind_);
  }
  const std::string& what() const { return what_; }

private:
  std::atomic<bool> ended_{false};
  status kind_{};
  std::string what_;
  task_handle task_;
};
}  // namespace

TEST_CASE("F1 size is 0 when empty, 1 after an enqueue, 0 after a dequeue, and a scalar") {
  scalars m;
  session s{m.g};
  CHECK(m.size_in(s) == 0);
  m.add(s, 10);
  CHECK(m.size_in(s) == 1);
  CHECK(m.take(s) == 10);
  CHECK(m.size_in(s) == 0);
  CHECK(s.run(m.size).dims.rank == 0);
}

TEST_CASE("F2 ten producers and one consumer, one filler and ten consumers: every element once") {
  for (const bool many_producers : {true, false}) {
    scalars m(5);
    session s{m.g};
    std::mutex mutex;
    std::map<float, int> seen;
    const int each = 20, makers = many_producers ? 10 : 1, takers = many_producers ? 1 : 10;
    {
      std::vector<task_handle> all;
      for (int t = 0; t < makers; ++t)
        all.push_back(task_system().start("a test", "do without", [&, t] {
          for (int i = 0; i < 10 * each / makers; ++i) m.add(s, static_cast<float>(1000 * t + i));
        }));
      for (int t = 0; t < takers; ++t)
        all.push_back(task_system().start("a test", "do without", [&] {
          for (int i = 0; i < 10 * each / takers; ++i) {
            const float v = m.take(s);
            const std::lock_guard lock(mutex);
            ++seen[v];
          }
        }));
    }
    CHECK(seen.size() == 10 * each);
    CHECK(std::all_of(seen.begin(), seen.end(), [](const auto& e) { return e.second == 1; }));
    CHECK(m.size_in(s) == 0);
  }
}

TEST_CASE("F3 a dequeue that blocks is served by a later enqueue, in order") {
  testing::hand_tasks hand;
  scalars m;
  session_resources box(hand.tasks());
  session s{m.g, shared_resources(box)};
  std::vector<float> taken;
  blocked call(hand.tasks(), [&] {
    for (int i = 0; i < 3; ++i) taken.push_back(m.take(s));
  });
  hand.settle();
  CHECK(!call.ended());
  m.fill(s, {10, 20, 30});
  CHECK(call.kind() == 0);
  CHECK(taken == std::vector<float>{10, 20, 30});
}

TEST_CASE("F4 several components keep their pairing") {
  graph g;
  graph_queue q(g, fifo(10, {int32, float32}, {.shapes = {{}, {}}}));
  const value i = g.placeholder("i", {}, int32), f = g.placeholder("f", {}), put = q.enqueue({i, f});
  const dequeued both = q.dequeue();
  session s{g};
  for (int k = 0; k < 4; ++k)
    s.run(put, {{i, std::vector<std::int32_t>{k}}, {f, std::vector<float>{static_cast<float>(10 * k)}}});
  for (int k = 0; k < 4; ++k) {
    const auto r = s.run({both[1], both[0]});
    CHECK(r[1].as<std::int32_t>()[0] == k);
    CHECK(r[0].as<float>()[0] == static_cast<float>(10 * k));
  }
  CHECK(refusal<invalid_argument>([&] { (void)static_cast<value>(both); }) != "(nothing was refused)");
}

TEST_CASE("F5 enqueue_many of 4, twice: eight single dequeues in order; F6 of none changes nothing") {
  scalars m;
  session s{m.g};
  m.fill(s, {10, 20, 30, 40}), m.fill(s, {10, 20, 30, 40});
  m.fill(s, {});
  CHECK(m.size_in(s) == 8);
  for (int i = 0; i < 8; ++i) CHECK(m.take(s) == static_cast<float>(10 * (i % 4 + 1)));
}

TEST_CASE("F7 dequeue_many(0) is an empty tensor, also on an empty queue; without shapes it is an error") {
  scalars m;
  const value none = m.q.dequeue_many(0);
  session s{m.g};
  CHECK(s.run(none).dims == extents{0});
  m.add(s, 1);
  CHECK(s.run(none).dims == extents{0});
  CHECK(m.size_in(s) == 1);
  graph g;
  graph_queue without(g, fifo(10, {float32}));
  CHECK(says(refusal<invalid_argument>([&] { without.dequeue_many(0); }), "specified shapes"));
}

TEST_CASE("F8 dequeue_many(4) twice gives 0..3 and 4..7; then single dequeues go on; the batch is what came") {
  scalars m;
  const value four = m.q.dequeue_many(4), sum = reduce_sum(four * 2.0);
  session s{m.g};
  m.fill(s, counted(10));
  CHECK(numbers(s.run(four)) == counted(4));
  CHECK(s.run(sum).as<float>()[0] == 2 * (4 + 5 + 6 + 7));
  CHECK(m.take(s) == 8);
  CHECK(m.take(s) == 9);
}

TEST_CASE("F9 a wrong number of components, type, static shape: refused when built; a shape known later when run") {
  graph g;
  graph_queue q(g, fifo(10, {int32, float32}, {.shapes = {{}, {3, 3}}}));
  const value i = g.placeholder("i", {}, int32), f = g.placeholder("f", {3, 3}), w = g.placeholder("w", {3, 4});
  CHECK(says(refusal<invalid_argument>([&] { q.enqueue({i}); }), "expected 2 components of an element, got 1"));
  CHECK(says(refusal<invalid_argument>([&] { q.enqueue({f, f}); }), "component 0 has the wrong type: expected int32"));
  CHECK(says(refusal<invalid_argument>([&] { q.enqueue({i, w}); }), "expected [3, 3], got [3, 4]"));
  CHECK(says(refusal<invalid_argument>([&] { q.enqueue_many({i, f}); }), "component 0 is a scalar"));
  const value is = g.placeholder("is", {1}, int32);
  CHECK(says(refusal<invalid_argument>([&] {
               q.enqueue_many({is, w});
             }),
             "expected [3, 3] behind the rows, got [3, 4]"));
  graph h;
  graph_queue rows(h, fifo(10, {float32}, {.shapes = {{3, 3}}}));
  const value x = h.placeholder("x", {batch, 3}), enqueue = rows.enqueue({x});
  session s{h};
  s.run(enqueue, {{x, std::vector<float>(9, 1.0f)}});
  CHECK(says(refusal<invalid_argument>([&] {
               s.run(enqueue, {{x, std::vector<float>(12, 1.0f)}});
             }),
             "component 0 has the wrong shape: expected [3, 3], got [4, 3]"));
  CHECK(s.run(rows.size()).as<std::int32_t>()[0] == 1);
}

TEST_CASE("F10 enqueue_many components that disagree in their first extent: refused when built") {
  graph g;
  graph_queue q(g, fifo(10, {float32, float32}, {.shapes = {{}, {}}}));
  const value a = g.placeholder("a", {5}), b = g.placeholder("b", {6}), any = g.placeholder("any", {batch});
  CHECK(says(refusal<invalid_argument>([&] {
               q.enqueue_many({a, b});
             }),
             "component 1 has 6 rows and component 0 has 5"));
  const value put = q.enqueue_many({a, any});  // known when it runs
  session s{g};
  CHECK(says(refusal<invalid_argument>([&] {
               s.run(put, {{a, std::vector<float>(5)}, {any, std::vector<float>(4)}});
             }),
             "component 1 has 4 rows"));
}

TEST_CASE("F11 close, then enqueue: cancelled; close, then dequeue of what is left: served, then out_of_range") {
  scalars m;
  session s{m.g};
  m.fill(s, {10, 20});
  s.run(m.close);
  CHECK(says(refusal<cancelled>([&] { m.add(s, 30); }), "closed"));
  CHECK(m.take(s) == 10);
  CHECK(m.take(s) == 20);
  CHECK(says(refusal<out_of_range>([&] { m.take(s); }), "closed"));
  CHECK(refusal<cancelled>([&] { s.run(m.close); }) != "(nothing was refused)");
}

TEST_CASE("F12 dequeue_many(n) on a closed queue with k < n: out_of_range, and the k stay; dequeue_up_to gives k") {
  scalars m;
  const value four = m.q.dequeue_many(4), up_to = m.q.dequeue_up_to(4), twice = up_to * 2.0;
  session s{m.g};
  m.fill(s, {10, 20, 30});
  s.run(m.close);
  CHECK(refusal<out_of_range>([&] { s.run(four); }) != "(nothing was refused)");
  CHECK(m.size_in(s) == 3);
  CHECK(numbers(s.run(twice)) == std::vector<float>{20, 40, 60});
  CHECK(refusal<out_of_range>([&] { s.run(up_to); }) != "(nothing was refused)");
}

TEST_CASE("F13 close with a pending enqueue: that element is delivered, later ones fail; F14 cancelled with cancel") {
  for (const bool cancels : {false, true}) {
    testing::hand_tasks hand;
    scalars m(2);
    session_resources box(hand.tasks());
    session s{m.g, shared_resources(box)};
    m.fill(s, {1, 2});
    blocked pending(hand.tasks(), [&] { m.add(s, 3); });
    hand.settle();
    blocked closing(hand.tasks(), [&] { s.run(cancels ? m.cancel : m.close); });
    hand.settle();
    CHECK(closing.ended() == cancels);
    CHECK(m.take(s) == 1);
    CHECK(closing.kind() == 0);
    CHECK(pending.kind() == (cancels ? static_cast<int>(status::cancelled) : 0));
    CHECK(m.take(s) == 2);
    if (!cancels) CHECK(m.take(s) == 3);
    CHECK(refusal<cancelled>([&] { m.add(s, 4); }) != "(nothing was refused)");
    CHECK(s.run(m.closed).as<bool>()[0]);
  }
}

TEST_CASE("F15 a dequeue_many that waits when the queue closes short: out_of_range, and its elements return") {
  testing::hand_tasks hand;
  scalars m;
  const value four = m.q.dequeue_many(4);
  session_resources box(hand.tasks());
  session s{m.g, shared_resources(box)};
  m.fill(s, {10, 20, 30});
  blocked call(hand.tasks(), [&] { s.run(four); });
  hand.settle();
  s.run(m.close);
  CHECK(call.kind() == static_cast<int>(status::out_of_range));
  for (const float v : {10.0f, 20.0f, 30.0f}) CHECK(m.take(s) == v);
}

TEST_CASE("F16 enqueue_many larger than the room makes partial progress and goes on as consumers take") {
  testing::hand_tasks hand;
  scalars m(4);
  session_resources box(hand.tasks());
  session s{m.g, shared_resources(box)};
  m.fill(s, {10, 20, 30});
  blocked call(hand.tasks(), [&] { m.fill(s, {40, 50, 60, 70}); });
  hand.settle();
  CHECK(m.size_in(s) == 4);
  CHECK(!call.ended());
  for (int i = 1; i <= 7; ++i) CHECK(m.take(s) == static_cast<float>(10 * i));
  CHECK(call.kind() == 0);
}

TEST_CASE("F17 closing the session cancels blocked enqueues and dequeues; a blocked run holds no variable") {
  for (const bool fills : {true, false}) {
    testing::hand_tasks hand;
    scalars m(1);
    const value w = m.g.variable("w", {}, {.init = ones});
    const value take = assign(w, m.q.dequeue()), give = m.q.enqueue({assign_add(w, m.g.constant(1.0))});
    session_resources box(hand.tasks());
    session s{m.g, shared_resources(box)}, other{m.g, shared_resources(box)};
    s.initialize();
    if (fills) m.add(s, 5);
    blocked call(hand.tasks(), [&] { s.run(fills ? give : take); });
    hand.settle();
    CHECK(!call.ended());
    CHECK(s.run(w).as<float>()[0] == (fills ? 2 : 1));  // w can be read, and written
    s.run(assign(w, m.g.constant(7.0)));
    s.close();
    CHECK(call.kind() == static_cast<int>(status::cancelled));
    CHECK(says(call.what(), "the session was closed"));
    CHECK(m.size_in(other) == (fills ? 1 : 0));  // the queue belongs to the resources
    CHECK(other.run(w).as<float>()[0] == 7);
  }
}

TEST_CASE("F18 a shared name with another capacity, type or shape: invalid_argument naming both") {
  const auto conflict = [](const queue_spec& a, const queue_spec& b) {
    session_resources box;
    graph g, h;
    graph_queue first(g, a), second(h, b);
    const value one = first.size(), two = second.size();
    session s{g, shared_resources(box)}, t{h, shared_resources(box)};
    s.run(one);
    return refusal<invalid_argument>([&] { t.run(two); });
  };
  const queue_options o{.shapes = {{}}, .shared_name = "shared"};
  CHECK(conflict(fifo(10, {float32}, o), fifo(10, {float32}, o)) == "(nothing was refused)");
  CHECK(says(conflict(fifo(10, {float32}, o), fifo(15, {float32}, o)),
             "\"shared\" has capacity 10 but was requested with capacity 15"));
  CHECK(says(conflict(fifo(10, {float32}, o), fifo(10, {int32}, o)), "component types [float32]"));
  CHECK(says(conflict(fifo(10, {float32}, o), fifo(10, {float32}, {.shapes = {{2}}, .shared_name = "shared"})),
             "component shapes [[]]"));
}

TEST_CASE("F18 sessions share a queue by its shared name, else by its name in the graph; others have their own") {
  session_resources box;
  scalars a, b;
  session s{a.g, shared_resources(box)}, t{b.g, shared_resources(box)};
  session own{b.g};
  a.add(s, 4);
  CHECK(b.size_in(own) == 0);
  CHECK(b.take(t) == 4);
  any_queue outside = a.q.in(s);  // and as an object
  outside.enqueue(6.0f);
  CHECK(b.take(t) == 6);
  CHECK(says(refusal<invalid_argument>([&] { a.q.in(own); }), "another graph"));
  box.reset();
  session after{a.g, shared_resources(box)};
  outside.enqueue(7.0f);
  CHECK(a.size_in(after) == 0);
}

TEST_CASE("F19 is_closed reads the state") {
  scalars m;
  session s{m.g};
  CHECK(!s.run(m.closed).as<bool>()[0]);
  s.run(m.close);
  CHECK(s.run(m.closed).as<bool>()[0]);
}

TEST_CASE("F20 names of components allow a dictionary; a dictionary without names, and a list with them, are refused") {
  graph g;
  graph_queue q(g, fifo(10, {int32, float32}, {.shapes = {{}, {}}, .names = {"i", "j"}}));
  const value i = g.placeholder("i", {}, int32), j = g.placeholder("j", {});
  const value put = q.enqueue({{"j", j}, {"i", i}});
  const dequeued got = q.dequeue(), two = q.dequeue_many(1);
  session s{g};
  for (int k = 0; k < 2; ++k) s.run(put, {{i, std::vector<std::int32_t>{123}}, {j, std::vector<float>{42}}});
  CHECK(s.run(got["i"]).as<std::int32_t>()[0] == 123);
  CHECK(s.run(two["j"]).as<float>()[0] == 42);
  CHECK(says(refusal<invalid_argument>([&] { q.enqueue({i, j}); }), "give a dictionary"));
  CHECK(says(refusal<invalid_argument>([&] { q.enqueue({{"i", i}}); }), "a dictionary of 2 names, got 1"));
  CHECK(says(refusal<invalid_argument>([&] { q.enqueue({{"i", i}, {"x", j}}); }), "no component \"x\""));
  CHECK(says(refusal<invalid_argument>([&] { q.enqueue({{"i", i}, {"i", i}}); }), "\"i\" twice"));
  CHECK(says(refusal<invalid_argument>([&] { got["x"]; }), "its components are [i, j]"));
  graph_queue plain(g, fifo(10, {int32}, {.shapes = {{}}}));
  CHECK(says(refusal<invalid_argument>([&] { plain.enqueue({{"i", i}}); }), "it has no names"));
  // names are each user's own: a session takes the queue that is there
  session_resources box;
  graph h;
  graph_queue unnamed(h, fifo(10, {int32, float32}, {.shapes = {{}, {}}, .name = "fifo_queue"}));
  session a{g, shared_resources(box)}, b{h, shared_resources(box)};
  a.run(put, {{i, std::vector<std::int32_t>{5}}, {j, std::vector<float>{6}}});
  CHECK(b.run(unnamed.dequeue()[0]).as<std::int32_t>()[0] == 5);
}

TEST_CASE("F21 from_list selects by index") {
  graph g;
  const std::vector<graph_queue> list{graph_queue(g, fifo(10, {float32}, {.shapes = {{}}})),
                                      graph_queue(g, fifo(15, {float32}, {.shapes = {{}}}))};
  for (std::int64_t k = 0; k < 2; ++k)
    CHECK(graph_queue::from_list(k, list).name() == list[static_cast<std::size_t>(k)].name());
  CHECK((list[0].name() == "fifo_queue" && list[1].name() == "fifo_queue_1"));
  CHECK(refusal<out_of_range>([&] { graph_queue::from_list(2, list); }) != "(nothing was refused)");
  CHECK(refusal<invalid_argument>([&] { graph_queue::from_list(0, {}); }) != "(nothing was refused)");
  const std::vector<graph_queue> others{list[0], graph_queue(g, fifo(10, {int32}))};
  CHECK(says(refusal<invalid_argument>([&] { graph_queue::from_list(0, others); }), "differ in the types"));
}

TEST_CASE("F22 random shuffle: min_after_dequeue stays while open, after close all drain, each element once") {
  graph g;
  queue_spec spec = make_queue_spec(queue_kind::random_shuffle, 100, {float32}, {.shapes = {{}}, .seed = 3});
  spec.min_after_dequeue = 7;
  graph_queue q(g, spec);
  const value xs = g.placeholder("xs", {batch}), put = q.enqueue_many({xs}), one = q.dequeue(), close = q.close();
  const value size = q.size();
  session s{g}, same{g};
  for (auto* const each : {&s, &same}) each->run(put, {{xs, counted(20)}});
  std::vector<float> taken, again;
  for (int i = 0; i < 13; ++i)
    taken.push_back(s.run(one).as<float>()[0]), again.push_back(same.run(one).as<float>()[0]);
  CHECK(taken == again);  // equal seeds agree
  CHECK(s.run(size).as<std::int32_t>()[0] == 7);
  CHECK(refusal<deadline_exceeded>([&] { s.run(one, {}, {.timeout_secs = 0.0}); }) != "(nothing was refused)");
  s.run(close);
  for (int i = 0; i < 7; ++i) taken.push_back(s.run(one).as<float>()[0]);
  std::sort(taken.begin(), taken.end());
  CHECK(taken == counted(20));
}

TEST_CASE("F23 padding in a graph: one extent that may be any is the batch; more have no tensor") {
  graph g;
  queue_spec spec = make_queue_spec(queue_kind::padding_fifo, 10, {float32}, {.shapes = {{any_extent, 2}}});
  graph_queue q(g, spec);
  const value x = g.placeholder("x", {batch, 2}), put = q.enqueue({x}), y = static_cast<value>(q.dequeue()) * 2.0;
  session s{g};
  for (const std::size_t rows : {1u, 3u}) {
    s.run(put, {{x, std::vector<float>(2 * rows, 1.0f)}});
    CHECK(s.run(y).dims == extents{static_cast<std::int64_t>(rows), 2});
  }
  CHECK(says(refusal<unimplemented>([&] { q.dequeue_many(2); }), "in(session)"));
  for (const std::size_t rows : {1u, 2u}) s.run(put, {{x, std::vector<float>(2 * rows, 1.0f)}});
  const datum padded = q.in(s).dequeue_many(2);
  CHECK(padded[std::size_t(0)].dims == extents{2, 2, 2});
  graph_queue square(g,
                     make_queue_spec(queue_kind::padding_fifo, 10, {float32}, {.shapes = {{any_extent, any_extent}}}));
  CHECK(says(refusal<unimplemented>([&] { square.dequeue(); }), "2 extents that may be any"));
}

TEST_CASE(
    "F24 priority: dequeues ascend by the int64 key; dequeue_many waits for n and is sorted; other keys refused") {
  testing::hand_tasks hand;
  graph g;
  graph_queue q(g, make_queue_spec(queue_kind::priority, 10, {int64, float32}, {.shapes = {{}, {}}}));
  const value k = g.placeholder("k", {batch}, int64), v = g.placeholder("v", {batch});
  const value put = q.enqueue_many({k, v});
  const dequeued one = q.dequeue(), three = q.dequeue_many(3);
  session_resources box(hand.tasks());
  session s{g, shared_resources(box)};
  const auto enqueue = [&](std::vector<std::int64_t> keys) {
    std::vector<float> values;
    for (const auto key : keys) values.push_back(static_cast<float>(10 * key));
    s.run(put, {{k, keys}, {v, values}});
  };
  enqueue({5, 1, 3});
  for (const float want : {10.0f, 30.0f, 50.0f}) CHECK(s.run(one[1]).as<float>()[0] == want);
  std::vector<float> got;
  enqueue({9, 7});
  blocked call(hand.tasks(), [&] { got = numbers(s.run(three[1])); });
  hand.settle();
  CHECK(!call.ended());
  enqueue({8});
  CHECK(call.kind() == 0);
  CHECK(got == std::vector<float>{70, 80, 90});
  CHECK(refusal<invalid_argument>([&] { q.enqueue({v, v}); }) != "(nothing was refused)");
  CHECK(refusal<invalid_argument>([&] {
          q.enqueue({g.placeholder("m", {2}, int64), g.placeholder("f", {})});
        }) != "(nothing was refused)");
}

TEST_CASE("F25 two threads dequeue_many of one queue: no element is lost or doubled") {
  scalars m(100);
  const value five = m.q.dequeue_many(5);
  session s{m.g};
  std::mutex mutex;
  std::vector<float> seen;
  {
    std::vector<task_handle> all;
    for (int t = 0; t < 2; ++t)
      all.push_back(task_system().start("a test", "do without", [&] {
        for (int i = 0; i < 10; ++i) {
          const auto got = numbers(s.run(five));
          const std::lock_guard lock(mutex);
          seen.insert(seen.end(), got.begin(), got.end());
        }
      }));
    for (int i = 0; i < 10; ++i) m.fill(s, counted(10, 10 * i));
  }
  std::sort(seen.begin(), seen.end());
  CHECK(seen == counted(100));
}

TEST_CASE("F26 a run with a timeout on a blocked dequeue: deadline_exceeded, and the queue is as before") {
  testing::hand_tasks hand;
  scalars m;
  const value four = m.q.dequeue_many(4);
  session_resources box(hand.tasks());
  session s{m.g, shared_resources(box)};
  m.fill(s, {1, 2});
  blocked call(hand.tasks(), [&] { s.run(four, {}, {.timeout_secs = 2}); });
  hand.advance(1.9);
  CHECK(!call.ended());
  hand.advance(0.2);
  CHECK(call.kind() == static_cast<int>(status::deadline_exceeded));
  CHECK(m.size_in(s) == 2);
  CHECK(m.take(s) == 1);
}

TEST_CASE("a queue without shapes: the graph is told what comes, and what comes is checked") {
  graph g;
  graph_queue q(g, fifo(10, {float32}));
  const value x = g.placeholder("x", {batch, 3}), put = q.enqueue({x});
  CHECK(says(refusal<invalid_argument>([&] { q.dequeue(); }), "expected 1 of them, as dequeue({{gradus::batch, 3}"));
  const value rows = q.dequeue({{batch, 3}}), wrong = q.dequeue({{batch, 2}});
  session s{g};
  for (int i = 0; i < 2; ++i) s.run(put, {{x, std::vector<float>{1, 2, 3, 4, 5, 6}}});
  CHECK(s.run(rows).dims == extents{2, 3});
  CHECK(says(refusal<invalid_argument>([&] { s.run(wrong); }), "expected [batch, 2], got [2, 3]"));
}

TEST_CASE("from one queue to the next, and a model between: dequeue, compute, enqueue is one run") {
  graph g;
  graph_queue from(g, fifo(10, {float32}, {.shapes = {{2}}, .name = "from"}));
  graph_queue to(g, fifo(10, {float32}, {.shapes = {{2}}, .name = "to"}));
  const value w = g.variable("w", {2}, {.init = ones});
  const value move = to.enqueue_many({static_cast<value>(from.dequeue_many(3)) * 2.0 + w});
  const value xs = g.placeholder("xs", {batch, 2}), put = from.enqueue_many({xs}), out = to.dequeue();
  session s{g};
  s.initialize();
  s.run(put, {{xs, counted(6)}});
  s.run(move);
  for (int i = 0; i < 3; ++i)
    CHECK(numbers(s.run(out)) == std::vector<float>{static_cast<float>(4 * i + 1), static_cast<float>(4 * i + 3)});
  // several are one op
  const value both = g.group({put, to.enqueue({w})});
  s.run(both, {{xs, counted(2)}});
  CHECK(s.run(from.size()).as<std::int32_t>()[0] == 1);
  CHECK(s.run(to.size()).as<std::int32_t>()[0] == 1);
}
