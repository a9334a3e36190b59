// A small network learns on the board what it learns here: after every step the same loss, at the end the same weights,
// slots and predictions, bit for bit, in portable arithmetic. There is no heap to take from.
// boards: all
// table: 8-16-1 (tanh), batch 16, Adam | none
// links no heap and no exceptions
// flash at most: m4f 18340, m3 20930
// ram at most: 5660
// stack at most: 1120
// instructions at most: 65650
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/ops/model.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/rules/adam.hpp>

#include <new>

#include "count.hpp"

#if !defined(GRADUS_TEST_UNCOUNTED)  // ThreadSanitizer brings its own
void* operator new(std::size_t) { board::leave(3); }
void operator delete(void*) noexcept {}
void operator delete(void*, std::size_t) noexcept {}
#endif

// 8-16-1 with tanh: learns the product of the signs of two inputs, the others being noise.
inline constexpr auto mlp = [](gradus::graph& g) {
  using namespace gradus;
  auto x = g.placeholder("x", {batch, 8});
  auto y = g.placeholder("y", {batch, 1});
  auto hidden = tanh(dense(x, {.units = 16, .name = "hidden"}));
  auto out = dense(hidden, {.units = 1, .name = "out"});
  return model_spec{.loss = reduce_mean(squared_difference(out, y)), .metrics = {}, .predictions = {{"out", out}}};
};

static auto trainer =
    gradus::make_static_stepper<mlp>(gradus::static_batch<16>{}, gradus::adam{.rate = 0.01}, gradus::portable{});

static_assert(sizeof trainer < decltype(trainer)::memory_bytes + 260);  // docs/edge.md

static void draw(gradus::random_stream& stream) {
  const auto x = trainer.input<"x">();
  const auto y = trainer.input<"y">();
  for (auto& v : x) v = gradus::uniform_float(stream.word()) * 2 - 1;  // exact
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[8 * i] * x[8 * i + 1] < 0 ? -1.0f : 1.0f;
}

// The state in a hash, as a flash checkpoint would walk it. The bytes of each number from the lowest on, so that a
// big-endian machine says the same.
struct state_hash {
  board::hash hash;
  void tensor(std::string_view name, [[maybe_unused]] gradus::dtype type, const gradus::extents&,
              std::span<std::byte> bytes) {
    for (char c : name) hash.add(static_cast<std::uint32_t>(c));
    if constexpr (std::endian::native == std::endian::big)
      for (auto rest = bytes; !rest.empty(); rest = rest.subspan(gradus::size_of(type)))
        for (std::size_t i = gradus::size_of(type); i != 0; --i) hash.add(static_cast<std::uint32_t>(rest[i - 1]));
    else
      for (std::byte b : bytes) hash.add(static_cast<std::uint32_t>(b));
  }
  template <class T>
  void scalar(std::string_view name, T& value) {
    tensor(name, gradus::dtype_of<T>, {}, std::as_writable_bytes(std::span<T>(&value, 1)));
  }
};

int main() {
  gradus::random_stream stream{.seed = 2026};
  trainer.initialize(7);
  board::hash losses;
  float first = 0, last = 0;
  for (int i = 0; i < 600; ++i) {
    draw(stream);
    const board::instructions count;
    trainer.step();
    if (i + 1 == 600) count.say();
    losses.add(trainer.loss());
    if (i < 50) first += trainer.loss();
    if (i >= 550) last += trainer.loss();
  }
  board::say("losses", losses.word);
  board::say("last loss", trainer.loss());
  board::hash weights;
  for (float w : trainer.variable<"hidden/kernel">()) weights.add(w);
  for (float w : trainer.variable<"hidden/bias">()) weights.add(w);
  for (float w : trainer.variable<"out/kernel">()) weights.add(w);
  for (float w : trainer.variable<"out/bias">()) weights.add(w);
  board::say("weights", weights.word);
  state_hash state;
  trainer.remembers(state);
  board::say("state", state.hash.word);
  board::hash predictions;
  for (float p : trainer.predict<"out">()) predictions.add(p);
  board::say("predictions", predictions.word);
  board::say_stack();
  return last < 0.5f * first ? 0 : 1;
}
