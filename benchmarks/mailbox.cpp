// Mailboxes: a message of 64 bytes handed from one thread to another, both busy, and 4 MB pushed to a shard that stages
// them, beside memcpy of the same bytes.
//
//   bench_mailbox --benchmark_repetitions=5
//
// Both need two processors that nobody else works on: with one, a hand-off is a change of threads.
#include <benchmark/benchmark.h>

#include <gradus/cluster/mailbox.hpp>
#include <gradus/cluster/protocol/parts.hpp>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

namespace {

using namespace gradus;
using namespace gradus::detail;

// A parameter of 64 bytes, as a worker that has few sends it.
struct letter {
  std::vector<float> values;
  std::vector<wire_slice> parts;
  protocol_message message;

  explicit letter(std::size_t floats, std::uint32_t from = 1) : values(floats, 1.0F) {
    parts = {{"w", float32, 0, std::as_bytes(std::span(values))}};
    message = {message_kind::push, from, 0, 1, 1, 0, {}, parts};
  }
};
constexpr auto look_at = [](const protocol_message& m) { benchmark::DoNotOptimize(m.parts.data()); };

// In and out again on one thread: what the mailbox itself costs.
void message_one_thread(benchmark::State& state) {
  mailbox box(task_system{});
  const letter one(16);
  for (auto _ : state) {
    box.put(one.message);
    box.take(look_at, never_due);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(message_one_thread);

// There and back, each side looking for the other's: an item is one way.
void message_there_and_back(benchmark::State& state) {
  mailbox there(task_system{}), back(task_system{});
  std::thread other([&] {
    const letter answer(16);
    while (there.take(look_at, never_due)) back.put(answer.message);
  });
  const letter one(16);
  for (auto _ : state) {
    there.put(one.message);
    back.take(look_at, never_due);
  }
  there.close();
  other.join();
  state.SetItemsProcessed(2 * state.iterations());
}
BENCHMARK(message_there_and_back)->UseRealTime();

// One puts, the other takes, both as fast as they can, at most 1024 apart.
void message_both_busy(benchmark::State& state) {
  mailbox box(task_system{});
  std::atomic<std::uint64_t> taken{0};
  std::atomic<bool> ends{false};
  std::thread other([&] {
    const letter one(16);
    for (std::uint64_t n = 0; !ends.load(std::memory_order_relaxed);)
      if (n - taken.load(std::memory_order_relaxed) < 1024)
        box.put(one.message), ++n;
      else
        relax();
  });
  std::uint64_t n = 0;
  for (auto _ : state) {
    box.take(look_at, never_due);
    taken.store(++n, std::memory_order_relaxed);
  }
  ends = true;
  other.join();
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(message_both_busy)->UseRealTime();

constexpr std::size_t floats = 1 << 20, bytes = floats * sizeof(float);  // 4 MB

void memcpy_4mb(benchmark::State& state) {
  const std::vector<float> from(floats, 1.0F);
  std::vector<float> to(floats);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}
BENCHMARK(memcpy_4mb);

// A worker lends its gradient, a shard on another thread stages it and says so.
void push_4mb(benchmark::State& state, void (mailbox::*put)(const protocol_message&)) {
  mailbox ps(task_system{}), worker(task_system{});
  std::thread other([&] {
    part_memory parts;
    while (ps.take(
        [&](const protocol_message& m) {
          const contribution_id id{0, m.incarnation, m.sequence};
          benchmark::DoNotOptimize(parts.stage(id, m.about, m.parts).memory.data());
          parts.release(id);
          worker.put({message_kind::kept, 0, 1, m.incarnation, m.sequence, 0, {}, {}});
        },
        never_due)) {
    }
  });
  const letter one(floats);
  for (auto _ : state) {
    (ps.*put)(one.message);
    worker.take(look_at, never_due);
  }
  ps.close();
  other.join();
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}
BENCHMARK_CAPTURE(push_4mb, lent, &mailbox::put_lent)->UseRealTime();
BENCHMARK_CAPTURE(push_4mb, copied, static_cast<void (mailbox::*)(const protocol_message&)>(&mailbox::put))
    ->UseRealTime();

}  // namespace
