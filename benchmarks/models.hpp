// The models of the workloads W3, which several programs train.
#pragma once
#include "training.hpp"

#include <gradus/ops/conv.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>

namespace training {

inline constexpr auto regression = [](graph& g) {  // W3a: 8-16-1
  const auto x = g.placeholder("x", {batch, 8}), y = g.placeholder("y", {batch, 1});
  const auto h = relu(dense(x, {.units = 16, .name = "hidden"}));
  return model_spec{
      .loss = reduce_mean(square(dense(h, {.units = 1, .name = "out"}) - y)), .metrics = {}, .predictions = {}};
};

// W3b: mlp<32, 64, 64, 4>, W3c: mlp<784, 128, 0, 10>, W3d: mlp<784, 512, 256, 10>.
template <int Inputs, int First, int Second, int Classes>
constexpr auto mlp = [](graph& g) {
  const auto x = g.placeholder("x", {batch, Inputs}), y = g.placeholder("y", {batch}, int32);
  auto h = relu(dense(x, {.units = First, .name = "first"}));
  if (Second != 0) h = relu(dense(h, {.units = Second, .name = "second"}));
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(dense(h, {.units = Classes, .name = "out"}), y)),
                    .metrics = {},
                    .predictions = {}};
};

inline constexpr auto lenet = [](graph& g) {  // W3f
  const auto x = g.placeholder("x", {batch, 28, 28, 1});
  const auto y = g.placeholder("y", {batch}, int32);
  auto h = max_pool(relu(conv2d(x, {.filters = 6, .kernel_size = 5, .padding = padding::same, .name = "first"})));
  h = max_pool(relu(conv2d(h, {.filters = 16, .kernel_size = 5, .name = "second"})));
  h = relu(dense(reshape(h, {batch, 400}), {.units = 120, .name = "third"}));
  h = relu(dense(h, {.units = 84, .name = "fourth"}));
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(dense(h, {.units = 10, .name = "out"}), y)),
                    .metrics = {},
                    .predictions = {}};
};

inline constexpr int gpt_length = 64, gpt_symbols = 128;
inline constexpr auto gpt = [](graph& g) {  // W3g
  constexpr int width = 128, layers = 4, heads = 4;
  const auto ids = g.placeholder("ids", {batch, gpt_length}, int32),
             next = g.placeholder("next", {batch, gpt_length}, int32);
  const auto table = g.variable("symbols", {gpt_symbols, width}, {.init = random_normal(0, 0.06f)});
  const auto places = g.variable("places", {gpt_length, width}, {.init = random_normal(0, 0.06f)});
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

// Residual blocks on images of 32 x 32: two of 32 channels, two of 64, without normalization.
inline constexpr auto residual = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 32, 32, 3});
  const auto y = g.placeholder("y", {batch}, int32);
  const auto convolved = [](value v, int filters, const char* name) {
    return conv2d(v, {.filters = filters, .kernel_size = 3, .padding = padding::same, .name = name});
  };
  auto h = relu(convolved(x, 32, "stem"));
  for (const int channels : {32, 64}) {
    if (channels != 32) h = relu(convolved(h, channels, "widen"));
    for (int i = 0; i < 2; ++i) {
      const auto inner = relu(convolved(h, channels, "inner"));
      h = relu(h + convolved(inner, channels, "outer"));
    }
  }
  h = reshape(avg_pool(h, {.pool_size = 32}), {batch, 64});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(dense(h, {.units = 10, .name = "out"}), y)),
                    .metrics = {},
                    .predictions = {}};
};

}  // namespace training
