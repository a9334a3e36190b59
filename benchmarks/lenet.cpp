// A whole training step of LeNet-5 on batches of 32 images of 28 x 28: two convolutions with pools, three dense layers,
// gradient descent. As in training.cpp, but a program of its own: it takes longest to compile.
#include "training.hpp"

#include <gradus/ops/conv.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

namespace {

using namespace training;

constexpr auto lenet = [](graph& g) {
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

const gradient_descent descent{.rate = 1e-2};

const auto registered = {
    add("W3/f_lenet_b32_sgd", [](auto& s) { steps(s, compiled<lenet>{}, descent, 32, 10); }),
    add("interpreted/W3/f_lenet_b32_sgd", [](auto& s) { steps(s, interpreted{lenet}, descent, 32, 10); })};

}  // namespace
