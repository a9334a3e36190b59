// Rules that work on numbers, each in a program of a board: no heap, no exceptions, whatever their settings are.
// boards: M0 too
// links no heap and no exceptions
// flash at most: m4f 51240, m3 53600
// ram at most: 5340
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/rules/adadelta.hpp>
#include <gradus/update/rules/adagrad.hpp>
#include <gradus/update/rules/adagrad_da.hpp>
#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/adamax.hpp>
#include <gradus/update/rules/adamw.hpp>
#include <gradus/update/rules/add_sign.hpp>
#include <gradus/update/rules/amsgrad.hpp>
#include <gradus/update/rules/ftrl.hpp>
#include <gradus/update/rules/gradient_descent.hpp>
#include <gradus/update/rules/lion.hpp>
#include <gradus/update/rules/momentum.hpp>
#include <gradus/update/rules/momentumw.hpp>
#include <gradus/update/rules/nadam.hpp>
#include <gradus/update/rules/power_sign.hpp>
#include <gradus/update/rules/proximal_adagrad.hpp>
#include <gradus/update/rules/proximal_gradient_descent.hpp>
#include <gradus/update/rules/rmsprop.hpp>

#include <new>

#include "../../examples/starter/board/board.hpp"

#if !defined(GRADUS_TEST_UNCOUNTED)  // ThreadSanitizer brings its own
void* operator new(std::size_t) { board::leave(3); }
void operator delete(void*) noexcept {}
void operator delete(void*, std::size_t) noexcept {}
#endif

inline constexpr auto line = [](gradus::graph& g) {
  using namespace gradus;
  const auto x = g.placeholder("x", {batch, 2}), y = g.placeholder("y", {batch, 1});
  return model_spec{.loss = reduce_mean(squared_difference(dense(x, {.units = 1, .name = "out"}), y)),
                    .metrics = {},
                    .predictions = {}};
};

// 30 steps towards y = x0 - 2 x1.
template <class Trainer>
void learn(const char* name, Trainer& trainer) {
  trainer.initialize(7);
  gradus::random_stream stream{.seed = 3};
  board::hash weights;
  for (int i = 0; i < 30; ++i) {
    const auto x = trainer.template input<"x">();
    const auto y = trainer.template input<"y">();
    for (float& v : x) v = gradus::uniform_float(stream.word()) * 2 - 1;
    for (std::size_t k = 0; k < y.size(); ++k) y[k] = x[2 * k] - 2 * x[2 * k + 1];
    trainer.step();
    for (const float w : trainer.template variable<"out/kernel">()) weights.add(w);
  }
  board::say(name, weights.word);
}
#define TRY(name, ...)                                                                                              \
  static auto name = gradus::make_static_stepper<line>(gradus::static_batch<4>{}, __VA_ARGS__, gradus::portable{}); \
  learn(#name, name)

int main() {
  TRY(adadelta, gradus::adadelta{.rate = 1});
  TRY(adagrad, gradus::adagrad{.rate = 0.1});
  TRY(adagrad_da, gradus::adagrad_da{.rate = 0.1});
  TRY(adam, gradus::adam{.rate = 0.01});
  TRY(adamax, gradus::adamax{.rate = 0.01});
  TRY(adamw, gradus::adamw{.rate = 0.01});
  TRY(add_sign, gradus::add_sign{.rate = 0.01});
  TRY(amsgrad, gradus::amsgrad{.rate = 0.01});
  TRY(ftrl, gradus::ftrl{.rate = 0.1});
  TRY(gradient_descent, gradus::gradient_descent{.rate = 0.1});
  TRY(lion, gradus::lion{.rate = 0.01});
  TRY(momentum, gradus::momentum{.rate = 0.05});
  TRY(nesterov, gradus::momentum{.rate = 0.05, .use_nesterov = true});
  TRY(momentumw, gradus::momentumw{.rate = 0.05, .weight_decay = 0.01});
  TRY(nadam, gradus::nadam{.rate = 0.01});
  TRY(power_sign, gradus::power_sign{.rate = 0.01});
  TRY(proximal_adagrad, gradus::proximal_adagrad{.rate = 0.1});
  TRY(proximal_gradient_descent, gradus::proximal_gradient_descent{.rate = 0.1});
  TRY(rmsprop, gradus::rmsprop{.rate = 0.01});
  return 0;
}
