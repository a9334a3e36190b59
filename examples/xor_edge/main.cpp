// The smallest trainer: a network learns XOR in about two kilobytes of memory, all of it inside one static object. No
// heap, no exceptions, no names looked up: docs/edge.md says how the same lines run on a microcontroller.
#include <cstdio>
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/ops/model.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/rules/adam.hpp>

inline constexpr auto xor_model = [](gradus::graph& g) {
  using namespace gradus;
  auto bits = g.placeholder("bits", {batch, 2});
  auto label = g.placeholder("label", {batch, 1});
  auto hidden = tanh(dense(bits, {.units = 8, .name = "hidden"}));
  auto logit = dense(hidden, {.units = 1, .name = "logit"});
  return model_spec{.loss = reduce_mean(sigmoid_cross_entropy_with_logits(logit, label)),
                    .metrics = {},
                    .predictions = {{"probability", sigmoid(logit)}}};
};

static auto trainer =
    gradus::make_static_stepper<xor_model>(gradus::static_batch<4>{}, gradus::adam{.rate = 0.05}, gradus::portable{});

int main() {
  const float bits[4][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
  auto x = trainer.input<"bits">();  // std::span<float, 8>: the memory that a step reads
  auto y = trainer.input<"label">();
  for (std::size_t i = 0; i < 4; ++i) x[2 * i] = bits[i][0], x[2 * i + 1] = bits[i][1], y[i] = bits[i][0] != bits[i][1];

  trainer.initialize(42);
  for (int i = 1; i <= 200; ++i) {
    trainer.step();
    if (i % 50 == 0) std::printf("step %d, loss %.4f\n", i, static_cast<double>(trainer.loss()));
  }
  auto p = trainer.predict<"probability">();
  bool learned = true;
  for (std::size_t i = 0; i < 4; ++i) {
    std::printf("%.0f xor %.0f: %.3f\n", static_cast<double>(x[2 * i]), static_cast<double>(x[2 * i + 1]),
                static_cast<double>(p[i]));
    learned = learned && (p[i] > 0.5f) == (y[i] > 0.5f);
  }
  std::printf("%zu bytes of tensors\n", trainer.memory_bytes);
  return learned ? 0 : 1;
}
