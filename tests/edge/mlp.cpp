// Two hidden layers and a clip by the global norm, which needs all gradients before the first update.
// links no heap and no exceptions
// table: 64-32-16-4 (relu), batch 8, Adam, clip by the global norm | none
// flash at most: m4f 30930, m3 33020
// ram at most: 48730
// stack at most: 3470
// instructions at most: 498000
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/rules/adam.hpp>

#include <new>

#include "count.hpp"

#if !defined(GRADUS_TEST_UNCOUNTED)  // ThreadSanitizer brings its own
void* operator new(std::size_t) { board::leave(3); }
void operator delete(void*) noexcept {}
void operator delete(void*, std::size_t) noexcept {}
#endif

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  const auto x = g.placeholder("x", {batch, 64}), label = g.placeholder("label", {batch}, int32);
  const auto h = relu(dense(x, {.units = 32, .name = "first"}));
  const auto logits = dense(relu(dense(h, {.units = 16, .name = "second"})), {.units = 4, .name = "logits"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, label)),
                    .metrics = {{"accuracy", accuracy(logits, label)}},
                    .predictions = {{"logits", logits}}};
};

static auto trainer = gradus::make_static_stepper<model>(gradus::static_batch<8>{}, gradus::adam{.rate = 0.005},
                                                         gradus::clip_by_global_norm{1.0}, gradus::portable{});

// Noise, and more of it in the quarter of the inputs that the label names.
static void draw(gradus::random_stream& stream) {
  const auto x = trainer.input<"x">();
  const auto label = trainer.input<"label">();
  for (std::size_t i = 0; i < label.size(); ++i) {
    label[i] = static_cast<std::int32_t>(stream.below(4));
    for (std::size_t k = 0; k < 64; ++k) {
      const bool more = k / 16 == static_cast<std::size_t>(label[i]);
      x[64 * i + k] = gradus::uniform_float(stream.word()) * (more ? 1.0f : 0.5f);
    }
  }
}

int main() {
  gradus::random_stream stream{.seed = 2026};
  trainer.initialize(7);
  board::hash losses, weights;
  constexpr int steps = 200;
  float first = 0, last = 0;
  for (int i = 0; i < steps; ++i) {
    draw(stream);
    const board::instructions count;
    trainer.step();
    if (i + 1 == steps) count.say();
    losses.add(trainer.loss()), losses.add(trainer.metric<"accuracy">());
    if (i < 8) first += trainer.loss();
    if (i >= steps - 8) last += trainer.loss();
  }
  board::say("losses", losses.word);
  board::say("last loss", trainer.loss());
  for (float w : trainer.variable<"first/kernel">()) weights.add(w);
  for (float w : trainer.variable<"second/kernel">()) weights.add(w);
  for (float w : trainer.variable<"logits/bias">()) weights.add(w);
  for (float p : trainer.predict<"logits">()) weights.add(p);
  board::say("weights and predictions", weights.word);
  board::say_stack();
  return last < 0.5f * first ? 0 : 1;
}
