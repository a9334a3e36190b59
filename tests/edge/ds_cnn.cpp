// The keyword model DS-CNN-S (Zhang et al. 2017, arXiv:1711.07128) on the board: its first convolution and three of its
// blocks are constants in 8 bits, the last block and the head are trained. The frozen weights are drawn by the
// compiler.
// a board with 256 KB of ram
// table: DS-CNN-S, batch 1, plain gradient descent | `release_gradients`, `recompute_marked`
// links no heap and no exceptions
// flash at most: m4f 50050, m3 51940
// ram at most: 148000
// stack at most: 3510
// instructions at most: 35631000
#include <gradus/cpu/frozen.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/pass/recompute.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include "count.hpp"

namespace {
namespace body {
// Uniform numbers of the variance 2 / fan in (He et al. 2015), which keeps the size of what passes a relu. Four codes
// of a word: clang counts what it computes.
template <class Weights>
constexpr Weights drawn(std::uint64_t seed) {
  constexpr int fan_in = Weights::size / Weights::channels;
  Weights w{};
  gradus::random_stream stream{.seed = seed};
  std::uint32_t word = 0;
  for (int i = 0; i < Weights::size; ++i, word >>= 8) {
    if (i % 4 == 0) word = stream.word();
    w.codes[i] = static_cast<std::int8_t>(static_cast<int>(word & 0xff) % 255 - 127);
  }
  for (float& s : w.scales) s = static_cast<float>(gradus::detail::root(6.0 / fan_in) / 127);
  return w;
}
using depthwise = gradus::frozen_depthwise_conv2d_weights<3, 3, 64>;
using pointwise = gradus::frozen_conv2d_weights<1, 1, 64, 64>;
constexpr auto conv = drawn<gradus::frozen_conv2d_weights<10, 4, 1, 64>>(1);
constexpr auto depthwise1 = drawn<depthwise>(2), depthwise2 = drawn<depthwise>(3), depthwise3 = drawn<depthwise>(4);
constexpr auto pointwise1 = drawn<pointwise>(5), pointwise2 = drawn<pointwise>(6), pointwise3 = drawn<pointwise>(7);
}  // namespace body

constexpr auto ds_cnn = [](gradus::graph& g) {
  using namespace gradus;
  const auto x = g.placeholder("x", {batch, 49, 10, 1}), label = g.placeholder("label", {batch}, int32);
  const frozen_conv2d_options same{.padding = padding::same, .activation = relu};
  auto h = frozen_conv2d<body::conv>(x, {.strides = 2, .padding = padding::same, .activation = relu});
  h = frozen_conv2d<body::pointwise1>(frozen_depthwise_conv2d<body::depthwise1>(h, same), same);
  h = frozen_conv2d<body::pointwise2>(frozen_depthwise_conv2d<body::depthwise2>(h, same), same);
  h = frozen_conv2d<body::pointwise3>(frozen_depthwise_conv2d<body::depthwise3>(h, same), same);
  h = depthwise_conv2d(h, {.padding = padding::same, .name = "depthwise", .activation = relu});
  h = conv2d(h, {.filters = 64, .kernel_size = 1, .name = "pointwise", .activation = relu});
  const auto logits = dense(reduce_mean(h, {1, 2}), {.units = 12, .name = "logits"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, label)),
                    .metrics = {},
                    .predictions = {{"logits", logits}}};
};

auto trainer =
    gradus::make_static_stepper<ds_cnn>(gradus::static_batch<1>{}, gradus::gradient_descent{.rate = 0.2},
                                        gradus::release_gradients{}, gradus::recompute_marked{}, gradus::portable{});

// Noise, and a band of coefficients that is loud and quiet in turn; the label names the band and the time of a turn.
void draw(int label) {
  gradus::random_stream stream{.seed = static_cast<std::uint64_t>(label)};
  trainer.input<"label">()[0] = label;
  const auto x = trainer.input<"x">();
  for (int t = 0; t < 49; ++t)
    for (int k = 0; k < 10; ++k) {
      const bool loud = (t >> label % 4) % 2 == 0 && k / 3 == label / 4;
      x[static_cast<std::size_t>(10 * t + k)] = gradus::uniform_float(stream.word()) - 0.5f + (loud ? 8.0f : 0.0f);
    }
}
}  // namespace

int main() {
  trainer.initialize(7);
  board::hash losses, weights;
  float first = 0, last = 0;
  constexpr int steps = 60;
  for (int i = 0; i < steps; ++i) {
    draw(i % 12);
    const board::instructions count;
    trainer.step();
    if (i + 1 == steps) count.say();
    losses.add(trainer.loss());
    if (i < 12) first += trainer.loss();
    if (i >= steps - 12) last += trainer.loss();
  }
  board::say("losses", losses.word);
  board::say("last loss", trainer.loss());
  for (float w : trainer.variable<"depthwise/depthwise_kernel">()) weights.add(w);
  for (float w : trainer.variable<"pointwise/kernel">()) weights.add(w);
  for (float p : trainer.predict<"logits">()) weights.add(p);
  board::say("weights and predictions", weights.word);
  board::say_stack();
  return last < 0.95f * first ? 0 : 1;
}
