// The smallest program that learns: exclusive or, by plain gradient descent.
// boards: M0 too
// links no heap and no exceptions
// table: 2-8-1 (tanh), batch 4, plain gradient descent | `one_by_one`
// flash at most: m4f 5590, m3 6960
// ram at most: 540
// stack at most: 590
// instructions at most: 9550
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include <new>

#include "count.hpp"

#if !defined(GRADUS_TEST_UNCOUNTED)  // ThreadSanitizer brings its own
void* operator new(std::size_t) { board::leave(3); }
void operator delete(void*) noexcept {}
void operator delete(void*, std::size_t) noexcept {}
#endif

inline constexpr auto xor_model = [](gradus::graph& g) {
  using namespace gradus;
  const auto bits = g.placeholder("bits", {batch, 2}), label = g.placeholder("label", {batch, 1});
  const auto hidden = tanh(dense(bits, {.units = 8, .name = "hidden"}));
  const auto out = dense(hidden, {.units = 1, .name = "out"});
  return model_spec{.loss = reduce_mean(squared_difference(out, label)), .metrics = {}, .predictions = {{"out", out}}};
};

static auto trainer = gradus::make_static_stepper<xor_model>(
    gradus::static_batch<4>{}, gradus::gradient_descent{.rate = 0.3}, gradus::one_by_one{}, gradus::portable{});

int main() {
  const auto bits = trainer.input<"bits">();
  const auto label = trainer.input<"label">();
  for (unsigned i = 0; i < 4; ++i) {
    bits[2 * i] = i < 2 ? -1.0f : 1.0f, bits[2 * i + 1] = i % 2 == 0 ? -1.0f : 1.0f;
    label[i] = bits[2 * i] == bits[2 * i + 1] ? 0.0f : 1.0f;
  }
  trainer.initialize(42);
  board::hash losses;
  constexpr int steps = 300;
  for (int i = 0; i < steps; ++i) {
    const board::instructions count;
    trainer.step();
    if (i + 1 == steps) count.say();
    losses.add(trainer.loss());
  }
  board::say("losses", losses.word);
  bool learned = true;
  const auto out = trainer.predict<"out">();
  for (unsigned i = 0; i < 4; ++i) {
    board::say("out", out[i]);
    learned = learned && (out[i] > 0.5f) == (label[i] > 0.5f);
  }
  board::say_stack();
  return learned ? 0 : 1;
}
