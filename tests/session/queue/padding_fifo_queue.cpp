#include <gradus/session/queue/padding_fifo_queue.hpp>

#include <doctest/doctest.h>

#include "queue_calls.hpp"

using namespace gradus;

namespace {
using list = std::vector<float>;
void put(any_queue& q, const list& values, const extents& dims) {
  const const_tensor_view e[] = {{std::span<const float>(values), dims}};
  q.enqueue(e);
}
}  // namespace

TEST_CASE("F23 padding: variable extents are padded with zeros to the largest of the batch") {
  padding_fifo_queue q(10, {float32, int32}, {{any_extent, 2}, {}});
  const auto put_two = [&](const list& values, std::int32_t n) {
    const const_tensor_view e[] = {{std::span<const float>(values), {static_cast<std::int64_t>(values.size()) / 2, 2}},
                                   {int32, {}, reinterpret_cast<const std::byte*>(&n)}};
    q.enqueue(e);
  };
  put_two({1, 2}, 1);
  put_two({}, 0);
  put_two({3, 4, 5, 6, 7, 8}, 3);
  put_two({9, 10}, 1);
  datum batch = q.dequeue_many(3);
  CHECK(batch[0].dims == extents{3, 3, 2});
  CHECK(values_of<float>(batch[0]) == list{1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 4, 5, 6, 7, 8});
  CHECK(values_of<std::int32_t>(batch[1]) == std::vector<std::int32_t>{1, 0, 3});
  q.dequeue_many(1, batch);  // into memory that held more
  CHECK(batch[0].dims == extents{1, 1, 2});
  CHECK(values_of<float>(batch[0]) == list{9, 10});
}

TEST_CASE("F23 padding: in two extents, in memory that held other numbers") {
  padding_fifo_queue q(10, {float32}, {{any_extent, any_extent}});
  datum batch;
  for (int round = 0; round < 2; ++round) {
    put(q, {1, 2, 3}, {1, 3});
    put(q, {4, 5}, {2, 1});
    q.dequeue_many(2, batch);
    CHECK(batch[0].dims == extents{2, 2, 3});
    CHECK(values_of<float>(batch[0]) == list{1, 2, 3, 0, 0, 0, 4, 0, 0, 5, 0, 0});
    for (float& x : batch.values<float>(0)) x = 77;
  }
}

TEST_CASE("F23 padding: a rank that differs, or a fixed extent that does: invalid_argument") {
  padding_fifo_queue q(10, {float32}, {{any_extent, 2}}, {.name = "q"});
  CHECK_THROWS_WITH_AS(put(q, {1, 2}, {2}), "queue \"q\": component 0 has the wrong shape: expected [-1, 2], got [2]",
                       invalid_argument);
  CHECK_THROWS_AS(put(q, {1, 2, 3}, {1, 3}), invalid_argument);
  CHECK_THROWS_AS(padding_fifo_queue(10, {float32}, {}), invalid_argument);
  CHECK(q.size() == 0);
}

TEST_CASE("padding_fifo_queue: single elements as they are, rows, none, what is left") {
  padding_fifo_queue q(10, {float32}, {{any_extent}});
  put(q, {1, 2, 3}, {3});
  CHECK(q.dequeue()[0].dims == extents{3});
  const list four{1, 2, 3, 4};
  const const_tensor_view rows[] = {{std::span<const float>(four), {2, 2}}};
  q.enqueue_many(rows);
  put(q, {5}, {1});
  CHECK(q.dequeue_many(0)[0].dims == extents{0, 0});
  CHECK(values_of<float>(q.dequeue()[0]) == list{1, 2});
  q.close();
  const datum left = q.dequeue_up_to(7);
  CHECK(left[0].dims == extents{2, 2});
  CHECK(values_of<float>(left[0]) == list{3, 4, 5, 0});
}

TEST_CASE("padding_fifo_queue: a dequeue_many that waits gathers, and gives back when the queue closes short") {
  padding_fifo_queue q(2, {float32}, {{any_extent}});
  queue_call many([&] { q.dequeue_many(5); });
  for (const list& l : {list{1}, list{2, 2}, list{3, 3, 3}}) put(q, l, {static_cast<std::int64_t>(l.size())});
  until_pending(q, 0, 1);
  q.close();
  CHECK(many.join() == status::out_of_range);
  CHECK(q.size() == 3);  // as before it came, also beyond the capacity
  CHECK(values_of<float>(q.dequeue_many(3)[0]) == list{1, 0, 0, 2, 2, 0, 3, 3, 3});
}
