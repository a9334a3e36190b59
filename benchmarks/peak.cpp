// What this machine reaches in the minute of another measurement, on one processor: fused multiply-adds on floats that
// never leave the registers, and memory read, and copied, in arrays of 64 MB. `compare` runs it before every program
// and writes both figures beside each row.
#include <benchmark/benchmark.h>

#include <gradus/cpu/number.hpp>
#include <gradus/tensor/tensor.hpp>

#include <cstring>

namespace {

using namespace gradus;

void fma_peak(benchmark::State& state) {
  using N = detail::pack<float, fast>;
  constexpr int chains = 12;  // more than latency times throughput: at most 5 times 2
  const N by(0.9999f), plus(0.0001f);
  N x[chains];
  for (int i = 0; i < chains; ++i) x[i] = N(0.001f * static_cast<float>(i + 1));
  constexpr int rounds = 4096;
  for (auto _ : state) {
    for (int r = 0; r < rounds; ++r)
#if defined(__GNUC__)
#pragma GCC unroll 12
#endif
      for (int i = 0; i < chains; ++i) x[i] = fma(x[i], by, plus);
    for (int i = 0; i < chains; ++i) benchmark::DoNotOptimize(x[i]);
  }
  state.counters["gflops"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * rounds * chains * 2 * N::width * 1e-9, benchmark::Counter::kIsRate);
  state.SetLabel(std::to_string(8 * sizeof(float) * N::width) + " bits");
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

const auto registered = {benchmark::RegisterBenchmark("peak/fma", fma_peak),
                         benchmark::RegisterBenchmark("peak/bandwidth", bandwidth)};

}  // namespace
