// An optimizer of your own, from outside the library: qhm.hpp, under 25 lines of code. It is then a rule like any
// other: vectorized for dense and sparse gradients, in checkpoints by name, and at home in every policy. Grown in the
// open: the library's own conformance suite says what it still misses.
#include "qhm.hpp"

#include <cstdio>
#include <gradus/gradus.hpp>
#include <gradus/testing/conform.hpp>
#include <vector>

// y = 2 x0 - 3 x1 + 1, learned from its values.
inline constexpr auto line = [](gradus::graph& g) {
  using namespace gradus;
  auto x = g.placeholder("x", {batch, 2});
  auto y = g.placeholder("y", {batch, 1});
  return model_spec{.loss = reduce_mean(square(dense(x, {.units = 1, .name = "line"}) - y))};
};

int main() {
  const auto failures = gradus::testing::conform(qhm{.rate = 0.1});
  for (const auto& f : failures) std::printf("%s\n", f.c_str());
  std::printf("conform: %zu failures\n", failures.size());

  std::vector<float> x, y;
  gradus::random_stream random{1};
  for (int i = 0; i < 256; ++i) {
    const auto a = static_cast<float>(random.uniform()), b = static_cast<float>(random.uniform());
    x.insert(x.end(), {a, b}), y.push_back(2 * a - 3 * b + 1);
  }
  const auto data = [&] {
    return gradus::from_spans("x", std::span<const float>(x), gradus::extents{2}, "y", std::span<const float>(y),
                              gradus::extents{1});
  };
  auto trainer = gradus::make_trainer<line>(
      gradus::chain{gradus::weight_decay{1e-6, gradus::matrices{}}, qhm{.beta = 0.9}, gradus::lookahead{}},
      gradus::linear_warmup{.peak = 0.3, .warmup_steps = 50}.then(
          gradus::cosine_decay{.initial = 0.3, .decay_steps = 1000}),
      gradus::clip_by_global_norm{1.0}, gradus::exponential_moving_average{.decay = 0.9});
  trainer.train(data().repeat().batch(32), {.max_steps = 1000});
  const double loss = trainer.evaluate(data().batch(256))["loss"];
  std::printf("trained: loss %s 1e-6\n", loss < 1e-6 ? "below" : "not below");
  return failures.empty() && loss < 1e-6 ? 0 : 1;
}
