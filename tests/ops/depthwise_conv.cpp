#include "refusal.hpp"

#include <gradus/ops/depthwise_conv.hpp>

using namespace gradus;
using refusal_test::check;

static_assert([] {
  graph g;
  const value x = g.placeholder("x", {batch, 28, 27, 3}), w = g.variable("w", {5, 3, 3, 2});
  return depthwise_conv2d(x, w).dims() == shape{batch, 24, 25, 6} &&
         depthwise_conv2d(x, w, {.padding = padding::same}).dims() == shape{batch, 28, 27, 6} &&
         depthwise_conv2d(x, w, {.strides = {2, 3}, .padding = padding::same}).dims() == shape{batch, 14, 9, 6} &&
         depthwise_conv2d(x, w, {.strides = 2}).dims() == shape{batch, 12, 13, 6} &&
         depthwise_conv2d(x, g.variable("one", {1, 1, 3, 1})).dims() == x.dims() && g.refusal.empty();
}());

TEST_CASE("what depthwise convolutions refuse") {
  check<[](graph& g) {
    depthwise_conv2d(g.placeholder("x", {batch, 8, 8, 3}), g.variable("w", {3, 3, 4, 1}));
  }>("DepthwiseConv2dNative: the image has 3 channels, the filters take 4 (x[batch, 8, 8, 3], w[3, 3, 4, 1])");
  check<[](graph& g) {
    depthwise_conv2d(g.placeholder("x", {batch, 64}), g.variable("w", {3, 3, 4, 1}));
  }>("DepthwiseConv2dNative: operand 0 must be images [n, height, width, channels], only n may be batch (x[batch, 64], "
     "w[3, 3, 4, 1])");
  check<[](graph& g) {
    depthwise_conv2d(g.placeholder("x", {batch, 8, 8, 3}), g.variable("w", {3, 3, 3}));
  }>("DepthwiseConv2dNative: operand 1 must be filters [height, width, channels, multiplier] (x[batch, 8, 8, 3], w[3, "
     "3, 3])");
  check<[](graph& g) {
    depthwise_conv2d(g.placeholder("x", {batch, 8, 8, 3}), g.placeholder("w", {3, 3, 3, 0}));
  }>("DepthwiseConv2dNative: operand 1 must be filters [height, width, channels, multiplier] (x[batch, 8, 8, 3], w[3, "
     "3, 3, 0])");
  check<[](graph& g) {
    depthwise_conv2d(g.placeholder("x", {batch, 0, 8, 3}), g.variable("w", {3, 3, 3, 1}));
  }>("DepthwiseConv2dNative: operand 0 must be images [n, height, width, channels], only n may be batch (x[batch, 0, "
     "8, 3], w[3, 3, 3, 1])");
  check<[](graph& g) {
    depthwise_conv2d(g.placeholder("x", {batch, 2, 8, 3}), g.variable("w", {3, 3, 3, 2}));
  }>("DepthwiseConv2dNative: a window 3 x 3 does not fit into the image; use padding::same (x[batch, 2, 8, 3], w[3, 3, "
     "3, 2])");
  check<[](graph& g) {
    depthwise_conv2d(g.placeholder("x", {batch, 8, 8, 3}), g.variable("w", {3, 3, 3, 1}), {.strides = 0});
  }>("DepthwiseConv2dNative: windows and strides must be positive, got window 3 x 3, strides 0, 0 (x[batch, 8, 8, 3], "
     "w[3, 3, 3, 1])");
  check<[](graph& g) {
    depthwise_conv2d(g.placeholder("x", {batch, 8, 8, 3}), g.variable("w", {3, 3, 3, 1}, {.type = float64}));
  }>("DepthwiseConv2dNative: operands must all be float32 or all float64, got float32 and float64; use cast (x[batch, "
     "8, 8, 3], w[3, 3, 3, 1])");
  check<[](graph& g) {
    depthwise_conv2d(g.placeholder("x", {batch, 1, 1, 65536}), g.placeholder("w", {1, 1, 65536, 65536}));
  }>("Placeholder \"w\": [1, 1, 65536, 65536] has more than 2147483647 elements behind its first axis, or more than "
     "2^44 "
     "in all; choose smaller extents, or make several tensors of it");
}

TEST_CASE("gradients that do not lie on the windows are refused: kernels read where shapes say") {
  using detail::window_attr;
  check<[](graph& g) {
    g.add_with(cards::depthwise_conv2d_input, {g.placeholder("w", {3, 3, 4, 2}), g.placeholder("dy", {batch, 6, 6, 4})},
               window_attr{3, 3, 1, 1, 0, 8, 8});
  }>("DepthwiseConv2dNativeBackpropInput: the gradient is not that of a result for images [batch, 8, 8, 4] (w[3, 3, 4, "
     "2], dy[batch, 6, 6, 4])");
  check<[](graph& g) {
    g.add_with(cards::depthwise_conv2d_input, {g.placeholder("w", {3, 3, 4, 2}), g.placeholder("dy", {batch, 6, 6, 8})},
               window_attr{2, 3, 1, 1, 0, 8, 8});
  }>("DepthwiseConv2dNativeBackpropInput: takes filters 2 x 3 and a gradient of rank 4 (w[3, 3, 4, 2], dy[batch, 6, 6, "
     "8])");
  check<[](graph& g) {
    g.add_with(cards::depthwise_conv2d_input, {g.placeholder("w", {3, 3, 4, 2}), g.placeholder("dy", {batch, 6, 6, 8})},
               window_attr{3, 3, 1, 1, 0, 0, 8});
  }>("DepthwiseConv2dNativeBackpropInput: images [batch, 0, 8, 4] have no pixel (w[3, 3, 4, 2], dy[batch, 6, 6, 8])");
  check<[](graph& g) {
    g.add_with(cards::depthwise_conv2d_filter,
               {g.placeholder("x", {batch, 8, 8, 4}), g.placeholder("dy", {batch, 6, 6, 6})},
               window_attr{3, 3, 1, 1, 0, 8, 8});
  }>("DepthwiseConv2dNativeBackpropFilter: the gradient is not that of a result for images [batch, 8, 8, 4] (x[batch, "
     "8, 8, 4], dy[batch, 6, 6, 6])");
  check<[](graph& g) {
    g.add_with(cards::depthwise_conv2d_filter, {g.placeholder("x", {batch, 8, 8, 4}), g.placeholder("dy", {batch, 6})},
               window_attr{3, 3, 1, 1, 0, 8, 8});
  }>("DepthwiseConv2dNativeBackpropFilter: takes images and a gradient of rank 4 (x[batch, 8, 8, 4], dy[batch, 6])");
}
