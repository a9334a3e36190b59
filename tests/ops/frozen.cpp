#include "refusal.hpp"

#include <gradus/ops/frozen.hpp>
#include <gradus/ops/loss.hpp>
#include <gradus/ops/model.hpp>
#include <gradus/pass/autodiff.hpp>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace gradus;
using refusal_test::check;

namespace {
constexpr float kernel[] = {1, -2, 4, 0.5f, 0, -4}, bias[] = {0.5f, 0, -1};
constexpr auto dense_weights = quantize_weights<frozen_dense_weights<2, 3>>(kernel, bias);
constexpr frozen_conv2d_weights<3, 2, 4, 5> conv_weights{};
constexpr frozen_depthwise_conv2d_weights<3, 3, 4, 2> depthwise_weights{};
constexpr frozen_dense_weights<70000, 1> long_weights{};
}  // namespace

static_assert(dense_weights.codes[0] == 127 && dense_weights.codes[3] == 64 && dense_weights.codes[1] == -127 &&
              dense_weights.codes[4] == 0 && dense_weights.codes[2] == 127 && dense_weights.codes[5] == -127);
static_assert(dense_weights.scales[1] == 2.0f / 127 && dense_weights.bias[2] == -1);
static_assert([] {
  graph g;
  const value x = g.placeholder("x", {batch, 9, 8, 4}), rows = g.placeholder("rows", {batch, 7, 2});
  return frozen_dense<dense_weights>(rows).dims() == shape{batch, 7, 3} &&
         frozen_conv2d<conv_weights>(x).dims() == shape{batch, 7, 7, 5} &&
         frozen_conv2d<conv_weights>(x, {.strides = {2, 3}, .padding = padding::same, .activation = relu}).dims() ==
             shape{batch, 5, 3, 5} &&
         frozen_depthwise_conv2d<depthwise_weights>(x, {.strides = 2}).dims() == shape{batch, 4, 3, 8} &&
         g.refusal.empty();
}());

TEST_CASE("weights in 8 bits are at most half a code from themselves") {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<float> w(12 * 5);
    const float wide = std::ldexp(1.0f, static_cast<int>(random() % 60) - 30);
    for (float& x : w) x = (static_cast<float>(random() % 2001) / 1000 - 1) * wide;
    const auto q = quantize_weights<frozen_conv2d_weights<2, 2, 3, 5>>(w);
    for (std::size_t i = 0; i < w.size(); ++i)
      REQUIRE(std::fabs(static_cast<double>(q.codes[i]) * q.scales[i % 5] - w[i]) <= 0.5001 * q.scales[i % 5]);
  }
  const std::vector<float> none(6, 0.0f);
  CHECK(quantize_weights<frozen_dense_weights<2, 3>>(none).scales[0] == 0);
  CHECK(quantize_weights<frozen_depthwise_conv2d_weights<1, 1, 2, 3>>(none).codes[5] == 0);
}

TEST_CASE("what quantize_weights refuses") {
  const auto said = [](auto f) {
    try {
      f();
    } catch (const error& e) {
      CHECK(e.kind() == status::invalid_argument);
      return std::string(e.what());
    }
    return std::string();
  };
  using weights = frozen_dense_weights<2, 3>;
  std::vector<float> w(6, 1.0f), b(3, 0.0f);
  CHECK(said([&] { quantize_weights<weights>(std::span(w).first(5)); }) ==
        "quantize_weights: expected 6 weights and 3 or no biases, got 5 and 0");
  CHECK(said([&] { quantize_weights<weights>(w, std::span(b).first(2)); }) ==
        "quantize_weights: expected 6 weights and 3 or no biases, got 6 and 2");
  b[1] = std::numeric_limits<float>::infinity();
  CHECK(said([&] { quantize_weights<weights>(w, b); }) == "bias 1 of frozen weights is inf");
  w[4] = std::nanf("");
  CHECK(said([&] { quantize_weights<weights>(w); }) == "weight 4 of frozen weights is nan");
}

TEST_CASE("what frozen layers refuse") {
  check<[](graph& g) {
    frozen_dense<dense_weights>(g.placeholder("x", {batch, 3}));
  }>("frozen_dense: needs a float32 operand of rank 2 or more whose last extent is 2, got float32 [batch, 3]");
  check<[](graph& g) {
    frozen_dense<dense_weights>(g.placeholder("x", {batch, 2}, float64));
  }>("frozen_dense: needs a float32 operand of rank 2 or more whose last extent is 2, got float64 [batch, 2]");
  check<[](graph& g) {
    frozen_conv2d<conv_weights>(g.placeholder("x", {batch, 64}));
  }>("frozen_conv2d: needs float32 images [n, height, width, 4], got float32 [batch, 64]");
  check<[](graph& g) {
    frozen_conv2d<conv_weights>(g.placeholder("x", {batch, 8, 8, 3}));
  }>("frozen_conv2d: needs float32 images [n, height, width, 4], got float32 [batch, 8, 8, 3]");
  check<[](graph& g) {
    frozen_depthwise_conv2d<depthwise_weights>(g.placeholder("x", {batch, 8, 8, 3}));
  }>("frozen_depthwise_conv2d: needs float32 images [n, height, width, 4], got float32 [batch, 8, 8, 3]");
  check<[](graph& g) {
    frozen_conv2d<conv_weights>(g.placeholder("x", {batch, 2, 8, 4}));
  }>("FrozenConv2D: a window 3 x 2 does not fit into the image; use padding::same ([batch, 2, 8, 4], "
     "[batch, 2])");
  check<[](graph& g) {
    frozen_dense<long_weights>(g.placeholder("x", {batch, 70000}));
  }>("FrozenMatMul: a number of the result is a sum of 70000 products; 32 bits hold those of 66311 ([batch, "
     "70000], [batch, 2])");
}

TEST_CASE("a trained variable below frozen weights is refused") {
  check<[](graph& g) {
    const value x = g.placeholder("x", {batch, 2});
    const value w = g.variable("w", {2});
    const value loss = reduce_mean(frozen_dense<dense_weights>(x * w));
    gradients(g, std::array{loss}, std::array{w});
  }>("FrozenMatMul with weights [2, 3]: has no gradient, and a variable that is trained lies below it; give the "
     "layer of that one .trainable = false (the policy freeze does not reach gradients), or use a layer of float32 "
     "with .trainable = false here");
}
