#include "refusal.hpp"

#include <gradus/ops/conv.hpp>

using namespace gradus;
using refusal_test::check;

static_assert([] {
  graph g;
  const value x = g.placeholder("x", {batch, 28, 27, 3}), w = g.variable("w", {5, 3, 3, 8});
  return conv2d(x, w).dims() == shape{batch, 24, 25, 8} &&
         conv2d(x, w, {.padding = padding::same}).dims() == shape{batch, 28, 27, 8} &&
         conv2d(x, w, {.strides = {2, 3}, .padding = padding::same}).dims() == shape{batch, 14, 9, 8} &&
         conv2d(x, w, {.strides = 2}).dims() == shape{batch, 12, 13, 8} &&
         max_pool(x).dims() == shape{batch, 14, 13, 3} &&
         avg_pool(x, {.pool_size = 3, .strides = 2, .padding = padding::same}).dims() == shape{batch, 14, 14, 3} &&
         g.refusal.empty();
}());

TEST_CASE("what convolutions and pools refuse") {
  check<[](graph& g) {
    conv2d(g.placeholder("x", {batch, 8, 8, 3}), g.variable("w", {3, 3, 4, 8}));
  }>("Conv2D: the image has 3 channels, the filters take 4 (x[batch, 8, 8, 3], w[3, 3, 4, 8])");
  check<[](graph& g) {
    conv2d(g.placeholder("x", {batch, 64}), g.variable("w", {3, 3, 4, 8}));
  }>("Conv2D: operand 0 must be images [n, height, width, channels], only n may be batch (x[batch, 64], w[3, 3, 4, "
     "8])");
  check<[](graph& g) {
    conv2d(g.placeholder("x", {batch, 8, 8, 3}), g.variable("w", {3, 3}));
  }>("Conv2D: operand 1 must be filters [height, width, in, out] (x[batch, 8, 8, 3], w[3, 3])");
  check<[](graph& g) {
    conv2d(g.placeholder("x", {batch, 2, 8, 3}), g.variable("w", {3, 3, 3, 8}));
  }>("Conv2D: a window 3 x 3 does not fit into the image; use padding::same (x[batch, 2, 8, 3], w[3, 3, 3, 8])");
  check<[](graph& g) {
    conv2d(g.placeholder("x", {batch, 8, 8, 3}), g.variable("w", {3, 3, 3, 8}), {.strides = 0});
  }>("Conv2D: windows and strides must be positive, got window 3 x 3, strides 0, 0 (x[batch, 8, 8, 3], w[3, 3, 3, 8])");
  check<[](graph& g) {
    conv2d(g.placeholder("x", {batch, 8, 8, 3}), g.variable("w", {3, 3, 3, 8}, {.type = float64}));
  }>("Conv2D: operands must all be float32 or all float64, got float32 and float64; use cast (x[batch, 8, 8, 3], w[3, "
     "3, 3, "
     "8])");
  check<[](graph& g) {
    max_pool(g.placeholder("x", {batch, 8, 8}));
  }>("MaxPool: takes images [n, height, width, channels], only n may be batch (x[batch, 8, 8])");
  check<[](graph& g) {
    avg_pool(g.placeholder("x", {batch, 8, 8, 1}, int32));
  }>("AvgPool: operands must all be float32 or all float64, got int32 and int32; use cast (x[batch, 8, 8, 1])");
}

TEST_CASE("a gradient of another shape than its op's result, as a graph from a file may hold, is refused") {
  graph g;
  const value x = g.placeholder("x", {2, 8, 8, 4}), filters = g.variable("w", {3, 5, 3, 4});
  const auto refuses = [&](const card& op, std::initializer_list<value> operands, detail::window_attr a) {
    try {
      g.add_with(op, operands, a);
    } catch (const invalid_argument&) {
      return true;
    }
    return false;
  };
  const auto zeros_of = [&](const shape& s) { return g.placeholder("dy", s); };
  const detail::window_attr window{3, 3, 1, 1, 1, 8, 8}, pool{2, 2, 2, 2, 0, 8, 8};
  CHECK(!refuses(cards::conv2d_filter, {x, zeros_of({2, 8, 8, 5})}, window));
  CHECK(!refuses(cards::conv2d_input, {filters, zeros_of({2, 8, 8, 5})}, window));
  CHECK(!refuses(cards::max_pool_grad, {x, zeros_of({2, 4, 4, 4})}, pool));
  CHECK(!refuses(cards::avg_pool_grad, {zeros_of({2, 4, 4, 4})}, pool));
  for (const shape& dy : {shape{1, 8, 8, 5}, {2, 7, 8, 5}, {2, 8, 9, 5}, {2, 8, 8}})
    CHECK(refuses(cards::conv2d_filter, {x, zeros_of(dy)}, window));
  for (const shape& dy : {shape{2, 7, 8, 5}, {2, 8, 9, 5}, {2, 8, 8, 4}, {2, 8, 8}})
    CHECK(refuses(cards::conv2d_input, {filters, zeros_of(dy)}, window));
  for (const shape& dy : {shape{1, 4, 4, 4}, {2, 5, 4, 4}, {2, 4, 3, 4}, {2, 4, 4, 3}, {2, 4, 4}})
    CHECK(refuses(cards::max_pool_grad, {x, zeros_of(dy)}, pool));
  for (const shape& dy : {shape{2, 5, 4, 4}, {2, 4, 3, 4}, {2, 4, 4}})
    CHECK(refuses(cards::avg_pool_grad, {zeros_of(dy)}, pool));
}
