// More of the library on a board: rows of a table, normalization, dropout, a clip, an average, a metric, refusals.
// Without a heap, and within a budget that would break if any of it kept the graph, its cards or the tables of
// printing.
// links no heap and no exceptions
// flash at most: m4f 38730, m3 42060
// ram at most: 13400
#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/run/static_step.hpp>
#include <gradus/update/rules/adam.hpp>

#include <new>
#include <string_view>

#include "../../examples/starter/board/board.hpp"

#if !defined(GRADUS_TEST_UNCOUNTED)  // ThreadSanitizer brings its own
void* operator new(std::size_t) { board::leave(3); }
void operator delete(void*) noexcept {}
void operator delete(void*, std::size_t) noexcept {}
#endif

static int expected = 3;  // what a refusal ends the program with
namespace gradus {
void on_error(status, const char* message) {
  board::say(message);
  board::leave(std::string_view(message).starts_with("Gather: index 20 at position 1 ") ? expected : 4);
}
}  // namespace gradus

static constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  const auto ids = g.placeholder("ids", {batch, 3}, int32), label = g.placeholder("label", {batch}, int32);
  auto h = embedding(ids, {.input_dim = 20, .output_dim = 6, .name = "table"});
  h = layer_norm(h) * g.variable("scale", {3, 1}) + g.variable("shift", {1, 6});
  h = dense(reshape(h, {batch, 18}), {.units = 10, .name = "hidden"});
  h = dropout(gelu(batch_norm(h, {.name = "norm"})), 0.25);
  const auto logits = dense(h, {.units = 4, .name = "logits"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, label)),
                    .metrics = {{"accuracy", accuracy(logits, label)}},
                    .predictions = {{"class", argmax(logits)}, {"logits", logits}}};
};

static auto trainer = gradus::make_static_stepper<model>(gradus::static_batch<8>{}, gradus::adam{.rate = 0.01},
                                                         gradus::portable{}, gradus::clip_by_global_norm{1.0},
                                                         gradus::exponential_moving_average{.decay = 0.9});

int main() {
  gradus::random_stream stream{.seed = 5};
  trainer.initialize(11);
  const auto ids = trainer.input<"ids">();
  board::hash losses, logits, weights;
  for (int i = 0; i < 100; ++i) {
    for (auto& id : ids) id = static_cast<std::int32_t>(stream.below(20));
    for (std::size_t k = 0; k < 8; ++k) trainer.input<"label">()[k] = ids[3 * k] % 4;
    trainer.step();
    losses.add(trainer.loss()), losses.add(trainer.metric<"accuracy">());
  }
  board::say("losses", losses.word);
  trainer.swap_averages();
  trainer.predict();
  for (float x : trainer.prediction<"logits">()) logits.add(x);
  for (auto c : trainer.prediction<"class">()) logits.add(static_cast<std::uint32_t>(c));
  board::say("predictions", logits.word);
  for (float x : trainer.variable<"table/embeddings">()) weights.add(x);
  board::say("averages", weights.word);
  ids[1] = 20;
  expected = 0;
  trainer.step();  // refused
  return 1;
}
