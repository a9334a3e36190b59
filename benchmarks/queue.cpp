// Queues: a scalar handed from one thread to another, both busy or one of them always waiting, and batches of 128
// elements of 3 KB through a queue, beside memcpy of the same bytes in and out.
#include <benchmark/benchmark.h>

#include <gradus/session/queue/fifo_queue.hpp>
#include <gradus/session/queue/random_shuffle_queue.hpp>

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

namespace {

using namespace gradus;

// In and out again on one thread: what the queue itself costs.
void scalar_one_thread(benchmark::State& state) {
  fifo_queue q(16, {float32}, {.shapes = {{}}});
  for (auto _ : state) {
    q.enqueue(1.0F);
    benchmark::DoNotOptimize(q.dequeue<float>());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(scalar_one_thread);

void mutex_one_thread(benchmark::State& state) {
  std::mutex m;
  for (auto _ : state)
    for (int i = 0; i < 2; ++i) {
      const std::lock_guard lock(m);
      benchmark::ClobberMemory();
    }
}
BENCHMARK(mutex_one_thread);

// A producer and a consumer as fast as they can; the argument is the capacity.
void scalar_both_busy(benchmark::State& state) {
  fifo_queue q(state.range(0), {float32}, {.shapes = {{}}});
  std::thread producer([q]() mutable {
    try {
      for (;;) q.enqueue(1.0F);
    } catch (const cancelled&) {
    }
  });
  for (auto _ : state) benchmark::DoNotOptimize(q.dequeue<float>());
  q.close(true);
  producer.join();
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(scalar_both_busy)->Arg(1)->Arg(16)->Arg(1024)->UseRealTime();

// There and back: each side waits for the other.
void scalar_parked(benchmark::State& state) {
  fifo_queue there(1, {float32}, {.shapes = {{}}}), back(1, {float32}, {.shapes = {{}}});
  std::thread other([=]() mutable {
    try {
      for (;;) back.enqueue(there.dequeue<float>());
    } catch (const out_of_range&) {
    }
  });
  for (auto _ : state) {
    there.enqueue(1.0F);
    benchmark::DoNotOptimize(back.dequeue<float>());
  }
  there.close();
  other.join();
  state.SetItemsProcessed(2 * state.iterations());
}
BENCHMARK(scalar_parked)->UseRealTime();

// The same by a condition variable and nothing else.
void bare_condition_variable(benchmark::State& state) {
  std::mutex mutex;
  std::condition_variable changed;
  int turn = 0;  // whose it is; 2: it is over
  const auto hand_to = [&](int next, int mine) {
    std::unique_lock lock(mutex);
    if (turn == 2) return false;
    turn = next;
    changed.notify_one();
    changed.wait(lock, [&] { return turn == mine || turn == 2; });
    return turn != 2;
  };
  std::thread other([&] {
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return turn != 0; });
    }
    while (hand_to(0, 1)) {
    }
  });
  for (auto _ : state) hand_to(1, 0);
  {
    const std::lock_guard lock(mutex);
    turn = 2;
  }
  changed.notify_one();
  other.join();
  state.SetItemsProcessed(2 * state.iterations());
}
BENCHMARK(bare_condition_variable)->UseRealTime();

constexpr std::int64_t rows = 128, row_floats = 768;  // 3 KB
constexpr std::size_t batch_bytes = rows * row_floats * 4;

// The same two copies by hand.
void memcpy_batch(benchmark::State& state) {
  const std::vector<std::byte> from(batch_bytes, std::byte{1});
  std::vector<std::byte> middle(batch_bytes), to(batch_bytes);
  for (auto _ : state) {
    std::memcpy(middle.data(), from.data(), batch_bytes);
    benchmark::ClobberMemory();
    std::memcpy(to.data(), middle.data(), batch_bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(batch_bytes));
}
BENCHMARK(memcpy_batch);

void many(benchmark::State& state, any_queue q) {
  const std::vector<float> from(rows * row_floats, 1.0F);
  const const_tensor_view list[] = {{std::span<const float>(from), {rows, row_floats}}};
  datum to;
  for (auto _ : state) {
    q.enqueue_many(list);
    q.dequeue_many(rows, to);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(batch_bytes));
}
void many_fifo(benchmark::State& state) { many(state, fifo_queue(rows, {float32}, {.shapes = {{row_floats}}})); }
BENCHMARK(many_fifo);
void many_random_shuffle(benchmark::State& state) {
  many(state, random_shuffle_queue(rows, 0, {float32}, {.shapes = {{row_floats}}, .seed = 1}));
}
BENCHMARK(many_random_shuffle);

// Rows enqueued one at a time on one thread, batches dequeued on another.
void batches_of_another_thread(benchmark::State& state) {
  fifo_queue q(4 * rows, {float32}, {.shapes = {{row_floats}}});
  std::thread producer([q]() mutable {
    const std::vector<float> from(row_floats, 1.0F);
    const const_tensor_view list[] = {std::span<const float>(from)};
    try {
      for (;;) q.enqueue(list);
    } catch (const cancelled&) {
    }
  });
  datum to;
  for (auto _ : state) q.dequeue_many(rows, to);
  q.close(true);
  producer.join();
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(batch_bytes));
}
BENCHMARK(batches_of_another_thread)->UseRealTime();

}  // namespace
