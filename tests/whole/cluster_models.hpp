// Three models of every kind of layer whose parts of a batch can be computed apart, and their data: what clusters
// train.
#pragma once
#include <gradus/codecs.hpp>
#include <gradus/gradus.hpp>

#include <vector>

namespace cluster_models {
using namespace gradus;

// Dropout, so that what a worker draws is compared as well.
inline constexpr auto mlp = [](graph& g) {
  const value x = g.placeholder("x", {batch, 13}), y = g.placeholder("y", {batch}, int32);
  const value h = dropout(tanh(dense(x, {.units = 16, .name = "hidden"})), 0.25);
  const value logits = dense(h + sigmoid(dense(h, {.units = 16, .name = "beside"})), {.units = 5, .name = "logits"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, y))};
};
inline constexpr auto lenet = [](graph& g) {
  const value x = g.placeholder("x", {batch, 13}), y = g.placeholder("y", {batch}, int32);
  value image = reshape(matmul(x, g.variable("spread", {13, 64}, {.init = random_normal(0, 0.3F)})), {-1, 8, 8, 1});
  image = max_pool(relu(conv2d(image, {.filters = 4, .padding = padding::same, .name = "first"})),
                   {.pool_size = 2, .strides = 2});
  image = avg_pool(tanh(conv2d(image, {.filters = 5, .kernel_size = 2, .strides = 1, .name = "second"})),
                   {.pool_size = 2, .strides = 1});
  const value logits = dense(flatten(image), {.units = 5, .name = "logits"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, y))};
};
// Letters are numbers, not rows of a table, whose gradient would come as rows.
inline constexpr auto gpt = [](graph& g) {
  constexpr int time = 13, width = 16;
  const value x = g.placeholder("x", {batch, time}), y = g.placeholder("y", {batch}, int32);
  value h = dense(reshape(x, {-1, time, 1}), {.units = width, .name = "letter"});
  h = h + g.variable("position", {time, width}, {.init = random_normal(0, 0.02F)});
  h = h + multi_head_attention(layer_norm(h), {.heads = 2, .dropout_rate = 0.1F});
  h = h + dense(gelu(dense(layer_norm(h), {.units = 32, .name = "up"})), {.units = width, .name = "down"});
  const value logits = dense(flatten(layer_norm(h)), {.units = 5, .name = "logits"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, y))};
};

inline constexpr int examples = 8 * 13;
struct points {
  std::vector<float> x;
  std::vector<std::int32_t> y;
  points() {
    for (int i = 0; i < examples; ++i) {
      for (int k = 0; k < 13; ++k) x.push_back(static_cast<float>((i * 37 + k * 11) % 23) / 11.0F - 1.0F);
      y.push_back((i * 7) % 5);
    }
  }
  auto batches(int size) const { return from_spans("x", x, extents{13}, "y", y, extents{}).repeat().batch(size); }
};

}  // namespace cluster_models
