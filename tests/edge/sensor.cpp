// The network of train.cpp (8-16-1, tanh, batch 16, Adam) in the least memory: one example at a time, without doubles.
// boards: M0 too
// links no heap and no exceptions
// links no double
// table: 8-16-1 (tanh), batch 16, Adam | `one_by_one`, `float_constants`
// flash at most: m4f 8000, m3 9650
// ram at most: 3660
// stack at most: 940
// instructions at most: 94000
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/float_constants.hpp>
#include <gradus/update/rules/adam.hpp>

#include <new>

#include "count.hpp"

#if !defined(GRADUS_TEST_UNCOUNTED)  // ThreadSanitizer brings its own
void* operator new(std::size_t) { board::leave(3); }
void operator delete(void*) noexcept {}
void operator delete(void*, std::size_t) noexcept {}
#endif

inline constexpr auto mlp = [](gradus::graph& g) {
  using namespace gradus;
  const auto x = g.placeholder("x", {batch, 8}), y = g.placeholder("y", {batch, 1});
  const auto out = dense(tanh(dense(x, {.units = 16, .name = "hidden"})), {.units = 1, .name = "out"});
  return model_spec{.loss = reduce_mean(squared_difference(out, y)), .metrics = {}, .predictions = {{"out", out}}};
};

static auto trainer =
    gradus::make_static_stepper<mlp>(gradus::static_batch<16>{}, gradus::float_constants{gradus::adam{.rate = 0.01}},
                                     gradus::one_by_one{}, gradus::portable{});

int main() {
  gradus::random_stream stream{.seed = 2026};
  trainer.initialize(7);
  board::hash losses, weights;
  constexpr int steps = 600;
  for (int i = 0; i < steps; ++i) {
    const auto x = trainer.input<"x">();
    const auto y = trainer.input<"y">();
    for (float& v : x) v = gradus::uniform_float(stream.word()) * 2 - 1;  // exact
    for (std::size_t k = 0; k < y.size(); ++k) y[k] = x[8 * k] * x[8 * k + 1] < 0 ? -1.0f : 1.0f;
    const board::instructions count;
    trainer.step();
    if (i + 1 == steps) count.say();
    losses.add(trainer.loss());
  }
  for (float w : trainer.variable<"hidden/kernel">()) weights.add(w);
  for (float w : trainer.variable<"out/kernel">()) weights.add(w);
  board::say("losses", losses.word);
  board::say("last loss", trainer.loss());
  board::say("weights", weights.word);
  board::say_stack();
  return trainer.loss() < 0.5f ? 0 : 1;
}
