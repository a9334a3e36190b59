// Learns on the board: XOR, in two kilobytes of memory inside one static object. No heap, no exceptions, no operating
// system.
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/ops/model.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/rules/adam.hpp>

#include "board.hpp"

// What the library refuses while it runs, as a step before initialize, ends here.
namespace gradus {
void on_error(status, const char* message) {
  board::say(message);
  board::leave(3);
}
}  // namespace gradus

inline constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  auto bits = g.placeholder("bits", {batch, 2});
  auto label = g.placeholder("label", {batch, 1});
  auto logit = dense(tanh(dense(bits, {.units = 8, .name = "hidden"})), {.units = 1, .name = "logit"});
  return model_spec{.loss = reduce_mean(sigmoid_cross_entropy_with_logits(logit, label)),
                    .metrics = {},
                    .predictions = {{"probability", sigmoid(logit)}}};
};

static auto trainer =
    gradus::make_static_stepper<model>(gradus::static_batch<4>{}, gradus::adam{.rate = 0.05}, gradus::portable{});

int main() {
  auto bits = trainer.input<"bits">();
  auto label = trainer.input<"label">();
  for (std::size_t i = 0; i < 4; ++i) {
    bits[2 * i] = i / 2 == 1 ? 1 : 0, bits[2 * i + 1] = i % 2 == 1 ? 1 : 0;
    label[i] = i == 1 || i == 2 ? 1 : 0;
  }
  trainer.initialize(42);
  for (int i = 0; i < 200; ++i) trainer.step();
  board::say("loss, as bits", trainer.loss());
  const auto p = trainer.predict<"probability">();
  bool learned = true;
  for (std::size_t i = 0; i < 4; ++i) learned = learned && (p[i] > 0.5f) == (label[i] > 0.5f);
  board::say(learned ? "learned\n" : "not learned\n");
  return learned ? 0 : 1;
}
