// A small ConvNet, LeNet's shape: two convolutions, two pools, three dense layers.
#include "program.hpp"

constexpr auto model = [](gradus::graph& g) {
  using namespace gradus;
  const auto image = g.placeholder("image", {batch, 28, 28, 1});
  const auto label = g.placeholder("label", {batch}, int32);
  auto x = relu(conv2d(image, {.filters = 6, .kernel_size = 5, .padding = padding::same, .name = "c1"}));
  x = max_pool(x, {.pool_size = 2, .strides = 2});
  x = relu(conv2d(x, {.filters = 16, .kernel_size = 5, .name = "c2"}));
  x = flatten(max_pool(x, {.pool_size = 2, .strides = 2}));
  x = relu(dense(x, {.units = 120, .name = "f1"}));
  x = relu(dense(x, {.units = 84, .name = "f2"}));
  const auto logits = dense(x, {.units = 10, .name = "f3"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, label)), .metrics = {}, .predictions = {}};
};
int main() { return train<model>(); }
