#include <gradus/ops/layer.hpp>
#include <gradus/ops/model.hpp>

#include "refusal.hpp"

using namespace gradus;
using refusal_test::check;

namespace {
constexpr auto build = [](graph& g) {
  const value x = g.placeholder("x", {batch, 4}), label = g.placeholder("label", {batch}, int32);
  const value logits = dense(batch_norm(x), {.units = 3});
  const value loss = reduce_mean(sparse_softmax_cross_entropy(logits, label));
  g.summary_scalar("loss", loss);
  return model_spec{
      .loss = loss, .metrics = {{"accuracy", accuracy(logits, label)}}, .predictions = {{"class", argmax(logits)}}};
};
struct counts {
  int loss, metric, prediction, summary, update;
  constexpr bool operator==(const counts&) const = default;
};
constexpr counts count_outputs(mode m) {
  const graph g = build_model(build, m);
  counts c{};
  for (const output& o : g.outputs) {
    c.loss += o.kind == output::loss, c.metric += o.kind == output::metric,
        c.prediction += o.kind == output::prediction;
    c.summary += o.kind == output::summary, c.update += o.kind == output::update;
  }
  return c;
}
}  // namespace

// Training has the loss, the batch's metrics, summaries and what follows the batch; an evaluation metrics that add up
// and predictions; a prediction nothing else.
static_assert(count_outputs(mode::train) == counts{1, 1, 0, 1, 2});
static_assert(count_outputs(mode::evaluate) == counts{1, 1, 1, 0, 1});
static_assert(count_outputs(mode::predict) == counts{0, 0, 1, 0, 0});

TEST_CASE("what a model is refused for") {
  check<[](graph& g) { build_into(g, [](graph&) { return model_spec{}; }); }>(
      "the model has no loss: return model_spec{.loss = ...}");
  check<[](graph& g) { build_into(g, [](graph& h) {
                         return model_spec{.loss = h.placeholder("x", {batch, 2})};
                       }); }>(
      "the loss must be a scalar, got [batch, 2]; reduce_mean it");
  check<[](graph& g) { build_into(g, [](graph& h) { return model_spec{.loss = h.constant(1, int32)}; }); }>(
      "the loss must be float32 or float64, got int32");
  check<[](graph& g) {
    build_into(g, [](graph& h) {
      const value x = h.constant(1);
      const metric m{x, x, {}};
      return model_spec{.loss = x,
                        .metrics = {{"a", m},
                                    {"b", m},
                                    {"c", m},
                                    {"d", m},
                                    {"e", m},
                                    {"f", m},
                                    {"g", m},
                                    {"h", m},
                                    {"i", m},
                                    {"j", m},
                                    {"k", m},
                                    {"l", m},
                                    {"m", m},
                                    {"n", m},
                                    {"o", m},
                                    {"p", m},
                                    {"q", m}}};
    });
  }>("the model returns 17 metrics, and there is room for 16; leave some out");
  check<[](graph& g) {
    build_into(g, [](graph& h) {
      const value x = h.constant(1);
      return model_spec{.loss = x, .metrics = {{"loss", metric{x, x, {}}}}};
    });
  }>("the model has two results of the name \"loss\": give one of them, in .metrics, another name");
  check<[](graph& g) {
    build_into(g, [](graph& h) {
      const value x = h.constant(1);
      return model_spec{.loss = x, .predictions = {{"a", x}, {"b", x}, {"a", x}}};
    });
  }>("the model has two results of the name \"a\": give one of them, in .predictions, another name");
  check<[](graph& g) {
    build_into(g, [](graph& h) {
      const value x = h.constant(1);
      return model_spec{.loss = x,
                        .predictions = {{"a", x},
                                        {"b", x},
                                        {"c", x},
                                        {"d", x},
                                        {"e", x},
                                        {"f", x},
                                        {"g", x},
                                        {"h", x},
                                        {"i", x},
                                        {"j", x},
                                        {"k", x},
                                        {"l", x},
                                        {"m", x},
                                        {"n", x},
                                        {"o", x},
                                        {"p", x},
                                        {"q", x}}};
    });
  }>("the model returns 17 predictions, and there is room for 16; leave some out");
}
