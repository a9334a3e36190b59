#include <gradus/pass/mixed_precision.hpp>

#include <gradus/graph/law.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/pass/clean.hpp>
#include <gradus/pass/minimize.hpp>
#include <gradus/pass/optimize.hpp>

#include "../ops/refusal.hpp"

using namespace gradus;

namespace {

constexpr int many(const graph& g, const card& op) {
  int n = 0;
  for (int i = 0; i < g.nodes.count; ++i) n += g.nodes[i].op == &op;
  return n;
}
constexpr const card& rounding = cards::reduce_precision_bfloat16;
constexpr int input(const graph& g, int i, int k) { return g.edges[g.nodes[i].first + k]; }

// Whether node i is rounded, perhaps moved since.
constexpr bool is_rounded(const graph& g, int i) {
  while (g.nodes[i].op->is(trait::view) || g.nodes[i].op == &cards::transpose) i = input(g, i, 0);
  return g.nodes[i].op == &rounding;
}
constexpr bool all_products_rounded(const graph& g) {
  for (int i = 0; i < g.nodes.count; ++i)
    if (detail::is_product(g.nodes[i]))
      for (int k = 0; k < g.nodes[i].inputs; ++k)
        if (is_rounded(g, input(g, i, k)) != (g.nodes[i].type == float32)) return false;
  return true;
}
template <class Build>
constexpr graph forward(Build build) {
  graph g;
  build(g);
  return round_operands(parts_of(g), bfloat16);
}
template <class Build>
constexpr graph training(Build build) {
  const graph rounded = forward(build), whole = minimize(parts_of(rounded), {});
  return round_operands(parts_of(whole), bfloat16);
}

constexpr auto two_layers = [](graph& g) {
  const value x = g.placeholder("x", {batch, 4});
  const value h = tanh(dense(x, {.units = 3, .name = "a"}));
  const value y = dense(h, {.units = 2, .name = "b"});
  g.add_output(output::loss, "loss", reduce_mean(square(y)));
};
static_assert([] {  // x, w, h, w
  const graph g = forward(two_layers);
  return many(g, rounding) == 4 && all_products_rounded(g) && broken_law(parts_of(g)) == nullptr;
}());
// Backward: the copies of the forward pass again, dy of each layer, and the gradients of rounded tensors: both weights
// and h.
static_assert([] {
  const graph g = training(two_layers);
  return many(g, cards::matmul) == 5 && many(g, rounding) == 4 + 2 + 3 && all_products_rounded(g) &&
         broken_law(parts_of(g)) == nullptr;
}());
// What a weight is updated with is a rounded number, a bias' gradient is not; variables stay what they are.
static_assert([] {
  const graph g = training(two_layers);
  int weights = 0, biases = 0;
  for (int i = 0; i < g.nodes.count; ++i) {
    if (g.nodes[i].op != &cards::apply) continue;
    const int variable = input(g, i, 0), gradient = input(g, i, 1);
    if (g.nodes[variable].op != &variable_card || g.nodes[variable].type != float32) return false;
    (g.nodes[variable].dims.rank == 2 ? weights : biases) += 1;
    if (is_rounded(g, gradient) != (g.nodes[variable].dims.rank == 2)) return false;
  }
  return weights == 2 && biases == 2;
}());

constexpr auto images = [](graph& g) {  // the gradient of a convolution transposes its filters, which stay rounded
  const value x = g.placeholder("x", {batch, 6, 6, 2});
  const value h = relu(conv2d(x, {.filters = 3}));
  const value y = conv2d(h, {.filters = 2});
  g.add_output(output::loss, "loss", reduce_mean(square(y)));
};
static_assert([] {
  const graph g = training(images);
  return many(g, cards::conv2d) == 2 && many(g, cards::conv2d_filter) == 2 && many(g, cards::conv2d_input) == 1 &&
         many(g, rounding) == 4 + 2 + 3 && all_products_rounded(g) && broken_law(parts_of(g)) == nullptr;
}());

constexpr auto separable = [](graph& g) {  // a depthwise convolution is a product as well, and transposes nothing
  const value x = g.placeholder("x", {batch, 6, 6, 2});
  const value h = depthwise_conv2d(depthwise_conv2d(x, {.depth_multiplier = 2}));
  g.add_output(output::loss, "loss", reduce_mean(square(conv2d(h, {.filters = 3, .kernel_size = 1}))));
};
static_assert([] {
  const graph g = training(separable);
  return many(g, cards::depthwise_conv2d) == 2 && many(g, cards::depthwise_conv2d_filter) == 2 &&
         many(g, cards::depthwise_conv2d_input) == 1 && many(g, rounding) == 6 + 3 + 3 && all_products_rounded(g) &&
         broken_law(parts_of(g)) == nullptr;
}());

// One copy of a tensor, however many multiply by it; float64 is left alone.
constexpr auto shared = [](graph& g) {
  const value w = g.variable("w", {3, 3}), x = g.placeholder("x", {3, 3});
  g.add_output(output::fetch, "a", matmul(matmul(x, w), w, {.transpose_b = true}));
  const value d = g.placeholder("d", {3, 3}, float64);
  g.add_output(output::fetch, "d", matmul(d, d));
};
static_assert([] {
  const graph g = forward(shared);
  return many(g, rounding) == 3 && all_products_rounded(g);
}());

// A write between two products: the second rounds what was written.
constexpr auto written = [](graph& g) {
  const value w = g.variable("w", {3, 3}), x = g.placeholder("x", {3, 3});
  const value before = matmul(x, w);
  const value changed = assign(w, x);
  g.add_output(output::fetch, "before", before);
  g.add_output(output::fetch, "changed", matmul(x, changed));
  g.add_output(output::fetch, "after", matmul(x, w));
};
static_assert([] {
  const graph g = forward(written);
  const int before = input(g, g.outputs[0].node, 1), changed = input(g, g.outputs[1].node, 1),
            after = input(g, g.outputs[2].node, 1);
  return many(g, rounding) == 4 && before != after && before != changed;
}());

// A model that makes its own gradients: their products are rounded too, what they give is not.
constexpr auto own_train_op = [](graph& g) {
  two_layers(g);
  g.add_output(output::update, "train_op", minimize(value{&g, g.outputs[0].node}));
};
static_assert([] {
  const graph g = training(own_train_op);
  return many(g, cards::matmul) == 5 && many(g, rounding) == 4 + 2 && all_products_rounded(g) &&
         broken_law(parts_of(g)) == nullptr;
}());

// A second run finds nothing to do; other ops are not touched.
static_assert([] {
  const graph once = training(images), twice = round_operands(parts_of(once), bfloat16);
  return once.nodes.count == twice.nodes.count;
}());
static_assert([] {
  graph g;
  const value x = g.placeholder("x", {batch, 4});
  g.add_output(output::fetch, "y", softmax(x * 2.0) + reduce_sum(x));
  return round_operands(parts_of(g), float16).nodes.count == g.nodes.count;
}());

// The loss scale is the seed of the gradients; the loss is what it was.
static_assert([] {
  graph g;
  two_layers(g);
  const graph m = minimize(parts_of(g), {.needs_norm = true, .scales_loss = true});
  if (many(m, cards::loss_scale) != 1 || broken_law(parts_of(m)) != nullptr) return false;
  for (int i = 0; i < m.outputs.count; ++i)
    if (m.outputs[i].kind == output::loss && m.outputs[i].node != g.outputs[0].node) return false;
  return m.refusal.empty();
}());

}  // namespace

TEST_CASE("a loss scale and a train op of the model's own do not go together") {
  refusal_test::check<[](graph& g) {
    const value w = g.variable("w", {});
    g.add_output(output::loss, "loss", square(w));
    g.add_output(output::update, "train_op", g.add(cards::apply, {w, w * 2.0}));
    const graph m = minimize(parts_of(g), {.needs_norm = true, .scales_loss = true});
    g.refusal = m.refusal;
  }>("the model has a train op of its own, so a loss scale cannot reach its gradients: leave the loss scale out, or "
     "leave the gradients to the trainer");
}
