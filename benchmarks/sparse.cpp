// Models of many rows of which a step touches few: logistic regression on 39 hashed features of 2^20, and bags of 26
// rows of an embedding of 1,000,000 x 32, each with sparse updates. The forward pass is the program's own loop, the
// update an updater's; "graph/" is the same model as a compiled graph.
#include <benchmark/benchmark.h>

#include <cmath>
#include <gradus/cpu/device.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/adagrad.hpp>
#include <gradus/update/ftrl.hpp>
#include <vector>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace {

using namespace gradus;

struct stream {
  std::uint64_t state = 0x9E3779B97F4A7C15u;
  std::uint64_t next() {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
  }
};

constexpr std::size_t features = 39, table_size = std::size_t{1} << 20;

// Enough examples to touch the whole table.
struct examples {
  std::size_t batch_size, batches, at = 0;
  std::vector<std::int32_t> rows;
  std::vector<float> labels;

  explicit examples(std::size_t b)
      : batch_size(b),
        batches(std::max<std::size_t>(64, 65536 / b)),
        rows((b * batches + 1) * features),
        labels(b * batches) {
    stream random;
    for (auto& row : rows) row = static_cast<std::int32_t>(random.next() & (table_size - 1));
    for (auto& y : labels) y = static_cast<float>(random.next() & 1);
  }
  const std::int32_t* next_rows() const { return rows.data() + at * batch_size * features; }
  const float* next_labels() const { return labels.data() + at * batch_size; }
  void advance() { at = at + 1 == batches ? 0 : at + 1; }
};

template <class Rule>
void regression(benchmark::State& state, std::size_t batch_size, Rule rule) {
#if defined(__SSE2__)
  _mm_setcsr(_mm_getcsr() | 0x8040u);
#endif
  examples data(batch_size);
  buffer memory(table_size * sizeof(float));
  float* const weight = reinterpret_cast<float*>(memory.data());
  std::vector<float> error(batch_size);
  updater u{rule};
  u.track("w", tensor_view{float32, {static_cast<std::int64_t>(table_size), 1}, memory.data()});
  u.reserve_rows(batch_size * features);
  const auto examples_per_step = static_cast<std::int64_t>(batch_size);
  for (auto _ : state) {
    const std::int32_t* const rows = data.next_rows();
    const float* const labels = data.next_labels();
    data.advance();
    for (std::size_t r = 0; r < batch_size; ++r) {
      float sum = 0;
      for (std::size_t f = 0; f < features; ++f) {
        __builtin_prefetch(weight + rows[(r + 1) * features + f], 1);
        sum += weight[rows[r * features + f]];
      }
      error[r] = (1 / (1 + std::exp(-sum)) - labels[r]) / static_cast<float>(batch_size);
    }
    u.apply({{"w", indexed_slices{const_tensor_view{int32,
                                                    {examples_per_step, static_cast<std::int64_t>(features)},
                                                    reinterpret_cast<const std::byte*>(rows)},
                                  error}}});
  }
  state.counters["examples_per_second"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * static_cast<double>(batch_size), benchmark::Counter::kIsRate);
}

template <class Rule>
void embedding(benchmark::State& state, Rule rule) {
  constexpr std::size_t rows = 1'000'000, width = 32, bags = 1024, per = 26, batches = 16;
  buffer memory(rows * width * sizeof(float));
  float* const table = reinterpret_cast<float*>(memory.data());
  std::fill_n(table, rows * width, 0.01f);
  stream random;
  std::vector<std::int32_t> all(batches * bags * per);
  for (auto& row : all) row = static_cast<std::int32_t>(random.next() % rows);
  buffer sums(bags * width * sizeof(float));
  float* const out = reinterpret_cast<float*>(sums.data());
  updater u{rule};
  u.track("table", tensor_view{float32, {rows, width}, memory.data()});
  u.reserve_rows(bags * per);
  std::size_t at = 0;
  for (auto _ : state) {
    const std::int32_t* const row = all.data() + at * bags * per;
    at = (at + 1) % batches;
    for (std::size_t b = 0; b < bags; ++b) {
      float sum[width] = {};
      for (std::size_t f = 0; f < per; ++f) {
        const std::size_t q = b * per + f;
        if (q + 24 < bags * per)
          for (std::size_t j = 0; j < width; j += 16)
            __builtin_prefetch(table + static_cast<std::size_t>(row[q + 24]) * width + j);
        const float* const from = table + static_cast<std::size_t>(row[q]) * width;
        for (std::size_t j = 0; j < width; ++j) sum[j] += from[j];
      }
      std::copy_n(sum, width, out + b * width);
    }
    u.apply({{"table", indexed_slices{const_tensor_view{int32, {bags, per}, reinterpret_cast<const std::byte*>(row)},
                                      const_tensor_view{float32, {bags, width}, sums.data()}}}});
  }
  state.counters["rows_per_second"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * bags * per, benchmark::Counter::kIsRate);
}

const adagrad ada{.rate = 1e-2, .initial_accumulator_value = 0.0, .epsilon = 1e-10};
const ftrl proximal{.rate = 0.05,
                    .initial_accumulator_value = 0.0,
                    .l1 = 1e-4,
                    .l2 = 1e-4,
                    .beta = 1.0,
                    .l2_convention = ftrl_l2::mcmahan};

const auto registered = {
    benchmark::RegisterBenchmark("W3/e_sparse_lr_b1_adagrad", [](auto& s) { regression(s, 1, ada); }),
    benchmark::RegisterBenchmark("W3/e_sparse_lr_b1_ftrl", [](auto& s) { regression(s, 1, proximal); }),
    benchmark::RegisterBenchmark("W3/e_sparse_lr_b512_adagrad", [](auto& s) { regression(s, 512, ada); }),
    benchmark::RegisterBenchmark("W3/e_sparse_lr_b512_ftrl", [](auto& s) { regression(s, 512, proximal); }),
    benchmark::RegisterBenchmark("W4/embedding_1Mx32_b1024x26_adagrad", [](auto& s) { embedding(s, ada); })};

}  // namespace
