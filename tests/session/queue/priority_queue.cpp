#include <gradus/session/queue/priority_queue.hpp>

#include <doctest/doctest.h>

#include <algorithm>

#include "queue_calls.hpp"

using namespace gradus;

namespace {
using keys = std::vector<std::int64_t>;
priority_queue make(std::int64_t capacity) { return {capacity, {int32}, {.shapes = {{}}, .name = "q"}}; }
void put(any_queue& q, std::int64_t key, std::int32_t value) { q.enqueue(key, value); }
}  // namespace

TEST_CASE("F24 priority: dequeues ascend by the int64 key, equal keys as they came") {
  priority_queue q = make(100);
  CHECK(q.dtypes() == std::vector<dtype>{int64, int32});
  CHECK(q.shapes() == std::vector<extents>{{}, {}});
  const std::pair<std::int64_t, std::int32_t> elements[] = {{5, 0}, {-3, 1},        {5, 2}, {INT64_MAX, 3},
                                                            {0, 4}, {INT64_MIN, 5}, {5, 6}};
  for (const auto& [key, value] : elements) put(q, key, value);
  for (std::int32_t wanted : {5, 1, 4, 0, 2, 6, 3}) CHECK(q.dequeue().value<std::int32_t>(1) == wanted);
}

TEST_CASE("F24 priority: a dequeue_many waits for all and is sorted") {
  priority_queue q = make(100);
  for (std::int64_t key : {9, 2, 7}) put(q, key, 0);
  keys got;
  queue_call many([&] { got = values_of<std::int64_t>(q.dequeue_many(4)[0]); });
  until_pending(q, 0, 1);
  CHECK(q.size() == 3);  // none is taken before all are there
  put(q, 1, 0);
  CHECK_FALSE(many.join());
  CHECK(got == keys{1, 2, 7, 9});
}

TEST_CASE("F24 priority: a dequeue_many of a queue that closes short, and dequeue_up_to") {
  priority_queue q = make(100);
  for (std::int64_t key : {9, 2, 7}) put(q, key, 0);
  queue_call many([&] { q.dequeue_many(4); });
  until_pending(q, 0, 1);
  q.close();
  CHECK(many.join() == status::out_of_range);
  CHECK(values_of<std::int64_t>(q.dequeue_up_to(4)[0]) == keys{2, 7, 9});
}

TEST_CASE("F24 priority: a key of another type or rank: invalid_argument") {
  const std::int32_t i = 1;
  for (const bool shaped : {true, false}) {
    priority_queue q(10, {int32}, shaped ? queue_options{.shapes = {{}}} : queue_options{});
    CHECK_THROWS_WITH_AS(q.enqueue(i, i), doctest::Contains("component 0 has the wrong type: expected int64"),
                         invalid_argument);
    const keys two{1, 2};
    const const_tensor_view wrong[] = {std::span<const std::int64_t>(two),
                                       {int32, {}, reinterpret_cast<const std::byte*>(&i)}};
    CHECK_THROWS_WITH_AS(q.enqueue(wrong), doctest::Contains("component 0 has the wrong shape: expected [], got [2]"),
                         invalid_argument);
    put(q, 1, 2);
    CHECK(q.dequeue().value<std::int32_t>(1) == 2);
  }
}

TEST_CASE("priority_queue: more at once than it holds would wait for ever, and is refused") {
  priority_queue q = make(3);
  CHECK_THROWS_WITH_AS(q.dequeue_many(4), doctest::Contains("dequeue_many(4) waits until as many elements are there"),
                       invalid_argument);
  CHECK_THROWS_AS(q.dequeue_up_to(4), invalid_argument);
  priority_queue unbounded = make(-1);
  unbounded.close();
  CHECK_THROWS_AS(unbounded.dequeue_many(4), out_of_range);
}

TEST_CASE("priority_queue: keys alone, and rows of them") {
  priority_queue q(10, {});
  enqueue_rows<std::int64_t>(q, {4, 8, 1});
  CHECK(q.dequeue<std::int64_t>() == 1);
  CHECK(dequeue_rows<std::int64_t>(q, 2) == keys{4, 8});
}

TEST_CASE("F2 priority: ten producers, then everything in order") {
  priority_queue q = make(100);
  {
    std::vector<std::unique_ptr<queue_call>> producers;
    for (int p = 0; p < 10; ++p)
      producers.push_back(std::make_unique<queue_call>([&q, p] {
        for (int i = 0; i < 10; ++i) put(q, (i * 7 + p * 13) % 10, p);
      }));
  }
  const auto got = values_of<std::int64_t>(q.dequeue_many(100)[0]);
  CHECK(std::is_sorted(got.begin(), got.end()));
  CHECK(std::count(got.begin(), got.end(), 3) == 10);
}
