// What this machine reaches in the minute of another measurement (yardstick.hpp), as rows of Google Benchmark: fused
// multiply-adds on one processor and on two at once, numbers read and written in each cache and in memory, and memory
// copied, in arrays of 64 MB. `compare` runs the first and the last before every program and writes both figures beside
// each row.
#include "yardstick.hpp"

#include <benchmark/benchmark.h>

#include <cstring>

namespace {

using namespace gradus;

void fma_peak(benchmark::State& state) {
  constexpr int rounds = 4096;
  for (auto _ : state) yardstick::fmas<yardstick::all_chains>(rounds);
  state.counters["gflops"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * rounds * yardstick::all_chains * yardstick::fma_flops * 1e-9,
      benchmark::Counter::kIsRate);
  state.SetLabel(std::to_string(32 * yardstick::number::width) + " bits");
}
void fma_together(benchmark::State& state) {
  double rates = 0;
  for (auto _ : state) rates += yardstick::fma_peak_of(2);
  state.counters["gflops"] = rates / static_cast<double>(state.iterations());
}

void rewrite(benchmark::State& state, yardstick::level l) {
  static yardstick::memories all;
  const int rounds = static_cast<int>(std::max<std::size_t>(1, (std::size_t{2} << 20) / all.bytes(l)));
  for (auto _ : state) all.rewrite(l, rounds);
  state.counters["effective_bandwidth"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * rounds * 2 * static_cast<double>(all.bytes(l)) * 1e-9,
      benchmark::Counter::kIsRate);
  state.SetLabel(std::to_string(all.bytes(l) >> 10) + " KB");
}

constexpr std::size_t bytes = std::size_t{64} << 20;

void bandwidth(benchmark::State& state) {
  aligned_buffer from(bytes), to(bytes);
  std::memset(from.data(), 1, bytes);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), bytes);
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
  state.counters["effective_bandwidth"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * 2 * static_cast<double>(bytes) * 1e-9, benchmark::Counter::kIsRate);
}

const bool registered = [] {
  benchmark::RegisterBenchmark("peak/fma", fma_peak);
  benchmark::RegisterBenchmark("peak/bandwidth", bandwidth);
  benchmark::RegisterBenchmark("peak/fma_two_at_once", fma_together)->UseRealTime();
  for (int l = 0; l < yardstick::levels; ++l)
    benchmark::RegisterBenchmark((std::string("peak/rewrite_") + yardstick::name_of(l)).c_str(), rewrite,
                                 static_cast<yardstick::level>(l));
  return true;
}();

}  // namespace
