// A transformer over characters: 4 layers, 4 heads, width 128, 64 positions, 16 sequences a step, AdamW; 128 symbols,
// the output tied to the embedding. "heart/" learns one batch by heart and tells its loss after 0, 50 and 100 steps.
#include "training.hpp"

#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/update/rules/adamw.hpp>

namespace {

using namespace training;

constexpr int sequences = 16, length = 64, symbols = 128;

constexpr auto gpt = [](graph& g) {
  constexpr int width = 128, layers = 4, heads = 4;
  const auto ids = g.placeholder("ids", {batch, length}, int32), next = g.placeholder("next", {batch, length}, int32);
  const auto table = g.variable("symbols", {symbols, width}, {.init = random_normal(0, 0.06f)});
  const auto places = g.variable("places", {length, width}, {.init = random_normal(0, 0.06f)});
  auto x = gather(table, ids) + places;
  for (int i = 0; i < layers; ++i) {
    const auto scope = g.name_scope("block");
    x = x + multi_head_attention(layer_norm(x), {.heads = heads});
    const auto up = gelu(dense(layer_norm(x), {.units = 4 * width, .name = "up"}));
    x = x + dense(up, {.units = width, .name = "down"});
  }
  const auto logits = matmul(layer_norm(x), table, {.transpose_b = true});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, next)), .metrics = {}, .predictions = {}};
};

const adamw decayed{.rate = 1e-3, .weight_decay = 0.01};

template <class Model>
void tokens(benchmark::State& state, Model model) {
  steps(state, std::move(model), decayed, sequences, symbols);
  state.SetItemsProcessed(state.iterations() * sequences * length);
}
void by_heart(benchmark::State& state) {
  const subnormal_scope scope(subnormal_mode::flush);
  stepper<compiled<gpt>, decltype(composed{decayed}), cpu<fast>, serial, subnormals::flush> s({}, composed{decayed});
  s.allocate();
  s.initialize(1);
  batches data(s, s.template bound<mode::train>(sequences), sequences, symbols);
  const tensor_view loss = s.template output_of<mode::train>(output::loss);
  for (auto _ : state)
    for (int i = 0; i <= 100; ++i) {
      data.at = 0, data.feed();
      s.train_step();
      if (i % 50 == 0) state.counters["step " + std::to_string(i)] = *reinterpret_cast<const float*>(loss.data);
    }
}

const auto registered = {
    add("W3/g_gpt_4x4x128_T64_b16_adamw", [](auto& s) { tokens(s, compiled<gpt>{}); }),
    add("interpreted/W3/g_gpt_4x4x128_T64_b16_adamw", [](auto& s) { tokens(s, interpreted{gpt}); }),
    add("heart/g_gpt_4x4x128_T64_b16_adamw", by_heart)->Iterations(1)};

}  // namespace
