// Summaries: events a second that a training thread gets rid of, with and without a thread that writes; and what is in
// the file after close, counted. Each iteration is one scalar; the disk is a folder under $TMPDIR or /tmp.
#include <benchmark/benchmark.h>

#include <atomic>
#include <gradus/summary/histogram.hpp>
#include <gradus/summary/reader.hpp>
#include <gradus/summary/writer.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <thread>
#include <vector>

namespace {
using namespace gradus;

std::int64_t scalars_in(const std::string& path) {
  std::int64_t n = 0;
  record_reader records{file_source<posix>(posix{}, path)};
  std::vector<std::byte> payload;
  while (records.next(payload)) ++n;
  return n - 1;  // the version event
}

// Calls a scalar each; `lost` are those that were accepted and are not in the file: 0.
void add_scalars(benchmark::State& state, summary_writer_options options, int threads, std::int64_t each) {
  const testing::temp_dir dir;
  std::int64_t accepted = 0, rejected = 0, lost = 0;
  for (auto _ : state) {
    summary_writer<> log(dir.path(), options);
    std::atomic<std::int64_t> taken{0};
    const auto work = [&](int t) {
      const std::string tag = text("thread_", t, "/loss");
      std::int64_t n = 0;
      for (std::int64_t step = 0; step < each; ++step) n += log.add_scalar(tag, 0.5f, step);
      taken += n;
    };
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(work, t);
    work(0);
    for (auto& t : others) t.join();
    state.PauseTiming();
    log.close();
    accepted += taken;
    rejected += static_cast<std::int64_t>(log.rejected());
    lost += taken - scalars_in(log.path());
    posix{}.remove(log.path());
    state.ResumeTiming();
  }
  state.counters["accepted/s"] = benchmark::Counter(static_cast<double>(accepted), benchmark::Counter::kIsRate);
  state.counters["rejected"] = static_cast<double>(rejected);
  state.counters["lost"] = static_cast<double>(lost);
}

constexpr std::int64_t many = 1'000'000;
const summary_writer_options no_thread{.buffer_bytes = 1 << 20};
const summary_writer_options with_thread{.buffer_bytes = 1 << 20, .max_queue = 4 * many};
const summary_writer_options waiting{.buffer_bytes = 1 << 20, .max_queue = 100'000, .when_full = full_queue::block};

BENCHMARK_CAPTURE(add_scalars, no_thread, no_thread, 1, many)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(add_scalars, queue, with_thread, 1, many)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(add_scalars, queue_block, waiting, 1, many)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(add_scalars, queue_2_threads, with_thread, 2, many)->Unit(benchmark::kMillisecond)->UseRealTime();

void histogram(benchmark::State& state) {
  std::vector<float> x(static_cast<std::size_t>(state.range(0)));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(static_cast<int>(i * 7919 % 2001) - 1000) * 1e-3f;
  for (auto _ : state) benchmark::DoNotOptimize(histogram_summary("w", x));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(histogram)->Arg(100'000);

}  // namespace
