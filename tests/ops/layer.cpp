#include "refusal.hpp"

#include <gradus/ops/layer.hpp>

using namespace gradus;
using refusal_test::check;

namespace {
constexpr bool has(graph& g, std::string_view name, const shape& dims, bool trainable = true) {
  const int id = g.find(name);
  if (id < 0 || !(g.nodes[id].dims == dims) || g.nodes[id].op != &variable_card) return false;
  bool found = false;
  g.for_each_in(collection::trainable_variables, [&](value v) { found = found || v.id == id; });
  return found == trainable;
}
}  // namespace

// Variables: names, shapes, dtypes, as TensorFlow's layers have them.
static_assert([] {
  graph g;
  const value x = g.placeholder("x", {batch, 9, 20});
  const value a = dense(x, {.units = 4, .activation = relu}), b = dense(a, {.units = 5}),
              c = dense(b, {.units = 6, .name = "head"});
  return c.dims() == shape{batch, 9, 6} && has(g, "dense/kernel", {20, 4}) && has(g, "dense/bias", {4}) &&
         has(g, "dense_1/kernel", {4, 5}) && has(g, "head/kernel", {5, 6}) && g.nodes[a.id].op == &cards::relu;
}());
static_assert([] {
  graph g;
  const value x = g.placeholder("x", {batch, 7}, float64);
  dense(x, {.units = 3, .use_bias = false, .trainable = false});
  return has(g, "dense/kernel", {7, 3}, false) && g.find("dense/bias") < 0 &&
         g.nodes[g.find("dense/kernel")].type == float64;
}());
static_assert([] {
  graph g;
  const value x = g.placeholder("x", {batch, 12, 12, 3});
  const value y =
      conv2d(x, {.filters = 8, .kernel_size = {3, 5}, .strides = 2, .padding = padding::same, .activation = relu});
  return y.dims() == shape{batch, 6, 6, 8} && has(g, "conv2d/kernel", {3, 5, 3, 8}) && has(g, "conv2d/bias", {8});
}());
static_assert([] {
  graph g;
  const value ids = g.placeholder("ids", {batch, 6}, int64);
  const value e = embedding(ids, {.input_dim = 100, .output_dim = 8});
  const value n = layer_norm(e), a = multi_head_attention(n, {.heads = 2, .dropout_rate = 0.1});
  return a.dims() == shape{batch, 6, 8} && has(g, "embedding/embeddings", {100, 8}) &&
         has(g, "layer_norm/gamma", {8}) && has(g, "layer_norm/beta", {8}) &&
         has(g, "multi_head_attention/qkv/kernel", {8, 24}) && has(g, "multi_head_attention/qkv/bias", {24}) &&
         has(g, "multi_head_attention/projection/kernel", {8, 8});
}());
// Batch normalization: moving statistics are variables in every mode, followed in training only.
static_assert([] {
  for (const mode m : {mode::train, mode::evaluate}) {
    graph g(m);
    batch_norm(g.placeholder("x", {batch, 4, 4, 6}));
    int updates = 0;
    g.for_each_in(collection::update_ops, [&](value) { ++updates; });
    if (updates != (m == mode::train ? 2 : 0)) return false;
    if (!has(g, "batch_normalization/gamma", {6}) || !has(g, "batch_normalization/moving_mean", {6}, false) ||
        !has(g, "batch_normalization/moving_variance", {6}, false))
      return false;
  }
  return true;
}());
static_assert([] {
  for (int n : {1, 2, 3, 64, 100}) {
    const double r = detail::root(n);
    if (r * r < n * (1 - 1e-15) || r * r > n * (1 + 1e-15)) return false;
  }
  const double small = detail::root(1e-4);
  return small > 0.01 * (1 - 1e-15) && small < 0.01 * (1 + 1e-15);
}());

TEST_CASE("what layers refuse") {
  check<[](graph& g) { dense(g.placeholder("x", {batch}), {.units = 3}); }>(
      "dense \"dense\": needs units > 0 and an operand of rank 2 or more whose last extent is known, got units 3, "
      "operand "
      "[batch]");
  check<[](graph& g) {
    dense(g.placeholder("x", {batch, 2}), {.name = "head"});
  }>("dense \"head\": needs units > 0 and an operand of rank 2 or more whose last extent is known, got units 0, "
     "operand "
     "[batch, 2]");
  check<[](graph& g) {
    dense(g.placeholder("x", {batch, 2}, int32), {.units = 3});
  }>("MatMul: operands must all be float32 or all float64, got int32 and int32; use cast (x[batch, 2], dense/kernel[2, "
     "3])");
  check<[](graph& g) {
    conv2d(g.placeholder("x", {batch, 8, 8}), {.filters = 4});
  }>("conv2d \"conv2d\": needs filters > 0, a kernel_size > 0 and images [n, height, width, channels], got 4 filters, "
     "operand "
     "[batch, 8, 8]");
  check<[](graph& g) { embedding(g.placeholder("x", {batch}, int32), {.input_dim = 4}); }>(
      "embedding \"embedding\": needs input_dim > 0 and output_dim > 0, got 4, 0");
  check<[](graph& g) {
    multi_head_attention(g.placeholder("x", {batch, 4, 10}), {.heads = 3});
  }>("multi_head_attention \"multi_head_attention\": needs [n, time, width] with a width that 3 heads divide, got "
     "[batch, 4, "
     "10]");
  check<[](graph& g) { batch_norm(g.placeholder("x", {batch})); }>(
      "batch_norm \"batch_normalization\": needs rank 2 or more and a known number of channels (the last axis), got "
      "[batch]");
  check<[](graph& g) { layer_norm(g.placeholder("x", {})); }>(
      "layer_norm \"layer_norm\": needs a last axis of known extent, got []");
}
