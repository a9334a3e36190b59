// A training step of one depthwise convolution (3x3, same, multiplier 1, plain gradient descent) on one image, beside
// loops by hand that do the same: the sums, the loss, the gradient of the filters, the update.
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include <benchmark/benchmark.h>

#include <vector>

namespace {

template <int Side, int Channels>
constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  const auto x = g.placeholder("x", {batch, Side, Side, Channels});
  const auto y = depthwise_conv2d(x, {.padding = padding::same, .use_bias = false});
  return model_spec{.loss = reduce_mean(square(y)), .metrics = {}, .predictions = {}};
};

template <int Side, int Channels>
void ours(benchmark::State& state) {
  static auto trainer = gradus::make_static_stepper<model<Side, Channels>>(gradus::static_batch<1>{},
                                                                           gradus::gradient_descent{.rate = 1e-3});
  trainer.initialize(1);
  for (float& v : trainer.template input<"x">()) v = 0.5f;
  for (auto _ : state) trainer.step();
  state.SetItemsProcessed(state.iterations() * 2 * 2 * 9 * Side * Side * Channels);  // FLOPs of both convolutions
}

template <int Side, int Channels>
void by_hand(benchmark::State& state) {
  std::vector<float> x(Side * Side * Channels, 0.5f), y(x.size()), w(9 * Channels, 0.1f), dw(w.size());
  for (auto _ : state) {
    std::fill(dw.begin(), dw.end(), 0.0f);
    float loss = 0;
    for (const bool backward : {false, true})
      for (int r = 0; r < Side; ++r)
        for (int c = 0; c < Side; ++c) {
          float* const out = &y[static_cast<std::size_t>((r * Side + c) * Channels)];
          if (!backward) std::fill_n(out, Channels, 0.0f);
          for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j) {
              const int row = r + i - 1, column = c + j - 1;
              if (row < 0 || row >= Side || column < 0 || column >= Side) continue;
              const float* const in = &x[static_cast<std::size_t>((row * Side + column) * Channels)];
              const std::size_t at = static_cast<std::size_t>((i * 3 + j) * Channels);
              if (backward)
                for (int k = 0; k < Channels; ++k) dw[at + static_cast<std::size_t>(k)] += in[k] * out[k];
              else
                for (int k = 0; k < Channels; ++k) out[k] += in[k] * w[at + static_cast<std::size_t>(k)];
            }
          if (!backward)
            for (int k = 0; k < Channels; ++k) {
              loss += out[k] * out[k];
              out[k] *= 2.0f / static_cast<float>(Side * Side * Channels);
            }
        }
    benchmark::DoNotOptimize(loss);
    for (std::size_t i = 0; i < w.size(); ++i) w[i] -= 1e-3f * dw[i];
    benchmark::DoNotOptimize(w.data());
  }
  state.SetItemsProcessed(state.iterations() * 2 * 2 * 9 * Side * Side * Channels);
}

}  // namespace

BENCHMARK(ours<14, 64>)->Name("depthwise/14x14x64/ours");
BENCHMARK(by_hand<14, 64>)->Name("depthwise/14x14x64/by_hand");
BENCHMARK(ours<28, 24>)->Name("depthwise/28x28x24/ours");
BENCHMARK(by_hand<28, 24>)->Name("depthwise/28x28x24/by_hand");
BENCHMARK(ours<112, 32>)->Name("depthwise/112x112x32/ours");
BENCHMARK(by_hand<112, 32>)->Name("depthwise/112x112x32/by_hand");
