// LeNet of 5,994 parameters learns the demo's digits on the board, in 64 KB of ram. An image comes over the debugger's
// wire, a byte a pixel, goes through the model once, and is forgotten. The file digits.bin (board/digits_file.cpp)
// says how many there are: twenty in a default run, 10,000 in a whole one, after which 95 of 100 others must be known.
// table: LeNet, batch 1, plain gradient descent | `release_gradients`, `fused_pooling`
// links no heap and no exceptions
// flash at most: m4f 26050, m3 28250
// ram at most: 55580
// stack at most: 4080
// instructions at most: 4681000
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/train/fused_pooling.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include "count.hpp"
#include "host_file.hpp"

namespace {
constexpr auto lenet = [](gradus::graph& g) {
  using namespace gradus;
  const auto x = g.placeholder("x", {batch, 28, 28, 1}), label = g.placeholder("label", {batch}, int32);
  auto h = max_pool(relu(conv2d(x, {.filters = 8, .kernel_size = 5, .name = "conv1"})));
  h = max_pool(relu(conv2d(h, {.filters = 16, .kernel_size = 5, .name = "conv2"})));
  const auto logits = dense(reshape(h, {batch, 256}), {.units = 10, .name = "logits"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, label)),
                    .metrics = {},
                    .predictions = {{"logits", logits}}};
};
auto trainer =
    gradus::make_static_stepper<lenet>(gradus::static_batch<1>{}, gradus::gradient_descent{.rate = 0.01},
                                       gradus::release_gradients{}, gradus::fused_pooling{}, gradus::portable{});

// The next image, and its label; -1 if there is none.
int show(board::host_file& digits) {
  std::uint8_t label = 0, row[28];
  if (!digits.read({&label, 1})) return -1;
  for (std::size_t y = 0; y < 28; ++y) {
    if (!digits.read(row)) return -1;
    for (std::size_t x = 0; x < 28; ++x) trainer.input<"x">()[28 * y + x] = static_cast<float>(row[x]) * (1.0f / 255);
  }
  return label;
}
std::uint32_t number(board::host_file& digits) {
  std::uint8_t b[4] = {};
  digits.read(b);
  return b[0] | static_cast<std::uint32_t>(b[1]) << 8 | static_cast<std::uint32_t>(b[2]) << 16;
}
}  // namespace

int main() {
  board::host_file digits("digits.bin");
  const std::uint32_t examples = number(digits), others = number(digits);
  board::hash losses, weights;
  trainer.initialize(7);
  for (std::uint32_t i = 0; i < examples; ++i) {
    const int label = show(digits);
    if (label < 0) return 1;
    trainer.input<"label">()[0] = label;
    const board::instructions count;
    trainer.step();
    if (i + 1 == examples) count.say();
    losses.add(trainer.loss());
  }
  std::uint32_t known = 0;
  for (std::uint32_t i = 0; i < others; ++i) {
    const int label = show(digits);
    if (label < 0) return 1;
    const auto scores = trainer.predict<"logits">();
    std::size_t best = 0;
    for (std::size_t k = 1; k < scores.size(); ++k)
      if (scores[k] > scores[best]) best = k;
    known += best == static_cast<std::size_t>(label) ? 1 : 0;
  }
  for (float w : trainer.variable<"conv1/kernel">()) weights.add(w);
  for (float w : trainer.variable<"conv2/kernel">()) weights.add(w);
  for (float w : trainer.variable<"logits/kernel">()) weights.add(w);
  board::say("losses", losses.word);
  board::say("weights", weights.word);
  board::say("known", known);
  if (examples == 0 || others == 0) return 1;
  board::say_stack();
  return examples < 10000 || known * 100 >= others * 95 ? 0 : 1;
}
