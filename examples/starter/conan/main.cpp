// A classifier of points in two classes: inside or outside a ring. Trained with files: stop it and run it again, it
// goes on.
#include <cstdio>
#include <gradus/gradus.hpp>
#include <vector>

inline constexpr auto ring = [](gradus::graph& g) {
  using namespace gradus;
  auto point = g.placeholder("point", {batch, 2});
  auto inside = g.placeholder("inside", {batch}, int32);
  auto hidden = tanh(dense(point, {.units = 16, .name = "hidden"}));
  auto logits = dense(hidden, {.units = 2, .name = "logits"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, inside)),
                    .metrics = {{"accuracy", accuracy(logits, inside)}},
                    .predictions = {{"inside", argmax(logits)}}};
};

int main() {
  std::vector<float> points;
  std::vector<std::int32_t> inside;
  gradus::random_stream random{1};
  for (int i = 0; i < 1024; ++i) {
    const double x = 2 * random.uniform() - 1, y = 2 * random.uniform() - 1;
    points.insert(points.end(), {static_cast<float>(x), static_cast<float>(y)});
    inside.push_back(x * x + y * y < 0.5 ? 1 : 0);
  }
  const auto data = [&] {
    return gradus::from_spans("point", std::span<const float>(points), gradus::extents{2}, "inside",
                              std::span<const std::int32_t>(inside), gradus::extents{});
  };
  auto trainer = gradus::make_trainer<ring>(gradus::adam{.rate = 0.01}, gradus::log_lines{},
                                            gradus::run_config{.model_dir = "run", .log_step_count_steps = 200});
  trainer.train(data().shuffle(1024).repeat().batch(32), {.max_steps = 1000});
  std::printf("accuracy %.3f\n", trainer.evaluate(data().batch(256))["accuracy"]);
}
