// without sanitizers: it trains for minutes there; train/trainer and input/idx run the same paths on less
// compiled with: -O3 -march=native
// costs: 600
// The example's drawings are hard enough to need a hidden layer: the same data, the same optimizer, the same number of
// steps, with and without one.
#include <gradus/gradus.hpp>

#include <doctest/doctest.h>

#include "../../examples/digits/draw.hpp"
#include "../../examples/digits/model.hpp"

namespace {

inline constexpr auto softmax_regression = [](gradus::graph& g) {
  using namespace gradus;
  auto image = g.placeholder("image", {batch, 28 * 28});
  auto label = g.placeholder("label", {batch}, int32);
  auto logits = dense(image, {.units = 10, .name = "logits"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, label)),
                    .metrics = {{"accuracy", accuracy(logits, label)}}};
};

// As the IDX reader gives them: 0 to 1, and int32.
struct images_and_labels {
  std::vector<float> image;
  std::vector<std::int32_t> label;
  images_and_labels(std::int64_t n, std::uint64_t seed) {
    const auto drawn = digits::draw_digits(n, seed);
    for (const auto byte : drawn.images) image.push_back(static_cast<float>(byte) / 255);
    label.assign(drawn.labels.begin(), drawn.labels.end());
  }
  auto all() const { return gradus::from_spans("image", image, gradus::extents{28 * 28}, "label", label); }
};

template <auto Model>
double accuracy_of(const images_and_labels& train, const images_and_labels& test, const auto& schedule,
                   std::int64_t steps) {
  auto trainer = gradus::make_trainer<Model>(gradus::adam{}, schedule, gradus::clip_by_global_norm{5.0},
                                             gradus::exponential_moving_average{.decay = 0.99});
  trainer.train(train.all().shuffle(20000).repeat().batch(128), {.max_steps = steps});
  const auto result = trainer.evaluate(test.all().batch(1000)),
             averaged = trainer.evaluate(test.all().batch(1000), {.use_averages = true});
  MESSAGE(steps, " steps: test accuracy ", result["accuracy"], ", of averages ", averaged["accuracy"]);
  return std::max(result["accuracy"], averaged["accuracy"]);
}

}  // namespace

TEST_CASE("a linear classifier stays under 92 % on the drawn digits where 128 hidden units reach 97 %") {
  const images_and_labels train(20000, 1), test(4000, 2);
  const gradus::exponential_decay falling{.initial = 2e-3, .decay_steps = 300, .decay_rate = 0.7, .staircase = true};
  CHECK(accuracy_of<softmax_regression>(train, test, falling, 1000) < 0.92);
  CHECK(accuracy_of<softmax_regression>(train, test, gradus::constant{2e-3}, 4000) < 0.92);  // nor do more steps help
  CHECK(accuracy_of<digits::model>(train, test, falling, 1000) >= 0.97);
}
