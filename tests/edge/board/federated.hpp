// What every board of federated.cpp and of the rounds of eight learns: a part of what all of them know together.
#pragma once
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/rules/momentum.hpp>

#include "../../../examples/starter/board/board.hpp"

namespace federated {

inline constexpr auto mlp = [](gradus::graph& g) {
  using namespace gradus;
  const auto x = g.placeholder("x", {batch, 8}), y = g.placeholder("y", {batch, 1});
  const auto out = dense(tanh(dense(x, {.units = 16, .name = "hidden"})), {.units = 1, .name = "out"});
  return model_spec{.loss = reduce_mean(squared_difference(out, y)), .metrics = {}, .predictions = {{"out", out}}};
};
// A trainer of one of them, or of the server.
[[gnu::always_inline]] inline auto make_trainer() {
  return gradus::make_static_stepper<mlp>(gradus::static_batch<8>{}, gradus::momentum{.rate = 0.05},
                                          gradus::portable{});
}

// 12 steps of the round on examples of which a board sees a corner: its own feature is large.
template <class Trainer>
void learn(Trainer& trainer, std::uint32_t board, std::uint32_t round) {
  gradus::random_stream stream{.seed = 100 * board + round};
  for (int step = 0; step < 12; ++step) {
    const auto x = trainer.template input<"x">();
    const auto y = trainer.template input<"y">();
    for (float& v : x) v = gradus::uniform_float(stream.word()) * 2 - 1;  // exact
    for (std::size_t k = 0; k < y.size(); ++k) {
      x[8 * k + board % 8] += 1;
      y[k] = x[8 * k] * x[8 * k + 1] < 0 ? -1.0f : 1.0f;
    }
    trainer.step();
  }
}

// What becomes of the eight: one dies in a round, one has a number that is NaN in another.
inline constexpr std::uint32_t rounds = 20;
constexpr bool is_dead(std::uint32_t board, std::uint32_t round) { return board == 5 && round >= 8; }
constexpr bool is_finite(std::uint32_t board, std::uint32_t round) { return board != 6 || round != 5; }
constexpr std::uint32_t examples_of(std::uint32_t board) { return 96 + board; }

}  // namespace federated
