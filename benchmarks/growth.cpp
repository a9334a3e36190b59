// How a training step grows: with the batch, and with the layers, over two decades each. The counter, examples times
// layers in a second, should stay level once a step is more than its fixed cost.
#include <benchmark/benchmark.h>

#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/run/stepper.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include <cstring>

namespace {

using namespace gradus;
using interpreted = interpreted_model<cpu<fast>, ops<>, gating::op, false, true>;

void steps(benchmark::State& state, int layers, std::int64_t batch_size) {
  constexpr int width = 128;
  const auto build = [layers](graph& g) {
    const auto x = g.placeholder("x", {batch, width}), y = g.placeholder("y", {batch, width});
    value h = x;
    for (int i = 0; i < layers; ++i) h = relu(dense(h, {.units = width}));
    return model_spec{.loss = reduce_mean(square(h - y)), .metrics = {}, .predictions = {}};
  };
  const gradient_descent rule{.rate = 1e-3};
  stepper<interpreted, decltype(composed{rule}), cpu<fast>> s(interpreted{build}, composed{rule});
  s.allocate();
  s.initialize(1);
  auto& machine = s.template bound<mode::train>(batch_size);
  s.template placeholders<mode::train>([&](const placeholder_info& p) {
    auto* to = reinterpret_cast<float*>(machine.address(p.node));
    for (std::int64_t i = 0; i < batch_size * width; ++i) to[i] = static_cast<float>(i % 251) / 251.0f;
  });
  for (auto _ : state) s.train_step();
  state.counters["example_layers_per_second"] =
      benchmark::Counter(static_cast<double>(batch_size) * layers, benchmark::Counter::kIsIterationInvariantRate);
}

const bool registered = [] {
  for (const int layers : {1, 3, 10, 30, 100})
    benchmark::RegisterBenchmark(("growth/layers:" + std::to_string(layers)).c_str(),
                                 [layers](auto& s) { steps(s, layers, 32); });
  for (const int examples : {4, 13, 40, 130, 400})
    benchmark::RegisterBenchmark(("growth/batch:" + std::to_string(examples)).c_str(),
                                 [examples](auto& s) { steps(s, 8, examples); });
  return true;
}();

}  // namespace
