#include <gradus/session/queue/random_shuffle_queue.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "queue_calls.hpp"

using namespace gradus;

namespace {
using list = std::vector<float>;
list first_floats(std::size_t n) {
  list out(n);
  std::iota(out.begin(), out.end(), 0.0F);
  return out;
}
list sorted(list l) {
  std::sort(l.begin(), l.end());
  return l;
}
list order_of(std::uint64_t seed, std::uint64_t seed2 = 0) {
  random_shuffle_queue q(100, 0, {float32}, {.shapes = {{}}, .seed = seed, .seed2 = seed2});
  enqueue_rows(q, first_floats(100));
  return dequeue_rows<float>(q, 100);
}
}  // namespace

TEST_CASE("F22 random shuffle: min_after_dequeue elements stay while the queue is open") {
  random_shuffle_queue q(10, 5, {float32}, {.shapes = {{}}, .name = "q", .seed = 1});
  enqueue_rows(q, first_floats(8));
  list got = dequeue_rows<float>(q, 3);
  CHECK(q.size() == 5);
  CHECK_THROWS_AS(q.dequeue<float>({.timeout_secs = 0}), deadline_exceeded);
  CHECK_THROWS_AS(q.dequeue_up_to(1, {.timeout_secs = 0}), deadline_exceeded);
  queue_call consumer([&] { got.push_back(q.dequeue<float>()); });
  until_pending(q, 0, 1);
  q.enqueue(8.0F);
  CHECK_FALSE(consumer.join());
  CHECK(q.size() == 5);
  SUBCASE("after close all can be taken") {
    q.close();
    for (int i = 0; i < 5; ++i) got.push_back(q.dequeue<float>());
    CHECK_THROWS_WITH_AS(q.dequeue<float>(), doctest::Contains("(requested 1, has 0)"), out_of_range);
  }
  SUBCASE("the close serves who waits") {
    queue_call many([&] {
      const list rest = dequeue_rows<float>(q, 5);
      got.insert(got.end(), rest.begin(), rest.end());
    });
    until_pending(q, 0, 1);
    q.close();
    CHECK_FALSE(many.join());
  }
  CHECK(sorted(got) == first_floats(9));  // each once
}

TEST_CASE("F22 random shuffle: what a dequeue_many gathered returns to a queue that closes short") {
  random_shuffle_queue q(10, 2, {float32}, {.shapes = {{}}});
  enqueue_rows(q, first_floats(6));
  queue_call many([&] { q.dequeue_many(9); });
  until_pending(q, 0, 1);
  CHECK(q.size() == 2);
  q.close();
  CHECK(many.join() == status::out_of_range);
  CHECK(q.size() == 6);
  CHECK(sorted(dequeue_rows<float>(q, 6)) == first_floats(6));
}

TEST_CASE("F22 random shuffle: equal seeds agree, both seeds 0 differ between runs") {
  CHECK(order_of(7) == order_of(7));
  CHECK(order_of(7, 3) == order_of(7, 3));
  CHECK(order_of(7) != order_of(8));
  CHECK(order_of(7) != order_of(7, 3));
  CHECK(order_of(0, 3) == order_of(0, 3));
  CHECK(order_of(0) != order_of(0));
  CHECK(sorted(order_of(7)) == first_floats(100));
  CHECK(order_of(7) != first_floats(100));
}

TEST_CASE("random_shuffle_queue: refusals") {
  CHECK_THROWS_AS(random_shuffle_queue(10, 10, {float32}), invalid_argument);
  CHECK_THROWS_AS(random_shuffle_queue(10, -1, {float32}), invalid_argument);
  CHECK_NOTHROW(random_shuffle_queue(10, 9, {float32}));
  CHECK_NOTHROW(random_shuffle_queue(-1, 1000, {float32}));
}
