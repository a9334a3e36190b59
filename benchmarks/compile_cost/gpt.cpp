// A char-GPT: 4 layers of 4 heads, width 128, 64 positions, 128 letters.
#include "program.hpp"

constexpr auto model = [](gradus::graph& g) {
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
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, next)), .metrics = {}, .predictions = {}};
};
int main() { return train<model>(); }
