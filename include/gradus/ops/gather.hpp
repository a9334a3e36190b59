// This header gathers rows of a table by their numbers, with a sparse gradient, and has one_hot.
#pragma once
#include "reduce.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// Returns the product of the extents from axis `from` on. It is an int unless the tensor is a table and `from` is 0;
// then it is the largest int, so that what is made of it is refused.
constexpr int product(const shape& s, int from) {
  std::int64_t n = 1;
  for (int i = from; i < s.rank; ++i) n *= s.dims[i];
  return n > most_counted ? most_counted : static_cast<int>(n);
}
constexpr bool is_index(dtype t) { return t == int32 || t == int64; }
GRADUS_CARD_FUNCTION void infer_gather(inference& r) {
  const shape& table = r.in(0);
  r.type = r.in_type(0), r.dims = r.in(1);
  if (!is_index(r.in_type(1))) return r.refuse("indices must be int32 or int64, got ", r.in_type(1));
  if (!is_counted(r.in(1))) return r.refuse("takes at most ", most_counted, " indices; gather them in parts");
  if (table.rank == 0) return r.refuse("the table needs an axis of rows");
  if (r.dims.rank + table.rank - 1 > max_rank) return r.refuse("the result would have more than ", max_rank, " axes");
  for (int i = 1; i < table.rank; ++i) r.dims.push(table.dims[i]);
}
// dims: {0 = rows of the result, width of a row, rows of the table}
GRADUS_CARD_FUNCTION void lower_gather(lowering& l) {
  l.rows = count(l.in(1));
  l.dims[1] = product(l.in(0), 1), l.dims[2] = l.in(0).dims[0];
}
// dims: {0 = lists of rows, rows of a list, width of a row, rows of the table}
GRADUS_CARD_FUNCTION void lower_gathered_sum(lowering& l) {
  const int each = l.in(1).back();
  l.rows = count(l.in(1)) / each;
  l.dims[1] = each, l.dims[2] = product(l.in(0), 1), l.dims[3] = l.in(0).dims[0];
}
GRADUS_CARD_FUNCTION void infer_rows_to_dense(inference& r) {
  const shape wanted = r.attributes<shape_attr>().get();
  const shape &values = r.in(0), &indices = r.in(1);
  r.type = r.in_type(0), r.dims = wanted;
  if (!is_index(r.in_type(1))) return r.refuse("indices must be int32 or int64, got ", r.in_type(1));
  bool fits = wanted.rank > 0 && values.rank == wanted.rank && indices.rank == 1 && indices.dims[0] == values.dims[0];
  for (int i = 1; fits && i < wanted.rank; ++i) fits = values.dims[i] == wanted.dims[i];
  if (!fits) return r.refuse("values ", values, " at rows ", indices, " do not fit a table ", wanted);
  refuse_no_numbers(r);
}
GRADUS_CARD_FUNCTION void lower_rows_to_dense(lowering& l) {
  l.rows = count(l.in(1));
  l.dims[1] = product(l.out(), 1), l.dims[2] = l.out().dims[0];
}
GRADUS_CARD_FUNCTION void grad_gather(backward&);
GRADUS_CARD_FUNCTION void grad_rows_to_dense(backward&);
struct depth_attr {
  int depth;
};
GRADUS_CARD_FUNCTION void infer_one_hot(inference& r) {
  const int depth = r.attributes<depth_attr>().depth;
  r.type = r.in_type(1), r.dims = r.in(0);
  if (!is_index(r.in_type(0))) return r.refuse("indices must be int32 or int64, got ", r.in_type(0));
  if (r.in_type(2) != r.type || r.in(1).rank != 0 || r.in(2).rank != 0)
    return r.refuse("the values on and off must be scalars of one dtype");
  if (depth <= 0 || r.dims.rank == max_rank) return r.refuse("needs a depth > 0 and a free axis, got depth ", depth);
  r.dims.push(depth);
}
// dims: {0 = rows, depth}
GRADUS_CARD_FUNCTION void lower_one_hot(lowering& l) { l.rows = count(l.in(0)), l.dims[1] = l.out().back(); }

}  // namespace detail

namespace cards {
inline constexpr card gather{"Gather", 2, trait::tables, infer_gather, grad_gather, lower_gather},
    // What pass/fuse.hpp makes of a gather [..., k, width] that is multiplied by weights [..., k, 1] and summed over k:
    // the rows are added where they lie. A model does not name it.
    gathered_sum{"GatherSum", 3, trait::tables, nullptr, nullptr, lower_gathered_sum},
    rows_to_dense{"RowsToDense", 2, trait::tables, infer_rows_to_dense, grad_rows_to_dense, lower_rows_to_dense},
    one_hot{"OneHot", 3, trait::blocks, infer_one_hot, nullptr, lower_one_hot};
}  // namespace cards

// Returns rows of the table: params [rows, ...] at indices [...] (int32 or int64). The gradient of the table is sparse:
// it has those rows only. An index outside [0, rows) is an error when the step runs.
constexpr value gather(value params, value indices) { return params.g->add(cards::gather, {params, indices}); }
// Does the same by TensorFlow's name: returns rows ids[...] of the table params.
constexpr value embedding_lookup(value params, value ids) { return gather(params, ids); }
// Returns zeros of this shape with values[i] [n, ...] added to row indices[i], in the order of i: a sparse gradient
// made dense.
constexpr value rows_to_dense(value values, value indices, const shape& dims) {
  return values.g->add_with(cards::rows_to_dense, {values, indices}, detail::to_attr(dims));
}
// Returns `on` at the index and `off` elsewhere, along a new last axis; an index outside [0, depth) gives `off`
// everywhere.
constexpr value one_hot(value indices, int depth, double on = 1, double off = 0, dtype type = float32) {
  graph& g = *indices.g;
  return g.add_with(cards::one_hot, {indices, g.constant(on, type), g.constant(off, type)}, detail::depth_attr{depth});
}
namespace detail {
GRADUS_CARD_FUNCTION void grad_gather(backward& b) {
  if (!b.wants(0)) return;
  shape rows{static_cast<int>(count(b.in(1).dims()))}, values = rows;
  for (int i = 1; i < b.in(0).dims().rank; ++i) values.push(b.in(0).dims().dims[i]);
  const value dy = reshape(b.dy, values), at = reshape(b.in(1), rows);
  b.to_rows(0, dy, at);
}
GRADUS_CARD_FUNCTION void grad_rows_to_dense(backward& b) {
  if (b.wants(0)) b.to(0, gather(b.dy, b.in(1)));
}
}  // namespace detail

}  // namespace gradus
