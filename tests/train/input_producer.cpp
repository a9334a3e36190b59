// sanitized in every run: threads that fill and drain queues
#include <gradus/train/input_producer.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/input/dataset.hpp>
#include <gradus/input/generator.hpp>
#include <gradus/input/range.hpp>
#include <gradus/ops/host.hpp>
#include <gradus/run/session.hpp>
#include <gradus/run/variable_ops.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <vector>

using namespace gradus;

namespace {
using ints = std::vector<std::int32_t>;
std::string refusal(status kind, const std::function<void()>& call) {
  try {
    call();
  } catch (const error& e) {
    CHECK(e.kind() == kind);
    return e.what();
  }
  return "(nothing was refused)";
}
bool says(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// What a session of the graph gives of this tensor, run by run, until the input ends.
std::vector<ints> drained(graph& g, value tensor) {
  const value init = local_variables_initializer(g);
  session s{g};
  s.initialize(3);
  s.run(init);
  coordinator coord;
  auto threads = start_queue_runners(s, &coord);
  std::vector<ints> all;
  while (!coord.should_stop())
    coord.stop_on_exception([&] {
      const auto r = s.run(tensor);
      const auto x = r.as<std::int32_t>();
      all.emplace_back(x.begin(), x.end());
    });
  coord.request_stop();
  coord.join();
  return all;
}
ints joined(const std::vector<ints>& parts) {
  ints all;
  for (const ints& p : parts) all.insert(all.end(), p.begin(), p.end());
  return all;
}
ints sorted(ints a) { return std::sort(a.begin(), a.end()), a; }
ints counted(int n, int times = 1) {
  ints all;
  for (int t = 0; t < times; ++t)
    for (int i = 0; i < n; ++i) all.push_back(i);
  return all;
}
value numbers(graph& g, int n) {
  std::vector<double> list;
  for (int i = 0; i < n; ++i) list.push_back(i);
  return g.constant(list, {n}, int32);
}
}  // namespace

TEST_CASE("input_producer gives the rows in their order, epoch by epoch, then out_of_range") {
  graph g;
  graph_queue q =
      input_producer(g.constant({0, 1, 2, 3, 4, 5}, {3, 2}, int32), {.num_epochs = 2, .shuffle = false, .capacity = 2});
  CHECK(drained(g, q.dequeue()) == std::vector<ints>{{0, 1}, {2, 3}, {4, 5}, {0, 1}, {2, 3}, {4, 5}});
  CHECK(queue_runners_of(g).size() == 1);
  CHECK(q.name() == "input_producer");
}

TEST_CASE("shuffled, each epoch holds each row once, in an order of its own; equal seeds agree, seed 0 does not") {
  const auto run = [](std::uint64_t seed) {
    graph g;
    graph_queue q = range_input_producer(g, 40, {.num_epochs = 3, .seed = seed});
    return joined(drained(g, q.dequeue()));
  };
  const ints one = run(7);
  REQUIRE(one.size() == 120);
  std::vector<ints> epochs;
  for (int e = 0; e < 3; ++e) {
    epochs.emplace_back(one.begin() + 40 * e, one.begin() + 40 * (e + 1));
    CHECK(sorted(epochs.back()) == counted(40));
  }
  CHECK((epochs[0] != epochs[1] && epochs[1] != epochs[2] && epochs[0] != counted(40)));
  CHECK(run(7) == one);
  CHECK(run(8) != one);
  CHECK(run(0) != run(0));
}

TEST_CASE("slice_input_producer keeps the rows of its tensors together") {
  graph g;
  auto rows = slice_input_producer(
      {g.constant({0, 10, 20, 30}, {4}, int32), g.constant({0, 0, 1, 1, 2, 2, 3, 3}, {4, 2}, int32)},
      {.num_epochs = 2, .seed = 5});
  REQUIRE(rows.size() == 2);
  CHECK((rows[0].dims() == shape{} && rows[1].dims() == shape{2}));
  const value together = rows[1] * g.constant(100, int32, {2}) + rows[0] * g.constant(1, int32);
  ints firsts;
  for (const ints& r : drained(g, together)) {
    CHECK((r[0] == r[1] && r[0] % 100 == r[0] / 100 * 10));
    firsts.push_back(r[0] / 100);
  }
  CHECK(sorted(firsts) == sorted(counted(4, 2)));
}

TEST_CASE("batch_tensors: batches in order; the last one, if smaller, is dropped or allowed") {
  for (const bool smaller : {false, true})
    for (const bool many : {false, true}) {
      graph g;
      graph_queue q = input_producer(numbers(g, 5), {.num_epochs = 1, .shuffle = false});
      const value one = many ? static_cast<value>(q.dequeue_many(1)) : static_cast<value>(q.dequeue());
      const auto b = batch_tensors({one}, 2, {.enqueue_many = many, .allow_smaller_final_batch = smaller});
      CHECK(b[0].dims() == shape{batch});
      auto expected = std::vector<ints>{{0, 1}, {2, 3}};
      if (smaller) expected.push_back({4});
      CHECK(drained(g, b[0]) == expected);
    }
}

TEST_CASE("batch_tensors by several threads, batch_join of several lists: each example once") {
  {
    graph g;
    graph_queue q = input_producer(numbers(g, 60), {.num_epochs = 2, .shuffle = false});
    const auto b =
        batch_tensors({q.dequeue()}, 8, {.num_threads = 3, .capacity = 4, .allow_smaller_final_batch = true});
    CHECK(queue_runners_of(g)[1].enqueue_ops().size() == 3);
    CHECK(sorted(joined(drained(g, b[0]))) == sorted(counted(60, 2)));
  }
  graph g;
  graph_queue a = input_producer(numbers(g, 30), {.num_epochs = 1, .shuffle = false, .name = "a"});
  graph_queue c =
      input_producer(g.constant(100, int32, {30}) + numbers(g, 30), {.num_epochs = 1, .shuffle = false, .name = "c"});
  const auto b = batch_join({{a.dequeue()}, {c.dequeue()}}, 7, {.allow_smaller_final_batch = true});
  const ints all = sorted(joined(drained(g, b[0])));
  ints expected = counted(30);
  for (int i = 0; i < 30; ++i) expected.push_back(100 + i);
  CHECK(all == expected);
}

TEST_CASE("shuffle_batch and its join: each example once, in another order, with its names") {
  for (const bool join : {false, true}) {
    graph g;
    graph_queue q = input_producer(numbers(g, 50), {.num_epochs = 1, .shuffle = false});
    const value one = q.dequeue();
    const example_tensors example{{"number", one}, {"twice", one + one}};
    const auto b =
        join ? shuffle_batch_join({example}, 5, 40, 20, {.seed = 3}) : shuffle_batch(example, 5, 40, 20, {.seed = 3});
    CHECK(b["twice"].dims() == shape{batch});
    const auto all = drained(g, b["twice"] * g.constant(100, int32) + b["number"]);
    const ints flat = joined(all);
    CHECK(all.size() == 10);
    ints numbers_seen;
    for (const std::int32_t x : flat) {
      CHECK(x == x % 100 * 201);  // 100 times twice the number, and the number
      numbers_seen.push_back(x % 100);
    }
    CHECK(!std::is_sorted(numbers_seen.begin(), numbers_seen.end()));
    CHECK(sorted(numbers_seen) == counted(50));
    // The first batch can hold nothing that comes behind what the queue holds.
    for (int i = 0; i < 5; ++i) CHECK(numbers_seen[static_cast<std::size_t>(i)] < 45);
  }
}

TEST_CASE("what makes no queue of examples is refused") {
  graph g;
  const value scalar = g.constant(1, int32), rows = g.placeholder("rows", {batch, 2}), three = numbers(g, 3);
  const auto bad = [](const std::function<void()>& f) { return refusal(status::invalid_argument, f); };
  CHECK(says(bad([&] { input_producer(scalar); }), "expected rows, [n, ...], got a scalar"));
  CHECK(says(bad([&] { input_producer(three, {.num_epochs = 0}); }), "expected num_epochs above 0, got 0"));
  CHECK(says(bad([&] { range_input_producer(g, 0); }), "expected a limit from 1"));
  CHECK(says(bad([&] { slice_input_producer({}); }), "at least one tensor"));
  CHECK(says(bad([&] { slice_input_producer({three, numbers(g, 4)}); }), "the same number of rows"));
  CHECK(says(bad([&] { batch_tensors(std::vector<value>{}, 2); }), "at least one tensor of an example"));
  CHECK(says(bad([&] { batch_join({}, 2); }), "at least one list of tensors"));
  CHECK(says(bad([&] { batch_tensors({scalar}, 0); }), "expected a batch_size above 0, got 0"));
  CHECK(says(bad([&] { batch_tensors({scalar}, 2, {.num_threads = 0}); }), "expected num_threads above 0, got 0"));
  CHECK(says(bad([&] { batch_tensors({scalar}, 2, {.capacity = 0}); }), "expected a capacity above 0, got 0"));
  CHECK(says(bad([&] { batch_tensors({rows}, 2); }), "all shapes must be fully defined, and \"rows\" is [batch, 2]"));
  CHECK(says(bad([&] { batch_join({{scalar}, {scalar, three}}, 2); }), "differ in number: 1 and 2"));
  CHECK(says(bad([&] { batch_join({{scalar}, {g.constant(1.0)}}, 2); }), "component 0: int32 and float32"));
  CHECK(says(bad([&] { batch_join({{scalar}, {three}}, 2); }), "shape of component 0: [] and [3]"));
  CHECK(says(bad([&] { batch_join({{{"a", scalar}}, {{"b", scalar}}}, 2); }), "differ in their names"));
  CHECK(says(bad([&] { batch_tensors({scalar}, 2, {.shapes = {{}, {}}}); }), "expected 1 shapes, one of each tensor"));
  CHECK(says(refusal(status::unimplemented, [&] { batch_tensors({rows}, 2, {.dynamic_pad = true}); }), "padded"));
}

TEST_CASE("dataset_producer: a queue's elements are the dataset's, and its end closes the queue") {
  graph g;
  dataset_producer input(range_dataset(20));
  graph_queue q(g, input.queue(4));
  const value out = q.dequeue_up_to(8)[0];
  session s{g};
  coordinator coord;
  auto threads = input.create_threads(q, s, &coord, true);
  std::vector<std::int64_t> all;
  while (!coord.should_stop())
    coord.stop_on_exception([&] {
      const auto r = s.run(out);
      for (const auto x : r.as<std::int64_t>()) all.push_back(x);
    });
  coord.join();
  REQUIRE(all.size() == 20);
  for (std::size_t i = 0; i < 20; ++i) CHECK(all[i] == static_cast<std::int64_t>(i));
}

TEST_CASE("a stop ends a producer that waits for room; an error of the data stops the coordinator, or is kept") {
  {
    graph g;
    dataset_producer input(any_dataset(range_dataset(20)).repeat());
    graph_queue q(g, input.queue(2));
    session s{g};
    coordinator coord;
    auto threads = input.create_threads(q, s, &coord, true);
    coord.request_stop();
    coord.join();
    CHECK(q.in(s).is_closed());
  }
  const auto failing = [] {
    return from_generator({{"value", int64, {}}},
                          [] { return [](datum&) -> bool { raise(status::data_loss, "the file is torn"); }; });
  };
  for (const bool coordinated : {true, false}) {
    graph g;
    dataset_producer input(failing());
    graph_queue q(g, input.queue(2));
    session s{g};
    coordinator coord;
    auto threads = input.create_threads(q, s, coordinated ? &coord : nullptr, true);
    if (coordinated)
      CHECK(says(refusal(status::data_loss, [&] { coord.join(); }), "the file is torn"));
    else {
      threads[0].join();
      CHECK(says(refusal(status::data_loss, [&] { std::rethrow_exception(input.exception_raised()); }), "torn"));
      CHECK(q.in(s).is_closed());
    }
  }
}

TEST_CASE("an error of the data after the grace of a join is kept, and ends no process") {
  std::atomic<bool> reads = false, goes_on = false;
  const auto slow = from_generator({{"value", int64, {}}}, [&] {
    return [&](datum&) -> bool {
      reads = true, reads.notify_all();
      goes_on.wait(false);
      raise(status::data_loss, "the file is torn");
    };
  });
  graph g;
  dataset_producer input(slow);
  graph_queue q(g, input.queue(2));
  session s{g};
  coordinator coord;
  auto threads = input.create_threads(q, s, &coord, true);
  reads.wait(false);
  coord.request_stop();
  CHECK(refusal(status::deadline_exceeded, [&] { coord.join({.stop_grace_period_secs = -1}); }) != "");
  goes_on = true, goes_on.notify_all();
  threads.clear();
  CHECK(coord.suppressed().size() == 1);
}
