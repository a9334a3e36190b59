#include "refusal.hpp"

#include <gradus/ops/gather.hpp>

using namespace gradus;
using refusal_test::check;

static_assert([] {
  graph g;
  const value table = g.variable("table", {50, 8}), ids = g.placeholder("ids", {batch, 5}, int32);
  return gather(table, ids).dims() == shape{batch, 5, 8} && one_hot(ids, 7).dims() == shape{batch, 5, 7} &&
         one_hot(ids, 7, 1, 0, int64).type() == int64 &&
         embedding_lookup(table, g.constant(3, int32)).dims() == shape{8} && g.refusal.empty();
}());

// The gradient of a table is rows: as many as indices, whatever their axes were.
static_assert([] {
  graph g;
  const value table = g.variable("table", {50, 8, 2}), ids = g.placeholder("ids", {batch, 5}, int32);
  const value y = gather(table, ids), dy = g.placeholder("dy", y.dims());
  gradient_value to[2];
  const char wanted[2] = {1, 0};
  backward b{g, y.id, dy, to, wanted};
  cards::gather.gradient(b);
  return to[0].sparse() && to[0].values.dims() == shape{5 * batch, 8, 2} && to[0].indices.dims() == shape{5 * batch} &&
         !to[1] && rows_to_dense(to[0].values, to[0].indices, table.dims()).dims() == table.dims();
}());

TEST_CASE("what rows by number refuse") {
  check<[](graph& g) {
    gather(g.variable("table", {5, 2}), g.placeholder("ids", {batch}));
  }>("Gather: indices must be int32 or int64, got float32 (table[5, 2], ids[batch])");
  check<[](graph& g) { gather(g.constant(1), g.placeholder("ids", {batch}, int32)); }>(
      "Gather: the table needs an axis of rows ([], ids[batch])");
  check<[](graph& g) {
    gather(g.variable("t", {5, 2, 2, 2}), g.placeholder("ids", {batch, 1, 1, 1}, int32));
  }>("Gather: the result would have more than 6 axes (t[5, 2, 2, 2], ids[batch, 1, 1, 1])");
  check<[](graph& g) {
    rows_to_dense(g.placeholder("v", {batch, 3}), g.placeholder("i", {batch}, int32), {5, 4});
  }>("RowsToDense: values [batch, 3] at rows [batch] do not fit a table [5, 4] (v[batch, 3], i[batch])");
  check<[](graph& g) {
    rows_to_dense(g.placeholder("v", {batch, 3}, bfloat16), g.placeholder("i", {batch}, int32), {5, 3});
  }>("RowsToDense: bfloat16 is stored and not computed with; cast to float32, and back (v[batch, 3], i[batch])");
  check<[](graph& g) {
    rows_to_dense(g.placeholder("v", {batch, 3}, boolean), g.placeholder("i", {batch}, int64), {5, 3});
  }>("RowsToDense: takes numbers, got bool; use cast (v[batch, 3], i[batch])");
  check<[](graph& g) { one_hot(g.placeholder("i", {batch}, int32), 0); }>(
      "OneHot: needs a depth > 0 and a free axis, got depth 0 (i[batch], [], [])");
  check<[](graph& g) { one_hot(g.placeholder("x", {batch}), 3); }>(
      "OneHot: indices must be int32 or int64, got float32 (x[batch], [], [])");
}
