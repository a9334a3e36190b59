// A network learns XOR: the package's headers, and those of the libraries that were asked for, are found and work.
#include <cstdio>
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/ops/model.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/rules/adam.hpp>
#if defined(GRADUS_ZLIB)
#include <gradus/store/inflate.hpp>
#endif
#if defined(GRADUS_PROTOZERO)
#include <gradus/store/wire.hpp>
#endif
#if defined(GRADUS_STB)
#include <gradus/summary/image.hpp>
#endif
#if defined(TEST_XTENSOR)
#include <gradus/tensor/xtensor.hpp>
#endif
#if defined(TEST_CEREAL)
#include <gradus/codec/cereal.hpp>
#endif

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
  auto x = trainer.input<"bits">();
  auto y = trainer.input<"label">();
  for (std::size_t i = 0; i < 4; ++i) {
    x[2 * i] = i / 2 == 1 ? 1 : 0, x[2 * i + 1] = i % 2 == 1 ? 1 : 0;
    y[i] = i == 1 || i == 2 ? 1 : 0;
  }
  trainer.initialize(42);
  const auto loss = [] {
    trainer.step();
    return static_cast<double>(trainer.loss());
  };
  const double first = loss();
  double last = first;
  for (int i = 1; i < 200; ++i) last = loss();
#if defined(GRADUS_ZLIB)
  std::printf("zlib %s\n", zlibVersion());
#endif
  std::printf("loss %a\n", last);  // every bit of it
  return last < first / 4 ? 0 : 1;
}
