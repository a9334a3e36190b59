// The smallest program that trains: 784-128-10, softmax, gradient descent, batch 32, on random numbers. It includes
// what it uses and nothing else. weigh.py beside it measures what it costs to compile, to ship and to start; it prints
// one line after its first step, and takes as many steps as it is told (1).
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include <cstdio>
#include <cstdlib>

namespace {

constexpr auto digits = [](gradus::graph& g) {
  using namespace gradus;
  const auto image = g.placeholder("image", {batch, 784}), label = g.placeholder("label", {batch}, int32);
  const auto hidden = relu(dense(image, {.units = 128, .name = "hidden"}));
  const auto logits = dense(hidden, {.units = 10, .name = "logits"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, label)), .metrics = {}, .predictions = {}};
};

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 1;
  static auto trainer =
      gradus::make_static_stepper<digits>(gradus::static_batch<32>{}, gradus::gradient_descent{.rate = 0.01});
  trainer.initialize(1);
  std::uint32_t state = 1;
  const auto next = [&state] { return (state = state * 1664525u + 1013904223u) >> 8; };
  for (float& x : trainer.input<"image">()) x = static_cast<float>(next()) * 0x1p-24f;
  for (std::int32_t& y : trainer.input<"label">()) y = static_cast<std::int32_t>(next() % 10);
  for (int i = 0; i < steps; ++i) {
    trainer.step();
    if (i == 0) {
      std::printf("first step %g\n", static_cast<double>(trainer.loss()));
      std::fflush(stdout);
    }
  }
}
