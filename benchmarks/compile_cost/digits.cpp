// The digits classifier as a whole program: trainer, files, three graphs (train, evaluate, predict).
// at most: 8 seconds
// at most: 1000 MB
#include <gradus/gradus.hpp>
#include <gradus/update/average.hpp>
#include <gradus/update/clip.hpp>
#include <gradus/update/schedule.hpp>

constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  const auto image = g.placeholder("image", {batch, 28 * 28});
  const auto label = g.placeholder("label", {batch}, int32);
  const auto logits = dense(relu(dense(image, {.units = 128, .name = "hidden"})), {.units = 10, .name = "logits"});
  const auto loss = reduce_mean(sparse_softmax_cross_entropy(logits, label));
  g.summary_scalar("loss", loss);
  return model_spec{.loss = loss,
                    .metrics = {{"accuracy", metrics::accuracy(label, argmax(logits))}},
                    .predictions = {{"class", argmax(logits)}}};
};
int main() {
  auto trainer = gradus::make_trainer<model>(
      gradus::adam{},
      gradus::exponential_decay{.initial = 1e-3, .decay_steps = 1000, .decay_rate = 0.96, .staircase = true},
      gradus::clip_by_global_norm{5.0}, gradus::exponential_moving_average{.decay = 0.999}, gradus::gate_op{},
      gradus::threads{2}, gradus::run_config{.model_dir = "run"});
  trainer.train(gradus::idx("data/train").shuffle(20000).repeat().batch(128), {.max_steps = 1000});
  const auto result = trainer.evaluate(gradus::idx("data/test").batch(1000));
  trainer.predict(gradus::idx("data/test").batch(1000), [](const auto&) {});
  return result["accuracy"] > 0.5 ? 0 : 1;
}
