// A transformer over characters: 4 layers, 4 heads, width 128, 64 positions, 16 sequences a step, AdamW; 128 symbols,
// the output tied to the embedding. "heart/" learns one batch by heart and tells its loss after 0, 50 and 100 steps.
#include "models.hpp"

#include <gradus/update/rules/adamw.hpp>

namespace {

using namespace training;

constexpr int sequences = 16;

const adamw decayed{.rate = 1e-3, .weight_decay = 0.01};

template <class Model>
void tokens(benchmark::State& state, Model model) {
  steps(state, std::move(model), decayed, sequences, gpt_symbols);
  state.SetItemsProcessed(state.iterations() * sequences * gpt_length);
}
void by_heart(benchmark::State& state) {
  const subnormal_scope scope(subnormal_mode::flush);
  stepper<compiled<gpt>, decltype(composed{decayed}), cpu<fast>, serial, subnormals::flush> s({}, composed{decayed});
  s.allocate();
  s.initialize(1);
  batches data(s, s.template bound<mode::train>(sequences), sequences, gpt_symbols);
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
