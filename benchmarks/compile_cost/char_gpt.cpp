// A char-GPT as a whole program with the umbrella: 4 layers of 4 heads, width 128, 64 positions, 128 letters, compiled.
#include <gradus/gradus.hpp>

#include <cstdio>

inline constexpr auto char_gpt = [](gradus::graph& g) {
  using namespace gradus;
  constexpr int time = 64, width = 128, letters = 128;
  const auto ids = g.placeholder("ids", {batch, time}, int32), next = g.placeholder("next", {batch, time}, int32);
  auto x = embedding(ids, {.input_dim = letters, .output_dim = width, .name = "letter"}) +
           g.variable("position", {time, width}, {.init = random_normal(0, 0.02f)});
  for (int i = 0; i < 4; ++i) {
    const auto block = g.name_scope("block");
    x = x + multi_head_attention(layer_norm(x), {.heads = 4});
    const auto up = gelu(dense(layer_norm(x), {.units = 4 * width, .name = "up"}));
    x = x + dense(up, {.units = width, .name = "down"});
  }
  const auto logits = dense(layer_norm(x), {.units = letters, .name = "logits"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, next)),
                    .metrics = {{"accuracy", accuracy(logits, next)}}};
};

int main() {
  std::vector<std::int32_t> letters(1 << 16);
  for (std::size_t i = 0; i < letters.size(); ++i) letters[i] = static_cast<std::int32_t>(i * i % 128);
  const int rows = static_cast<int>(letters.size()) / 64 - 1;
  const std::span all(letters);
  const auto text =
      gradus::from_spans("ids", all.first(static_cast<std::size_t>(rows) * 64), gradus::extents{64}, "next",
                         all.subspan(1, static_cast<std::size_t>(rows) * 64), gradus::extents{64});
  auto trainer =
      gradus::make_trainer<char_gpt>(gradus::adamw{.rate = 3e-4, .weight_decay = 0.1}, gradus::clip_by_global_norm{1.0},
                                     gradus::log_lines{}, gradus::run_config{.model_dir = "runs/char_gpt"});
  trainer.train(text.shuffle(1000).repeat().batch(8), {.max_steps = 100});
  std::printf("loss %.4f\n", trainer.evaluate(text.batch(8))["loss"]);
}
