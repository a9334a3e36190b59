// A small convolutional network for the board programs that say what its memory is, with and without policies.
#pragma once
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/rules/adam.hpp>

#include <new>

#include "count.hpp"

#if !defined(GRADUS_TEST_UNCOUNTED)  // ThreadSanitizer brings its own
void* operator new(std::size_t) { board::leave(3); }
void operator delete(void*) noexcept {}
void operator delete(void*, std::size_t) noexcept {}
#endif

// 16x16x1: 8 filters of 3x3, relu, a pool of 2x2, 4 classes.
inline constexpr auto cnn = [](gradus::graph& g) {
  using namespace gradus;
  const auto x = g.placeholder("x", {batch, 16, 16, 1}), label = g.placeholder("label", {batch}, int32);
  auto h = relu(conv2d(x, {.filters = 8, .kernel_size = 3, .padding = padding::same, .name = "conv"}));
  h = max_pool(h, {.pool_size = 2, .strides = 2});
  const auto logits = dense(reshape(h, {batch, 8 * 8 * 8}), {.units = 4, .name = "logits"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, label)),
                    .metrics = {{"accuracy", accuracy(logits, label)}},
                    .predictions = {{"logits", logits}}};
};

// Noise, and a bright square in the quarter that the label names.
template <class Trainer>
void draw(Trainer& trainer, gradus::random_stream& stream) {
  const auto x = trainer.template input<"x">();
  const auto label = trainer.template input<"label">();
  for (std::size_t i = 0; i < label.size(); ++i) {
    label[i] = static_cast<std::int32_t>(stream.below(4));
    const std::size_t top = static_cast<std::size_t>(label[i] / 2) * 8 + stream.below(5),
                      left = static_cast<std::size_t>(label[i] % 2) * 8 + stream.below(5);
    for (std::size_t r = 0; r < 16; ++r)
      for (std::size_t c = 0; c < 16; ++c) {
        const bool bright = r >= top && r < top + 4 && c >= left && c < left + 4;
        x[256 * i + 16 * r + c] = gradus::uniform_float(stream.word()) * 0.5f + (bright ? 0.5f : 0.0f);
      }
  }
}

// Trains, says losses, metrics, predictions and weights as bits, and gives 0 if the loss has become less than half.
template <class Trainer>
int learn(Trainer& trainer, int steps) {
  gradus::random_stream stream{.seed = 2026};
  trainer.initialize(7);
  board::hash losses, weights;
  float first = 0, last = 0;
  for (int i = 0; i < steps; ++i) {
    draw(trainer, stream);
    const board::instructions count;
    trainer.step();
    if (i + 1 == steps) count.say();
    losses.add(trainer.loss());
    losses.add(trainer.template metric<"accuracy">());
    if (i < 4) first += trainer.loss();
    if (i >= steps - 4) last += trainer.loss();
  }
  board::say("losses", losses.word);
  board::say("last loss", trainer.loss());
  for (float w : trainer.template variable<"conv/kernel">()) weights.add(w);
  for (float w : trainer.template variable<"conv/bias">()) weights.add(w);
  for (float w : trainer.template variable<"logits/kernel">()) weights.add(w);
  for (float p : trainer.template predict<"logits">()) weights.add(p);
  board::say("weights and predictions", weights.word);
  board::say_stack();
  return last < 0.5f * first ? 0 : 1;
}
