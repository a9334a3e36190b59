#include "refusal.hpp"

#include <gradus/ops/arrange.hpp>

using namespace gradus;
using refusal_test::check;

static_assert([] {
  graph g;
  const value x = g.placeholder("x", {batch, 4, 6}), y = g.placeholder("y", {batch, 2, 6});
  return transpose(x, {2, 0, 1}).dims() == shape{6, batch, 4} &&
         slice(x, {0, 1, 2}, {-1, 3, -1}).dims() == shape{batch, 3, 4} &&
         slice(x, {0, 4, 0}, {batch, 0, 6}).dims() == shape{batch, 0, 6} &&
         concat({x, y, x}, 1).dims() == shape{batch, 10, 6} && concat({x, x}, 0).dims() == shape{2 * batch, 4, 6} &&
         pad(x, {{0, 0}, {1, 2}, {0, 3}}).dims() == shape{batch, 7, 9} &&
         expand_dims(x, -1).dims() == shape{batch, 4, 6, 1} && expand_dims(x, 0).dims() == shape{1, batch, 4, 6} &&
         squeeze(expand_dims(x, 1)).dims() == x.dims() &&
         squeeze(expand_dims(expand_dims(x, 0), 0), {1}).dims() == shape{1, batch, 4, 6} &&
         flatten(x).dims() == shape{batch, 24} && stack({x, x, x}, 1).dims() == shape{batch, 3, 4, 6} &&
         split<3>(x, -1)[2].dims() == shape{batch, 4, 2} &&
         causal_mask(g.placeholder("s", {batch, 8, 5, 5}), 0).dims() == shape{batch, 8, 5, 5} &&
         range(g, 7, int64).type() == int64 && g.refusal.empty();
}());

// One lowering for equal movements: what a kernel sees does not name axes that move together.
namespace {
constexpr bool lowers_to(graph& g, value y, std::int64_t rows, std::array<int, max_extents> dims) {
  lowering l{g.view(), g.nodes[y.id]};
  g.nodes[y.id].op->lower(l);
  for (unsigned i = 0; i < max_extents; ++i)
    if (l.dims[i] != dims[i]) return false;
  return l.rows == rows;
}
}  // namespace
static_assert([] {
  graph g;
  const value x = g.placeholder("x", {batch, 3, 4, 5});
  return lowers_to(g, transpose(x, {0, 3, 1, 2}), -1, {3, 0, 5, 12, 0, 0, 0, 0, 2, 1}) &&
         // (batch 3) rows of 4 x 5, of which 2 x 5 are taken from 1 x 5 on
         lowers_to(g, slice(x, {0, 0, 1, 0}, {-1, -1, 2, -1}), -3, {2, 0, 10, 0, 0, 0, 0, 5, 0, 0, 0, 0, 20}) &&
         lowers_to(g, concat({x, x}, 2), -3, {0, 2, 20, 20});
}());

TEST_CASE("what arranging refuses") {
  CHECK_THROWS_WITH_AS(concat({}, 0), "concat: expected at least one value, found none", invalid_argument);
  CHECK_THROWS_WITH_AS(stack({}), "stack: expected at least one value, found none", invalid_argument);
  check<[](graph& g) {
    transpose(g.placeholder("x", {batch, 2, 3}), {0, 2, 2});
  }>("Transpose: the axes must be a permutation of 0 ... 2, axis 2 is 2 (x[batch, 2, 3])");
  check<[](graph& g) {
    transpose(g.placeholder("x", {batch, 2}), {0});
  }>("Transpose: 1 axes were given for [batch, 2]");
  check<[](graph& g) {
    slice(g.placeholder("x", {batch, 4}), {0, 2}, {-1, 3});
  }>("Slice: begin 2 and size 3 do not fit extent 4 of axis 1 (x[batch, 4])");
  check<[](graph& g) {
    slice(g.placeholder("x", {batch, 4}), {1, 0}, {-1, -1});
  }>("Slice: axis 0 holds the batch and can only be taken whole (x[batch, 4])");
  check<[](graph& g) {
    slice(g.placeholder("x", {4}), {0, 0}, {1, 1});
  }>("Slice: needs a begin and a size for each axis of [4]");
  check<[](graph& g) {
    slice(g.placeholder("x", {4, 4, 4, 4, 4, 4}), {1, 1, 1, 1, 1, 1}, {2, 2, 2, 2, 2, 2});
  }>("Slice: cuts six axes at once; slice twice (x[4, 4, 4, 4, 4, 4])");
  check<[](graph& g) {
    pad(g.placeholder("x", {batch, 4}), {{1, 0}, {0, 0}});
  }>("PadV2: axis 0 holds the batch and cannot be padded (x[batch, 4], [])");
  check<[](graph& g) {
    pad(g.placeholder("x", {2}), {{-1, 0}});
  }>("PadV2: paddings must be 0 or more, axis 0 has -1, 0 (x[2], [])");
  check<[](graph& g) {
    concat({g.placeholder("a", {batch, 2, 3}), g.placeholder("b", {batch, 2, 4})}, 1);
  }>("ConcatV2: operand 1 must have the dtype and, but for axis 1, the extents of operand 0 (a[batch, 2, 3], b[batch, "
     "2, "
     "4])");
  check<[](graph& g) {
    concat({g.placeholder("a", {batch, 2}), g.placeholder("b", {3, 2})}, 0);
  }>("ConcatV2: operand 1 must have the dtype and, but for axis 0, the extents of operand 0 (a[batch, 2], b[3, 2])");
  check<[](graph& g) { concat({g.placeholder("a", {2})}, 1); }>("ConcatV2: axis 1 is outside [2] (a[2])");
  check<[](graph& g) {
    causal_mask(g.placeholder("s", {batch, 3, 4}), 0);
  }>("CausalMask: the last two extents must be equal and known (s[batch, 3, 4], [])");
  check<[](graph& g) {
    (void)split<3>(g.placeholder("x", {batch, 4}), -1);
  }>("split: axis -1 of [batch, 4] is not 3 equal pieces of known extent");
  check<[](graph& g) { expand_dims(g.placeholder("x", {2}), 3); }>("expand_dims: no place for axis 3 in [2]");
  check<[](graph& g) { squeeze(g.placeholder("x", {2, 1}), {0}); }>("squeeze: axis 0 of [2, 1] is not 1");
  check<[](graph& g) { range(g, 0); }>("Range: needs a count > 0, got 0");
}
