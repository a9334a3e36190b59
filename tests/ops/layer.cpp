#include <gradus/ops/layer.hpp>

#include "refusal.hpp"

#include "compute.hpp"

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
  const value x = g.placeholder("x", {batch, 12, 12, 3}, float64);
  const value y = depthwise_conv2d(
      x, {.kernel_size = {3, 5}, .strides = 2, .padding = padding::same, .depth_multiplier = 2, .activation = relu});
  const value z = depthwise_conv2d(y, {.use_bias = false, .trainable = false}), w = depthwise_conv2d(z);
  return y.dims() == shape{batch, 6, 6, 6} && has(g, "depthwise_conv2d/depthwise_kernel", {3, 5, 3, 2}) &&
         has(g, "depthwise_conv2d/bias", {6}) && z.dims() == shape{batch, 4, 4, 6} &&
         has(g, "depthwise_conv2d_1/depthwise_kernel", {3, 3, 6, 1}, false) && g.find("depthwise_conv2d_1/bias") < 0 &&
         w.dims() == shape{batch, 2, 2, 6} && w.type() == float64;
}());
// An empty name stands for each layer's default.
static_assert([] {
  graph g;
  const value ids = g.placeholder("ids", {batch, 6}, int64), images = g.placeholder("images", {batch, 8, 8, 3});
  const value e = embedding(ids, {.input_dim = 9, .output_dim = 8, .name = {}});
  const value a = multi_head_attention(batch_norm(layer_norm(e, {.name = {}}), {.name = ""}), {.name = ""});
  dense(dense(a, {.units = 3, .name = {}}), {.units = 3, .name = std::string_view("")});
  conv2d(images, {.filters = 2, .name = {}}), depthwise_conv2d(images, {.name = {}});
  const value one = g.placeholder("one", {1, 1, 24}), at = g.placeholder("at", {}, int32);
  cached_attention(one, at, {.time = 4, .name = {}});
  return has(g, "embedding/embeddings", {9, 8}) && has(g, "layer_norm/gamma", {8}) &&
         has(g, "batch_normalization/gamma", {8}) && has(g, "multi_head_attention/qkv/kernel", {8, 24}) &&
         has(g, "dense/kernel", {8, 3}) && has(g, "dense_1/kernel", {3, 3}) && has(g, "conv2d/kernel", {3, 3, 3, 2}) &&
         has(g, "depthwise_conv2d/depthwise_kernel", {3, 3, 3, 1}) && g.find("cache") >= 0 && g.refusal.empty();
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
  check<[](graph& g) {
    shared_dense tower({.units = 2, .name = "tower"});
    tower(g.placeholder("a", {batch, 3})), tower(g.placeholder("b", {batch, 4}));
  }>("dense \"tower\": its kernel is [3, 2] of float32, and the operand [batch, 4] of float32; give operands of one "
     "last "
     "extent and dtype");
  check<[](graph& g) {
    shared_dense tower({.units = 2, .name = "tower"});
    tower(g.placeholder("a", {batch, 3})), tower(g.placeholder("b", {batch, 3}, float64));
  }>("dense \"tower\": its kernel is [3, 2] of float32, and the operand [batch, 3] of float64; give operands of one "
     "last "
     "extent and dtype");
  check<[](graph& g) {
    graph other;
    shared_dense tower({.units = 2, .name = "tower"});
    tower(other.placeholder("a", {batch, 3})), tower(g.placeholder("b", {batch, 3}));
  }>("dense \"tower\": its variables are of another graph; make a layer for each graph");
  check<[](graph& g) {
    batch_norm(g.placeholder("x", {batch, 3}), {.momentum = 99});
  }>("batch_norm \"batch_normalization\": the momentum of the moving statistics must be in [0, 1]; 0.99 is common");
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
  check<[](graph& g) {
    depthwise_conv2d(g.placeholder("x", {batch, 8, 8}), {.name = "each"});
  }>("depthwise_conv2d \"each\": needs depth_multiplier > 0, a kernel_size > 0 and images [n, height, width, "
     "channels], "
     "got depth_multiplier 1, kernel_size 3 x 3, operand [batch, 8, 8]");
  check<[](graph& g) {
    depthwise_conv2d(g.placeholder("x", {batch, 8, 8, 3}), {.depth_multiplier = 0});
  }>("depthwise_conv2d \"depthwise_conv2d\": needs depth_multiplier > 0, a kernel_size > 0 and images [n, height, "
     "width, channels], got depth_multiplier 0, kernel_size 3 x 3, operand [batch, 8, 8, 3]");
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

namespace {
// Two calls of one layer, and the same of variables.
template <bool Shared>
value two_towers(graph& g) {
  const value a = g.placeholder("a", {batch, 3}), b = g.placeholder("b", {batch, 3});
  if constexpr (Shared) {
    shared_dense tower({.units = 2, .name = std::string("to") + "wer", .activation = tanh});
    return reduce_sum(tower(a) * tower(b));
  } else {
    const value kernel = g.variable("tower/kernel", {3, 2}, {.init = glorot_uniform}),
                bias = g.variable("tower/bias", {2}, {.init = zeros});
    return reduce_sum(tanh(matmul(a, kernel) + bias) * tanh(matmul(b, kernel) + bias));
  }
}
}  // namespace
TEST_CASE("a shared dense layer: the variables of its first call, and gradients from all calls") {
  const auto trained = [](auto make) {
    graph g;
    const value loss = make(g);
    int variables = 0;
    g.for_each_in(collection::trainable_variables, [&](value) { ++variables; });
    CHECK(variables == 2);
    const std::array losses{loss};
    const std::array by{value{&g, g.find("tower/kernel")}, value{&g, g.find("tower/bias")}};
    const auto gradient = gradients(g, losses, by);
    session s{g};
    s.initialize(7);
    const std::vector<float> a{1, -2, 0.5F, 0.25F, 3, -1}, b{0.5F, 1, 2, -1, 0.125F, 0.75F};
    const auto r = s.run({loss, gradient[0].dense, gradient[1].dense}, {{"a", a}, {"b", b}});
    std::vector<float> all;
    for (const const_tensor_view& v : r) all.insert(all.end(), v.as<float>().begin(), v.as<float>().end());
    return all;
  };
  const auto shared = trained(two_towers<true>), plain = trained(two_towers<false>);
  CHECK(shared.size() == 9);
  CHECK(shared == plain);
}
static_assert([] {  // in a compiled model, with operands of other ranks and batches
  graph g;
  shared_dense cell({.units = 4, .use_bias = false});
  const value a = cell(g.placeholder("a", {batch, 4})), b = cell(a), c = cell(g.placeholder("c", {2, 5, 4}));
  return c.dims() == shape{2, 5, 4} && b.dims() == shape{batch, 4} && g.find("dense_1/kernel") < 0 &&
         cell.kernel().id == g.find("dense/kernel") && !cell.bias() && g.refusal.empty();
}());

TEST_CASE("dense is a product, a bias and an activation") {
  graph g;
  const value x = g.placeholder("x", {batch, 2}), y = dense(x, {.units = 3, .activation = relu});
  session s{g};
  const float kernel[] = {1, 2, 3, -1, -2, -3}, bias[] = {0.5f, 0, -0.5f};
  std::memcpy(s.mutable_variable("dense/kernel").mutable_data(), kernel, sizeof kernel);
  std::memcpy(s.mutable_variable("dense/bias").mutable_data(), bias, sizeof bias);
  const std::vector<float> in{1, 0, 1, 1, 0, 2};
  const auto out = s.run(y, {{x, in}}).as<float>();
  CHECK(std::vector<float>(out.begin(), out.end()) == std::vector<float>{1.5f, 2, 2.5f, 0.5f, 0, 0, 0, 0, 0});
}

TEST_CASE(
    "depthwise_conv2d is its kernel on each channel, a bias and an activation; its first values as TensorFlow's") {
  graph g;
  const value x = g.placeholder("x", {batch, 1, 2, 2});
  const value y = depthwise_conv2d(x, {.kernel_size = {1, 2}, .depth_multiplier = 2, .activation = relu});
  depthwise_conv2d(g.placeholder("wide", {batch, 1, 1, 50}), {.kernel_size = 1});
  session s{g};
  s.initialize(3);
  // fan in 1 * 1 * 50 and fan out 1: within +- sqrt(3 / 25.5), where one weight alone would be within +- sqrt(3)
  float most = 0;
  for (const float w : s.variable("depthwise_conv2d_1/depthwise_kernel").as<float>())
    most = std::max(most, std::fabs(w));
  CHECK(most <= std::sqrt(3 / 25.5f));
  CHECK(most > 0.8f * std::sqrt(3 / 25.5f));
  const float kernel[] = {1, 2, 3, 4, 5, 6, -7, 8}, bias[] = {0.5f, 0, 0, -1};
  std::memcpy(s.mutable_variable("depthwise_conv2d/depthwise_kernel").mutable_data(), kernel, sizeof kernel);
  std::memcpy(s.mutable_variable("depthwise_conv2d/bias").mutable_data(), bias, sizeof bias);
  const std::vector<float> in{1, 10, 2, 20};
  const auto out = s.run(y, {{x, in}}).as<float>();
  CHECK(std::vector<float>(out.begin(), out.end()) == std::vector<float>{11.5f, 14, 0, 199});
}

TEST_CASE("layer_norm: mean 0, deviation 1 per row") {
  ops_test::draw random;
  const auto x = random.between<double>(-3, 5, 4 * 7);
  graph g;
  const value v = g.placeholder("x", {batch, 7}, float64);
  const auto y = ops_test::compute<double>(g, layer_norm(v, {.epsilon = 1e-3}), {{v, x}});
  for (std::size_t row = 0; row < 4; ++row) {
    double mean = 0, variance = 0;
    for (std::size_t k = 0; k < 7; ++k) mean += x[row * 7 + k] / 7;
    for (std::size_t k = 0; k < 7; ++k) variance += (x[row * 7 + k] - mean) * (x[row * 7 + k] - mean) / 7;
    for (std::size_t k = 0; k < 7; ++k)
      CHECK(ops_test::near(y[row * 7 + k], (x[row * 7 + k] - mean) / std::sqrt(variance + 1e-3), 1e-13));
  }
}

TEST_CASE("batch_norm: the batch's statistics in training, followed by moving ones; those in an evaluation") {
  ops_test::draw random;
  const auto x = random.between<double>(-3, 5, 6 * 2);
  double mean[2] = {}, variance[2] = {};
  for (std::size_t i = 0; i < 12; ++i) mean[i % 2] += x[i] / 6;
  for (std::size_t i = 0; i < 12; ++i) variance[i % 2] += (x[i] - mean[i % 2]) * (x[i] - mean[i % 2]) / 6;
  graph g(mode::train);
  const value v = g.placeholder("x", {batch, 2}, float64), y = batch_norm(v, {.momentum = 0.9});
  std::vector<fetch> fetches{y};
  g.for_each_in(collection::update_ops, [&](value u) { fetches.emplace_back(u); });
  REQUIRE(fetches.size() == 3);
  session s{g};
  s.initialize();
  const std::vector<feed> feeds{{v, x}};
  double moving[2] = {0, 0}, spread[2] = {1, 1};
  for (int step = 0; step < 3; ++step) {
    const auto out = s.run(std::span<const fetch>(fetches), std::span<const feed>(feeds));
    for (std::size_t i = 0; i < 12; ++i)
      CHECK(ops_test::near(out[0].as<double>()[i], (x[i] - mean[i % 2]) / std::sqrt(variance[i % 2] + 1e-3), 1e-13));
    for (std::size_t c = 0; c < 2; ++c) {
      moving[c] = 0.9 * moving[c] + 0.1 * mean[c], spread[c] = 0.9 * spread[c] + 0.1 * variance[c];
      CHECK(ops_test::near(s.variable("batch_normalization/moving_mean").as<double>()[c], moving[c], 1e-13));
      CHECK(ops_test::near(s.variable("batch_normalization/moving_variance").as<double>()[c], spread[c], 1e-13));
    }
  }
  graph h(mode::evaluate);
  const value w = h.placeholder("x", {batch, 2}, float64), z = batch_norm(w);
  session t{h};
  t.initialize();
  const double centre[] = {1, 2}, width[] = {4, 9};
  std::memcpy(t.mutable_variable("batch_normalization/moving_mean").mutable_data(), centre, sizeof centre);
  std::memcpy(t.mutable_variable("batch_normalization/moving_variance").mutable_data(), width, sizeof width);
  const auto out = t.run(z, {{w, x}}).as<double>();
  for (std::size_t i = 0; i < 12; ++i)
    CHECK(ops_test::near(out[i], (x[i] - centre[i % 2]) / std::sqrt(width[i % 2] + 1e-3), 1e-13));
}

TEST_CASE("attention sees nothing that comes later, and agrees with plain loops") {
  const int time = 5, width = 6, heads = 2, each = 3;
  ops_test::draw random{4};
  graph g;
  const value v = g.placeholder("x", {batch, time, width}, float64), y = multi_head_attention(v, {.heads = heads});
  session s{g};
  s.initialize(5);
  auto x = random.between<double>(-1, 1, static_cast<std::size_t>(2 * time * width));
  const auto run = [&] {
    const auto out = s.run(y, {{v, x}}).as<double>();
    return std::vector<double>(out.begin(), out.end());
  };
  const auto before = run();
  const auto kernel = s.variable("multi_head_attention/qkv/kernel").as<double>();
  const auto project = s.variable("multi_head_attention/projection/kernel").as<double>();
  const auto part = [&](int n, int t, int which, int h, int k) {  // q, k or v of one position
    double sum = 0;
    for (int c = 0; c < width; ++c)
      sum += x[static_cast<std::size_t>((n * time + t) * width + c)] *
             kernel[static_cast<std::size_t>(c * 3 * width + which * width + h * each + k)];
    return sum;
  };
  for (int n = 0; n < 2; ++n)
    for (int t = 0; t < time; ++t) {
      double joined[6] = {};
      for (int h = 0; h < heads; ++h) {
        double weight[5] = {}, total = 0;
        for (int u = 0; u <= t; ++u) {
          double score = 0;
          for (int k = 0; k < each; ++k) score += part(n, t, 0, h, k) * part(n, u, 1, h, k);
          total += weight[u] = std::exp(score / std::sqrt(3.0));
        }
        for (int u = 0; u <= t; ++u)
          for (int k = 0; k < each; ++k) joined[h * each + k] += weight[u] / total * part(n, u, 2, h, k);
      }
      for (int c = 0; c < width; ++c) {
        double sum = 0;
        for (int k = 0; k < width; ++k) sum += joined[k] * project[static_cast<std::size_t>(k * width + c)];
        CHECK(ops_test::near(before[static_cast<std::size_t>((n * time + t) * width + c)], sum, 1e-13));
      }
    }
  for (int c = 0; c < width; ++c) x[static_cast<std::size_t>(3 * width + c)] += 1;  // position 3 of the first example
  const auto after = run();
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool may_change = i >= static_cast<std::size_t>(3 * width) && i < static_cast<std::size_t>(time * width);
    if (!may_change) CHECK(after[i] == before[i]);
  }
  CHECK(after != before);
}

TEST_CASE("dropout in a session draws anew in every run") {
  graph g(mode::train);
  const value v = g.placeholder("x", {batch, 100}), y = dropout(v, 0.5);
  session s{g};
  s.initialize(21);
  const std::vector<float> x(100, 1.0f);
  const auto run = [&] {
    const auto out = s.run(y, {{v, x}}).as<float>();
    return std::vector<float>(out.begin(), out.end());
  };
  const auto first = run(), second = run();
  CHECK(first != second);
  CHECK(run() != second);
  CHECK(s.variable("random_step").as<std::int64_t>()[0] == 2);
  s.mutable_variable("random_step").mutable_as<std::int64_t>()[0] = 0;  // the number of the last run that drew
  CHECK(run() == second);
  s.mutable_variable("random_step").mutable_as<std::int64_t>()[0] = -1;
  CHECK(run() == first);
}
