// Matrix products, one thread: the extents compiled in, or ("interpreted/") read from the signature by one kernel for
// all. Names and shapes are those of other libraries' benchmarks, m x n x k; NN, TN and NT say what is transposed.
#include <benchmark/benchmark.h>

#include <gradus/cpu/matmul.hpp>

#include <string>
#include <vector>

namespace {

using namespace gradus;

struct alignas(64) line {  // tensors begin at one
  float at[16];
};
struct operands {
  std::vector<line> a, b, c;
  std::byte* args[3];

  explicit operands(const detail::signature& s) {
    const auto lines = [&](int x, int y) {
      return (static_cast<std::size_t>(s.dims[0]) * static_cast<std::size_t>(s.dims[x]) *
                  static_cast<std::size_t>(s.dims[y]) +
              15) /
             16;
    };
    a.resize(lines(1, 2)), b.resize(lines(2, 3)), c.resize(lines(1, 3));
    std::uint32_t state = 1;
    for (auto* v : {&a, &b})
      for (line& l : *v)
        for (float& x : l.at)
          state = state * 1664525u + 1013904223u, x = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
    args[0] = reinterpret_cast<std::byte*>(c.data());
    args[1] = reinterpret_cast<std::byte*>(a.data());
    args[2] = reinterpret_cast<std::byte*>(b.data());
  }
};
void report(benchmark::State& state, const detail::signature& s) {
  const double flops = 2.0 * s.dims[0] * s.dims[1] * s.dims[2] * s.dims[3];
  state.counters["GFLOP/s"] =
      benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}
template <detail::signature Signature>
void compiled(benchmark::State& state) {
  operands o(Signature);
  for (auto _ : state) {
    op_kernel<&cards::matmul>::run<fast>(detail::fixed<Signature>{1, 1}, o.args);
    benchmark::ClobberMemory();
  }
  report(state, Signature);
}
void interpreted(benchmark::State& state, const detail::signature& s) {
  operands o(s);
  for (auto _ : state) {
    op_kernel<&cards::matmul>::run<fast>(detail::dynamic{1, 1, 0, 1, s}, o.args);
    benchmark::ClobberMemory();
  }
  report(state, s);
}
template <int Matrices, int M, int N, int K, bool TA = false, bool TB = false>
void add(const char* tag) {
  static constexpr detail::signature what{&cards::matmul, {float32, float32, float32}, {Matrices, M, K, N, TA, TB}, {}};
  std::string name = std::string("W1/") + tag + "/" + (TA ? "T" : "N") + (TB ? "T" : "N") + "_";
  if (Matrices > 1) name += std::to_string(Matrices) + "x";
  name += std::to_string(M) + "x" + std::to_string(N) + "x" + std::to_string(K);
  benchmark::RegisterBenchmark(name.c_str(), compiled<what>);
  benchmark::RegisterBenchmark(("interpreted/" + name).c_str(),
                               [](benchmark::State& state) { interpreted(state, what); });
}
template <int M>
void add_layers() {
  add<1, M, 256, 784>("mlp_fwd");
  add<1, M, 128, 784>("mlp_fwd");
  add<1, M, 128, 256>("mlp_fwd");
  add<1, M, 10, 256>("mlp_fwd");
  add<1, M, 10, 128>("mlp_fwd");
}
template <int M>
void add_gradients() {
  add<1, 784, 128, M, true, false>("mlp_dw");
  add<1, M, 256, 128, false, true>("mlp_dx");
}
// The three products of a layer [m, k] -> [m, n].
template <int M, int N, int K>
void add_step(const char* tag) {
  add<1, M, N, K>(tag);
  add<1, K, N, M, true, false>(tag);
  add<1, M, K, N, false, true>(tag);
}

const bool registered = [] {
  add<1, 16, 16, 16>("square");
  add<1, 32, 32, 32>("square");
  add<1, 64, 64, 64>("square");
  add<1, 128, 128, 128>("square");
  add<1, 256, 256, 256>("square");
  add<1, 512, 512, 512>("square");
  add<1, 1024, 1024, 1024>("square");
  add_layers<1>(), add_layers<32>(), add_layers<128>();
  add_gradients<32>(), add_gradients<128>();
  add_step<16, 64, 32>("W3b"), add_step<16, 64, 64>("W3b"), add_step<16, 4, 64>("W3b");
  add_step<32, 10, 128>("W3c");
  add_step<128, 512, 784>("W3d"), add_step<128, 256, 512>("W3d"), add_step<128, 10, 256>("W3d");
  add_step<1024, 384, 128>("W3g"), add_step<1024, 512, 128>("W3g"), add_step<1024, 128, 512>("W3g");
  add<64, 64, 64, 32, false, true>("attention");
  add<64, 64, 32, 64>("attention");
  add<64, 64, 32, 64, true, false>("attention");
  return true;
}();

}  // namespace
