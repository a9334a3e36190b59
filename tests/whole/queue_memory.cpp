// without sanitizers: it counts what operator new is asked for, and they bring their own
// compiled with: -O2 -Wno-mismatched-new-delete
// Once a queue has been full, elements of fixed shapes go in and out without an allocation: alone, in rows, and where a
// thread waits.
#include <gradus/session/queue/fifo_queue.hpp>
#include <gradus/session/queue/padding_fifo_queue.hpp>
#include <gradus/session/queue/priority_queue.hpp>
#include <gradus/session/queue/random_shuffle_queue.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

namespace {
std::atomic<long> allocations{0};
}  // namespace

void* operator new(std::size_t n) {
  ++allocations;
  if (void* p = std::malloc(n)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

using namespace gradus;

TEST_CASE("queues: nothing is allocated once they have been full") {
  const queue_options options{.shapes = {{3}, {}}};
  const std::vector<dtype> types{float32, int64};
  std::vector<any_queue> queues{fifo_queue(10, types, options), random_shuffle_queue(10, 2, types, options),
                                padding_fifo_queue(10, types, options.shapes), priority_queue(10, types, options)};
  for (any_queue& q : queues) {
    CAPTURE(q.name());
    const bool keyed = q.spec().kind == queue_kind::priority;
    const std::vector<std::int64_t> keys{3, 1, 2, 4, 0};
    const std::vector<float> floats(15, 1.5F);
    std::vector<const_tensor_view> one, rows;
    if (keyed) one.push_back({std::span(keys).first(1), extents{}}), rows.push_back(std::span(keys));
    one.push_back({std::span(floats).first(3), extents{3}}), rows.push_back({std::span(floats), extents{5, 3}});
    one.push_back({std::span(keys).first(1), extents{}}), rows.push_back(std::span(keys));
    datum out, many;
    const auto round = [&] {
      for (int i = 0; i < 3; ++i) q.enqueue(one);
      q.enqueue_many(rows);
      q.dequeue_many(5, many);
      q.dequeue(out);
      q.enqueue(one);
      q.dequeue_up_to(q.spec().min_after_dequeue == 0 ? 3 : 1, many);
      q.dequeue_many(q.size() - q.spec().min_after_dequeue, many);
    };
    for (int i = 0; i < 3; ++i) round();
    const long before = allocations;
    for (int i = 0; i < 100; ++i) round();
    CHECK(allocations == before);
  }
}

TEST_CASE("queues: nothing is allocated where a thread waits") {
  fifo_queue there(1, {int64}, {.shapes = {{}}}), back(1, {int64}, {.shapes = {{}}});
  constexpr std::int64_t warm = 100, all = 3000;
  std::thread other([&] {
    for (std::int64_t i = 0; i < all; ++i) back.enqueue(there.dequeue<std::int64_t>() + 1);
  });
  long before = 0;
  for (std::int64_t i = 0; i < all; ++i) {
    if (i == warm) before = allocations;
    there.enqueue(i);
    CHECK_UNARY(back.dequeue<std::int64_t>() == i + 1);
  }
  other.join();
  CHECK(allocations - before < all / 100);  // a place to wait at, where none was yet
}
