// This header has matrix products, with either operand transposed if wanted, and over leading batch extents.
#pragma once
#include "reduce.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
struct matmul_attr {
  int transpose_a, transpose_b;
};
struct matmul_extents {
  int m, k, n;
};
GRADUS_CARD_FUNCTION void infer_matmul(inference& r) {
  infer_floats_apart(r);
  const auto t = r.attributes<matmul_attr>();
  const shape &a = r.in(0), &b = r.in(1);
  if (a.rank < 2 || b.rank < 2) return r.refuse("operands must be matrices");
  const int m = a[t.transpose_a != 0 ? -1 : -2], ka = a[t.transpose_a != 0 ? -2 : -1];
  const int kb = b[t.transpose_b != 0 ? -1 : -2], n = b[t.transpose_b != 0 ? -2 : -1];
  if (ka != kb) return r.refuse("inner extents differ: ", ka, " and ", kb);
  r.dims = a;
  if (b.rank > 2) {
    bool same = a.rank == b.rank;
    for (int i = 0; same && i < a.rank - 2; ++i) same = a[i] == b[i];
    if (!same) return r.refuse("leading extents differ");
  } else if (a.rank > 2 && t.transpose_a != 0) {
    return r.refuse("a transposed operand 0 of rank > 2 needs an operand 1 of its rank");
  }
  r.dims.dims[a.rank - 2] = m, r.dims.dims[a.rank - 1] = n;
}
// dims: {matrices, m, k, n, transpose_a, transpose_b}. With one matrix on the right, the rows of all matrices on the
// left are treated as the rows of one matrix.
GRADUS_CARD_FUNCTION void lower_matmul(lowering& l) {
  const auto t = l.attributes<matmul_attr>();
  const shape &a = l.in(0), &b = l.in(1);
  int lead = 1;
  for (int i = 0; i < a.rank - 2; ++i) lead *= a[i];
  const int rows = a[t.transpose_a != 0 ? -1 : -2];
  l.dims[0] = b.rank > 2 ? lead : 1;
  l.dims[1] = b.rank > 2 ? rows : lead * rows;
  l.dims[2] = a[t.transpose_a != 0 ? -2 : -1];
  l.dims[3] = l.out().back();
  l.dims[4] = t.transpose_a, l.dims[5] = t.transpose_b;
}
GRADUS_CARD_FUNCTION void grad_matmul(backward&);
}  // namespace detail

namespace cards {
inline constexpr card matmul{"MatMul", 2, 0, infer_matmul, grad_matmul, lower_matmul};
}

struct matmul_options {
  bool transpose_a = false, transpose_b = false;
};
// Returns a [..., m, k] times b [k, n] or [..., k, n], which is [..., m, n]. The dtype is float32 or float64.
constexpr value matmul(value a, value b, const matmul_options& o = {}) {
  return a.g->add_with(cards::matmul, {a, b}, detail::matmul_attr{o.transpose_a, o.transpose_b});
}

namespace detail {
constexpr value as_matrix(value x) {  // folds the leading extents into the rows
  const shape& s = x.dims();
  int rows = 1;
  for (int i = 0; i < s.rank - 1; ++i) rows *= s[i];
  return reshape(x, {rows, s.back()});
}
GRADUS_CARD_FUNCTION void grad_matmul(backward& b) {
  const auto t = b.attributes<matmul_attr>();
  value x = b.in(0), w = b.in(1), dy = b.dy;
  const bool ta = t.transpose_a != 0, tb = t.transpose_b != 0;
  if (b.wants(0)) {
    if (!ta)
      b.to(0, matmul(dy, w, {.transpose_b = !tb}));
    else
      b.to(0, matmul(w, dy, {.transpose_a = tb, .transpose_b = true}));
  }
  if (!b.wants(1)) return;
  if (w.dims().rank == 2 && x.dims().rank > 2) x = as_matrix(x), dy = as_matrix(dy);
  if (!tb)
    b.to(1, matmul(x, dy, {.transpose_a = !ta}));
  else
    b.to(1, matmul(dy, x, {.transpose_a = true, .transpose_b = ta}));
}
}  // namespace detail

}  // namespace gradus
