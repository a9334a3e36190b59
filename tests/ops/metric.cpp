#include "refusal.hpp"

#include <gradus/ops/metric.hpp>

using namespace gradus;
using refusal_test::check;

namespace {
constexpr int locals(graph& g) {
  int n = 0;
  g.for_each_in(collection::local_variables, [&](value) { ++n; });
  return n;
}
}  // namespace

// State lives in local variables named as TensorFlow's; nothing of it is trained or saved.
static_assert([] {
  graph g;
  const value logits = g.placeholder("logits", {batch, 10}), label = g.placeholder("label", {batch}, int32);
  const metric a = accuracy(logits, label), b = accuracy(label, logits), c = accuracy(label, argmax(logits));
  int others = 0;
  g.for_each_in(collection::global_variables, [&](value) { ++others; });
  g.for_each_in(collection::trainable_variables, [&](value) { ++others; });
  return a.result.dims().rank == 0 && b.update.type() == float32 && c.batch_result.dims().rank == 0 && locals(g) == 6 &&
         others == 0 && g.find("accuracy/total") >= 0 && g.find("accuracy/count") >= 0 &&
         g.find("accuracy_2/count") >= 0;
}());
static_assert([] {
  graph g;
  const value p = g.placeholder("p", {batch}), y = g.placeholder("y", {batch}, int32), w = g.placeholder("w", {batch});
  using namespace metrics;
  const metric all[] = {mean(p),
                        metrics::mean_squared_error(y, p),
                        root_mean_squared_error(y, p, {.weights = w}),
                        precision(y, p),
                        recall(y, p, {.name = "found"}),
                        auc(y, p),
                        auc(y, p, {.weights = w, .curve = curve::pr})};
  for (const metric& m : all)
    if (m.result.dims().rank != 0 || m.update.dims().rank != 0 || m.batch_result.dims().rank != 0) return false;
  const metric at = precision_at_thresholds(y, p, {0.2, 0.5, 0.9}), found = recall_at_thresholds(y, p, {0.5});
  return at.result.dims() == shape{3} && found.update.dims() == shape{1} && g.find("found/false_negatives") >= 0 &&
         g.nodes[g.find("auc/true_negatives")].dims == shape{200} && zero_fraction(p).type() == float32 &&
         g.refusal.empty();
}());
// What is read after the update is made after it.
static_assert([] {
  graph g;
  const metric m = metrics::mean(g.placeholder("x", {batch}));
  int last = -1;
  for (int i = 0; i < g.nodes.count; ++i)
    if (g.nodes[i].op == &cards::assign_add) last = i;
  for (int e = 0; e < g.nodes[m.result.id].inputs; ++e)
    if (g.edges[g.nodes[m.result.id].first + e] <= last &&
        g.nodes[g.edges[g.nodes[m.result.id].first + e]].op != &variable_card)
      return false;
  return m.result.id > last && m.update.id > last;
}());

TEST_CASE("what metrics refuse") {
  check<[](graph& g) {
    accuracy(g.placeholder("y", {batch, 2}, int32), g.placeholder("p", {batch}, int32));
  }>("accuracy: labels and predictions must have one shape, got [batch, 2] and [batch]");
  check<[](graph& g) {
    metrics::precision(g.placeholder("y", {batch}), g.placeholder("p", {batch, 1}));
  }>("precision: labels and predictions must have one shape, got [batch] and [batch, 1]");
  check<[](graph& g) {
    metrics::mean(g.placeholder("x", {batch, 3}), {.weights = g.placeholder("w", {3})});
  }>("metrics: weights [3] do not fit values [batch, 3]: a scalar, or the same rank with extents 1 or equal");
  check<[](graph& g) {
    metrics::auc(g.placeholder("y", {batch}), g.placeholder("p", {batch}), {.num_thresholds = 1});
  }>("auc: needs at least 2 thresholds, got 1");
}
