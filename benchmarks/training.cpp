// A whole training step of small models: feed a batch, gradients, update. The model is compiled, the batch size is not.
// The names are those of the same step in other libraries' benchmarks, so that benchmarks/compare can put them side by
// side; "interpreted/" is the same graph built by the program.
//
// Subnormal numbers are flushed to zero, as TensorFlow does on its threads: the moments of a dead unit decay into them,
// and each then costs a hundred times as much. "subnormal/" is the same step with them kept, the processor's default.
#include <benchmark/benchmark.h>

#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/run/stepper.hpp>
#include <gradus/update/adam.hpp>
#include <gradus/update/gradient_descent.hpp>

#include <cstring>
#include <vector>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace {

using namespace gradus;

// Inputs in [0, 1), the same for every run.
struct stream {
  std::uint64_t state = 0x9E3779B97F4A7C15u;
  std::uint32_t next() {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return static_cast<std::uint32_t>(state >> 40);
  }
};

// 64 batches of what the model asks for, kept outside it: a step copies one in, as an input pipeline does.
struct batches {
  struct column {
    std::byte* to;
    std::size_t bytes;
    std::vector<std::byte> all;
  };
  static constexpr std::size_t count = 64;
  std::vector<column> columns;
  std::size_t at = 0;

  template <class Stepper, class Machine>
  batches(Stepper& s, Machine& m, std::int64_t batch_size, std::uint32_t classes) {
    stream random;
    s.template placeholders<mode::train>([&](const placeholder_info& p) {
      const auto values = static_cast<std::size_t>(gradus::count(resolve(p.dims, batch_size)));
      column c{m.address(p.node), values * 4, std::vector<std::byte>(values * 4 * count)};
      for (std::size_t i = 0; i < values * count; ++i) {
        const float real = static_cast<float>(random.next()) * 0x1p-24f;
        const auto label = static_cast<std::int32_t>(random.next() % classes);
        if (p.type == int32)
          std::memcpy(c.all.data() + 4 * i, &label, 4);
        else
          std::memcpy(c.all.data() + 4 * i, &real, 4);
      }
      columns.push_back(std::move(c));
    });
  }
  void feed() {
    for (column& c : columns) std::memcpy(c.to, c.all.data() + at * c.bytes, c.bytes);
    at = (at + 1) % count;
  }
};

#if defined(__SSE2__)
class subnormals {
public:
  explicit subnormals(bool kept) : before_(_mm_getcsr()) { _mm_setcsr(kept ? before_ & ~0x8040u : before_ | 0x8040u); }
  ~subnormals() { _mm_setcsr(before_); }

private:
  unsigned before_;
};
#else
struct subnormals {
  explicit subnormals(bool) {}
  ~subnormals() {}
};
#endif

template <class Model, class Optimizer>
void steps(benchmark::State& state, Model model, Optimizer optimizer, std::int64_t batch_size, std::uint32_t classes,
           bool keep_subnormals = false) {
  const subnormals scope(keep_subnormals);
  stepper<Model, decltype(composed{optimizer}), cpu<fast>> s(std::move(model), composed{optimizer});
  s.allocate();
  s.initialize(1);
  auto& machine = s.template bound<mode::train>(batch_size);
  batches data(s, machine, batch_size, classes);
  const tensor_view loss = s.template output_of<mode::train>(output::loss);
  for (auto _ : state) {
    data.feed();
    s.train_step();
    benchmark::DoNotOptimize(*reinterpret_cast<const float*>(loss.data));
  }
  state.SetLabel(std::to_string(machine.call_count()) + " calls");
}

template <auto Build>
using compiled = compiled_model<Build, cpu<fast>, gating::op, false, true>;
using interpreted = interpreted_model<cpu<fast>, ops<>, gating::op, false, true>;

constexpr auto a = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 8}), y = g.placeholder("y", {batch, 1});
  const auto h = relu(dense(x, {.units = 16, .name = "hidden"}));
  return model_spec{
      .loss = reduce_mean(square(dense(h, {.units = 1, .name = "out"}) - y)), .metrics = {}, .predictions = {}};
};
constexpr auto b = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 32}), y = g.placeholder("y", {batch}, int32);
  const auto h = relu(dense(relu(dense(x, {.units = 64, .name = "first"})), {.units = 64, .name = "second"}));
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(dense(h, {.units = 4, .name = "out"}), y)),
                    .metrics = {},
                    .predictions = {}};
};
constexpr auto c = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 784}), y = g.placeholder("y", {batch}, int32);
  const auto h = relu(dense(x, {.units = 128, .name = "hidden"}));
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(dense(h, {.units = 10, .name = "out"}), y)),
                    .metrics = {},
                    .predictions = {}};
};

const gradient_descent slow{.rate = 1e-3}, fast_descent{.rate = 1e-2};
const adam moments{.rate = 1e-3};

const auto registered = {
    benchmark::RegisterBenchmark("W3/a_mlp_8-16-1_b1_sgd", [](auto& s) { steps(s, compiled<a>{}, slow, 1, 1); }),
    benchmark::RegisterBenchmark("W3/b_mlp_32-64-64-4_b16_adam",
                                 [](auto& s) { steps(s, compiled<b>{}, moments, 16, 4); }),
    benchmark::RegisterBenchmark("W3/c_mlp_784-128-10_b32_sgd",
                                 [](auto& s) { steps(s, compiled<c>{}, fast_descent, 32, 10); }),
    benchmark::RegisterBenchmark("subnormal/b_mlp_32-64-64-4_b16_adam",
                                 [](auto& s) { steps(s, compiled<b>{}, moments, 16, 4, true); }),
    benchmark::RegisterBenchmark("interpreted/a_mlp_8-16-1_b1_sgd",
                                 [](auto& s) { steps(s, interpreted{a}, slow, 1, 1); }),
    benchmark::RegisterBenchmark("interpreted/b_mlp_32-64-64-4_b16_adam",
                                 [](auto& s) { steps(s, interpreted{b}, moments, 16, 4); }),
    benchmark::RegisterBenchmark("interpreted/c_mlp_784-128-10_b32_sgd",
                                 [](auto& s) { steps(s, interpreted{c}, fast_descent, 32, 10); })};

}  // namespace
