#include <cstdio>
#include <gradus/gradus.hpp>

// A model is a function that builds a graph. Captureless, so the compiler can run it.
inline constexpr auto digits = [](gradus::graph& g) {
  using namespace gradus;
  auto image = g.placeholder("image", {batch, 28 * 28});
  auto label = g.placeholder("label", {batch}, int32);
  auto hidden = relu(dense(image, {.units = 128, .name = "hidden"}));
  auto logits = dense(hidden, {.units = 10, .name = "logits"});
  auto loss = reduce_mean(sparse_softmax_cross_entropy(logits, label));
  g.summary_scalar("loss", loss);
  return model_spec{
      .loss = loss, .metrics = {{"accuracy", accuracy(logits, label)}}, .predictions = {{"class", argmax(logits)}}};
};

int main() {
  auto trainer = gradus::make_trainer<digits>(  // policies: any order, at most one per kind, the rest have defaults
      gradus::adam{},
      gradus::exponential_decay{.initial = 1e-3, .decay_steps = 1000, .decay_rate = 0.96, .staircase = true},
      gradus::clip_by_global_norm{5.0}, gradus::exponential_moving_average{.decay = 0.99}, gradus::threads{2},
      gradus::log_lines{}, gradus::run_config{.model_dir = "runs/quickstart", .log_step_count_steps = 500});
  const std::string data = "runs/digits-data/drawn-20000-4000";  // what scripts/demo.sh drew; MNIST's files do as well
  trainer.train(gradus::idx(data + "/train").shuffle(60000).repeat().batch(128), {.max_steps = 2000});
  auto result = trainer.evaluate(gradus::idx(data + "/test").batch(1000));
  std::printf("accuracy %.4f, loss %.4f\n", result["accuracy"], result["loss"]);
}
