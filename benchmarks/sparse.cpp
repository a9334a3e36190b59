// Models of many rows of which a step touches few: logistic regression on 39 hashed features of 2^20 and on 50 of 2^22,
// and bags of 26 rows of an embedding of 1,000,000 x 32, each with sparse updates. The forward pass is the program's
// own loop, the update an updater's. "graph/" is the same model as users write it: sparse_linear or sparse_embedding in
// a model that is compiled, and a stepper. "hand/" is the yardstick of 2^22: what one writes for this model alone.
#include "training.hpp"

#include <gradus/ops/embedding.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/rules/adagrad.hpp>
#include <gradus/update/rules/ftrl.hpp>

#include <cmath>

namespace {

using namespace training;

struct wide_stream {
  std::uint64_t state = 0x9E3779B97F4A7C15u;
  std::uint64_t next() {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
  }
};

struct click_log {
  static constexpr std::size_t features = 39, table_size = std::size_t{1} << 20;
};
struct wide_log {
  static constexpr std::size_t features = 50, table_size = std::size_t{1} << 22;
};

// Enough examples to touch the whole table.
template <class Log>
struct examples {
  static constexpr std::size_t features = Log::features, table_size = Log::table_size;
  std::size_t batch_size, batches, at = 0;
  std::vector<std::int32_t> rows;
  std::vector<float> labels;

  explicit examples(std::size_t b)
      : batch_size(b),
        batches(std::max<std::size_t>(64, 65536 / b)),
        rows((b * batches + 1) * features),
        labels(b * batches) {
    wide_stream random;
    for (auto& row : rows) row = static_cast<std::int32_t>(random.next() & (table_size - 1));
    for (auto& y : labels) y = static_cast<float>(random.next() & 1);
  }
  const std::int32_t* next_rows() const { return rows.data() + at * batch_size * features; }
  const float* next_labels() const { return labels.data() + at * batch_size; }
  void advance() { at = at + 1 == batches ? 0 : at + 1; }
};

void count_examples(benchmark::State& state, std::size_t batch_size) {
  state.counters["examples_per_second"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * static_cast<double>(batch_size), benchmark::Counter::kIsRate);
}

template <class Log, class Rule>
void regression(benchmark::State& state, std::size_t batch_size, Rule rule) {
  constexpr std::size_t features = Log::features, table_size = Log::table_size;
  const subnormal_scope here(subnormal_mode::flush);
  examples<Log> data(batch_size);
  aligned_buffer memory(table_size * sizeof(float));
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
  count_examples(state, batch_size);
}

template <class Log>
constexpr auto linear = [](graph& g) {
  const auto ids = g.placeholder("ids", {batch, static_cast<int>(Log::features)}, int32);
  const auto y = g.placeholder("y", {batch});
  const auto logits = reshape(sparse_linear(ids, {.num_buckets = static_cast<int>(Log::table_size)}), {batch});
  return model_spec{
      .loss = reduce_mean(sigmoid_cross_entropy_with_logits(logits, y)), .metrics = {}, .predictions = {}};
};

template <class Log, class Model, class Rule>
void regression_graph(benchmark::State& state, Model model, std::size_t batch_size, Rule rule) {
  const subnormal_scope here(subnormal_mode::flush);
  examples<Log> data(batch_size);
  stepper<Model, decltype(composed{rule}), cpu<fast>, serial, subnormals::flush> s(std::move(model), composed{rule});
  s.allocate();
  s.initialize(1);
  auto& m = s.template bound<mode::train>(static_cast<std::int64_t>(batch_size));
  std::byte *ids = nullptr, *y = nullptr;
  s.template placeholders<mode::train>(
      [&](const placeholder_info& p) { (p.type == int32 ? ids : y) = m.address(p.node); });
  for (auto _ : state) {
    std::memcpy(ids, data.next_rows(), batch_size * Log::features * sizeof(std::int32_t));
    std::memcpy(y, data.next_labels(), batch_size * sizeof(float));
    data.advance();
    s.train_step();
  }
  count_examples(state, batch_size);
}

// ---- the yardstick: logistic regression by Ftrl, written for nothing else. Values of a weight lie side by side or in
// arrays of their own. A row that comes twice in a batch is stepped twice, which is less work than to sum its
// gradients.
struct beside {
  struct cell {
    float w, n, z;
  };
  std::vector<cell> all;
  explicit beside(std::size_t n) : all(n) {}
  float& w(std::size_t i) { return all[i].w; }
  float& n(std::size_t i) { return all[i].n; }
  float& z(std::size_t i) { return all[i].z; }
  void prefetch(std::size_t i) { __builtin_prefetch(&all[i], 1); }
  void prefetch_slots(std::size_t) {}
};
struct apart {
  std::vector<float> ws, ns, zs;
  explicit apart(std::size_t n) : ws(n), ns(n), zs(n) {}
  float& w(std::size_t i) { return ws[i]; }
  float& n(std::size_t i) { return ns[i]; }
  float& z(std::size_t i) { return zs[i]; }
  void prefetch(std::size_t i) { __builtin_prefetch(&ws[i], 1); }
  void prefetch_slots(std::size_t i) { __builtin_prefetch(&ns[i], 1), __builtin_prefetch(&zs[i], 1); }
};
template <class Log, class Table>
void by_hand(benchmark::State& state, std::size_t batch_size, const ftrl& rule) {
  constexpr std::size_t features = Log::features, ahead = 32;
  const subnormal_scope here(subnormal_mode::flush);
  examples<Log> data(batch_size);
  Table table(Log::table_size);
  std::vector<float> error(batch_size);
  const float inverse_rate = static_cast<float>(1 / *rule.rate), l1 = static_cast<float>(rule.l1),
              l2 = static_cast<float>(rule.l2), beta = static_cast<float>(rule.beta);
  const std::size_t n = batch_size * features;
  for (auto _ : state) {
    const std::int32_t* const rows = data.next_rows();
    const float* const labels = data.next_labels();
    data.advance();
    for (std::size_t r = 0; r < batch_size; ++r) {
      float sum = 0;
      for (std::size_t f = 0; f < features; ++f) {
        const std::size_t i = r * features + f;
        if (i + ahead < n) table.prefetch(static_cast<std::size_t>(rows[i + ahead]));
        if (n < 4 * ahead) table.prefetch_slots(static_cast<std::size_t>(rows[i]));
        sum += table.w(static_cast<std::size_t>(rows[i]));
      }
      error[r] = (1 / (1 + std::exp(-sum)) - labels[r]) / static_cast<float>(batch_size);
    }
    for (std::size_t i = 0, r = 0; i < n; ++r)
      for (const std::size_t end = i + features; i < end; ++i) {
        if (i + ahead < n) {
          table.prefetch(static_cast<std::size_t>(rows[i + ahead]));
          table.prefetch_slots(static_cast<std::size_t>(rows[i + ahead]));
        }
        const auto at = static_cast<std::size_t>(rows[i]);
        float &w = table.w(at), &sums = table.n(at), &z = table.z(at);
        const float g = error[r], before = std::sqrt(sums), after = std::sqrt(sums += g * g);
        z += g - (after - before) * inverse_rate * w;
        w = std::abs(z) <= l1 ? 0 : (std::copysign(l1, z) - z) / ((after + beta) * inverse_rate + l2);
      }
  }
  count_examples(state, batch_size);
}

constexpr std::size_t rows = 1'000'000, width = 32, bags = 1024, per = 26, batch_count = 16;

std::vector<std::int32_t> drawn_rows() {
  wide_stream random;
  std::vector<std::int32_t> all(batch_count * bags * per);
  for (auto& row : all) row = static_cast<std::int32_t>(random.next() % rows);
  return all;
}

template <class Rule>
void embedding(benchmark::State& state, Rule rule) {
  const subnormal_scope here(subnormal_mode::flush);
  aligned_buffer memory(rows * width * sizeof(float));
  float* const table = reinterpret_cast<float*>(memory.data());
  std::fill_n(table, rows * width, 0.01f);
  const std::vector<std::int32_t> all = drawn_rows();
  aligned_buffer sums(bags * width * sizeof(float));
  float* const out = reinterpret_cast<float*>(sums.data());
  updater u{rule};
  u.track("table", tensor_view{float32, {rows, width}, memory.data()});
  u.reserve_rows(bags * per);
  std::size_t at = 0;
  for (auto _ : state) {
    const std::int32_t* const row = all.data() + at * bags * per;
    at = (at + 1) % batch_count;
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

// The gradient of half the sum of squares is what the loop above gives its updater: the bag itself.
constexpr auto bag = [](graph& g) {
  const auto ids = g.placeholder("ids", {batch, static_cast<int>(per)}, int32);
  const auto sums = sparse_embedding(ids, {.num_buckets = static_cast<int>(rows),
                                           .dimension = static_cast<int>(width),
                                           .combiner = combiner::sum,
                                           .initializer = constant_initializer(0.01f)});
  return model_spec{.loss = l2_loss(sums), .metrics = {}, .predictions = {}};
};

template <class Model, class Rule>
void embedding_graph(benchmark::State& state, Model model, Rule rule) {
  const subnormal_scope here(subnormal_mode::flush);
  const std::vector<std::int32_t> all = drawn_rows();
  stepper<Model, decltype(composed{rule}), cpu<fast>, serial, subnormals::flush> s(std::move(model), composed{rule});
  s.allocate();
  s.initialize(1);
  auto& m = s.template bound<mode::train>(bags);
  std::byte* ids = nullptr;
  s.template placeholders<mode::train>([&](const placeholder_info& p) { ids = m.address(p.node); });
  std::size_t at = 0;
  for (auto _ : state) {
    std::memcpy(ids, all.data() + at * bags * per, bags * per * sizeof(std::int32_t));
    at = (at + 1) % batch_count;
    s.train_step();
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

const auto registered = [] {
  add("W3/e_sparse_lr_b1_adagrad", [](auto& s) { regression<click_log>(s, 1, ada); });
  add("W3/e_sparse_lr_b1_ftrl", [](auto& s) { regression<click_log>(s, 1, proximal); });
  add("W3/e_sparse_lr_b512_adagrad", [](auto& s) { regression<click_log>(s, 512, ada); });
  add("W3/e_sparse_lr_b512_ftrl", [](auto& s) { regression<click_log>(s, 512, proximal); });
  using click_model = compiled<linear<click_log>>;
  add("graph/W3/e_sparse_lr_b1_adagrad", [](auto& s) { regression_graph<click_log>(s, click_model{}, 1, ada); });
  add("graph/W3/e_sparse_lr_b1_ftrl", [](auto& s) { regression_graph<click_log>(s, click_model{}, 1, proximal); });
  add("graph/W3/e_sparse_lr_b512_adagrad", [](auto& s) { regression_graph<click_log>(s, click_model{}, 512, ada); });
  add("graph/W3/e_sparse_lr_b512_ftrl", [](auto& s) { regression_graph<click_log>(s, click_model{}, 512, proximal); });
  using wide_model = compiled<linear<wide_log>>;
  for (const std::size_t b : {1, 128, 512}) {
    const std::string name = "sparse_lr_2^22x50_b" + std::to_string(b) + "_ftrl";
    add(name.c_str(), [b](auto& s) { regression<wide_log>(s, b, proximal); });
    add(("graph/" + name).c_str(), [b](auto& s) { regression_graph<wide_log>(s, wide_model{}, b, proximal); });
    add(("hand/" + name).c_str(), [b](auto& s) { by_hand<wide_log, beside>(s, b, proximal); });
    add(("hand_apart/" + name).c_str(), [b](auto& s) { by_hand<wide_log, apart>(s, b, proximal); });
  }
  add("W4/embedding_1Mx32_b1024x26_adagrad", [](auto& s) { embedding(s, ada); });
  add("graph/W4/embedding_1Mx32_b1024x26_adagrad", [](auto& s) { embedding_graph(s, compiled<bag>{}, ada); });
  return true;
}();

}  // namespace
