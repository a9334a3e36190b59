// Broadcasting and summing are each other's gradients; both need to see the same numbers with other extents (reshape).
#pragma once
#include "../graph/rules.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// Sets `out` to the extents that both broadcast to: right-aligned, equal or 1. Returns false if they do not fit.
constexpr bool broadcast(const shape& a, const shape& b, shape& out) {
  out.rank = a.rank > b.rank ? a.rank : b.rank;
  for (int i = 1; i <= out.rank; ++i) {
    const int x = i <= a.rank ? a.dims[a.rank - i] : 1, y = i <= b.rank ? b.dims[b.rank - i] : 1;
    if (x != y && x != 1 && y != 1) return false;
    out.dims[out.rank - i] = x == 1 ? y : x;
  }
  return true;
}
struct shape_attr {
  int rank, dims[max_rank];
  constexpr shape get() const {
    shape s;
    for (int i = 0; i < rank && i < max_rank; ++i) s.push(dims[i]);  // a graph may come from elsewhere
    return s;
  }
};
constexpr shape_attr to_attr(const shape& s) {
  shape_attr a{s.rank, {}};
  for (int i = 0; i < s.rank; ++i) a.dims[i] = s.dims[i];
  return a;
}
GRADUS_CARD_FUNCTION void infer_broadcast_to(inference& r) {
  r.type = r.in_type(0);
  const shape wanted = r.attributes<shape_attr>().get();
  if (!broadcast(r.in(0), wanted, r.dims) || !(r.dims == wanted)) r.refuse("cannot broadcast to ", wanted);
}
struct reduce_attr {
  int mask;  // bit i: axis i is summed away
  int keep;  // keep it as an extent of 1
};
// For an op that computes in its operands' dtype: refuses bool and the 16-bit floats.
constexpr void refuse_no_numbers(inference& r) {
  if (r.type == boolean) r.refuse("takes numbers, got bool; use cast");
  if (is_16_bit_float(r.type)) r.refuse(r.type, " is stored and not computed with; cast to float32, and back");
}
GRADUS_CARD_FUNCTION void infer_reduce(inference& r) {
  const auto a = r.attributes<reduce_attr>();
  const shape& s = r.in(0);
  r.type = r.in_type(0);
  for (int i = 0; i < s.rank; ++i) {
    if ((a.mask >> i & 1) == 0)
      r.dims.push(s.dims[i]);
    else if (a.keep != 0)
      r.dims.push(1);
  }
  if (a.mask >> s.rank != 0) r.refuse("an axis is outside the operand's rank ", s.rank);
  refuse_no_numbers(r);
}
// Collapses neighbouring axes that are both kept or both reduced: dims = {whether the first is reduced, extents...},
// padded with 1.
GRADUS_CARD_FUNCTION void lower_reduce(lowering& l) {
  const auto a = l.attributes<reduce_attr>();
  const shape& s = l.in(0);
  int groups = 0, last = -1;
  l.dims[0] = s.rank == 0 ? 0 : a.mask & 1;
  for (int i = 0; i < s.rank; ++i) {
    const int reduced = a.mask >> i & 1;
    if (reduced != last)
      l.dims[2 + groups++] = s.dims[i];
    else
      l.dims[1 + groups] *= s.dims[i];
    last = reduced;
  }
  if (groups == 0) l.dims[2 + groups++] = 1;
  l.dims[1] = groups;
}
GRADUS_CARD_FUNCTION void infer_reshape(inference& r) {
  const shape wanted = r.attributes<shape_attr>().get();
  r.type = r.in_type(0), r.dims = wanted;
  if (!is_table(wanted) || count(wanted) != count(r.in(0)))
    r.refuse("cannot see ", r.in(0), " as ", wanted, ": the number of elements differs");
}
GRADUS_CARD_FUNCTION void infer_same(inference& r) { r.type = r.in_type(0), r.dims = r.in(0); }
GRADUS_CARD_FUNCTION void grad_identity(backward& b) { b.to(0, b.dy); }
GRADUS_CARD_FUNCTION void grad_sum(backward&);
GRADUS_CARD_FUNCTION void grad_reshape(backward&);
GRADUS_CARD_FUNCTION void grad_broadcast_to(backward&);
}  // namespace detail

namespace cards {
using namespace gradus::detail;
inline constexpr card broadcast_to{"BroadcastTo", 1, trait::elementwise, infer_broadcast_to, grad_broadcast_to},
    sum{"Sum", 1, 0, infer_reduce, grad_sum, lower_reduce};
inline constexpr card reshape{"Reshape", 1, trait::view, infer_reshape, grad_reshape},
    identity{"Identity", 1, trait::view, infer_same, grad_identity},
    stop_gradient{"StopGradient", 1, trait::view | trait::blocks, infer_same},
    prevent_gradient{"PreventGradient", 1, trait::view, infer_same};
}  // namespace cards

// Returns x repeated along axes of extent 1 and along new axes at the front, as NumPy broadcasts. The gradient sums
// over them.
constexpr value broadcast_to(value x, const shape& dims) {
  return x.dims() == dims ? x : x.g->add_with(cards::broadcast_to, {x}, detail::to_attr(dims));
}
// Returns zeros of x's shape and dtype. They do not depend on x's numbers: x gets no gradient from them, and NaN in x
// does not reach them.
constexpr value zeros_like(value x) { return broadcast_to(x.g->constant(0, x.type()), x.dims()); }
// Returns ones of x's shape and dtype, which do not depend on x's numbers either.
constexpr value ones_like(value x) { return broadcast_to(x.g->constant(1, x.type()), x.dims()); }
// Returns x with other extents, in the same row-major order. Write `batch` for the extent that holds the batch.
constexpr value reshape(value x, const shape& dims) {
  return x.dims() == dims ? x : x.g->add_with(cards::reshape, {x}, detail::to_attr(dims));
}
// Returns x as a node of its own, which a session can fetch by this name.
constexpr value identity(value x, std::string_view name = {}) { return x.g->add(cards::identity, {x}, name); }
// Returns x, and passes no gradient on: gradients(stop_gradient(x), x) is None.
constexpr value stop_gradient(value x) { return x.g->add(cards::stop_gradient, {x}); }
// Returns x; it is an error to take its gradient (tf.prevent_gradient).
constexpr value prevent_gradient(value x) { return x.g->add(cards::prevent_gradient, {x}); }

namespace detail {
constexpr int axis_mask(value x, std::initializer_list<int> axes) {
  if (axes.size() == 0) return (1 << x.dims().rank) - 1;
  int mask = 0;
  for (int a : axes) {
    const int at = a < 0 ? a + x.dims().rank : a;
    if (at < 0 || at >= x.dims().rank)
      x.g->refuse("axis ", a, " is outside ", x.dims());
    else
      mask |= 1 << at;
  }
  return mask;
}
constexpr value reduce(const card& op, value x, int mask, bool keep) {
  return x.g->add_with(op, {x}, reduce_attr{mask, keep});
}
}  // namespace detail

// Returns the sum over the axes (negative: from the back), or over all if none is given.
constexpr value reduce_sum(value x, std::initializer_list<int> axes = {}, bool keep_dims = false) {
  return detail::reduce(cards::sum, x, detail::axis_mask(x, axes), keep_dims);
}
// Returns x summed to the extents of an operand that was broadcast to x's.
constexpr value sum_to(value x, const shape& dims) {
  const shape from = x.dims();
  if (from == dims) return x;
  int mask = 0;
  for (int i = 1; i <= from.rank; ++i)
    if (i > dims.rank || (dims.dims[dims.rank - i] == 1 && from.dims[from.rank - i] != 1)) mask |= 1 << (from.rank - i);
  if (mask != 0) x = detail::reduce(cards::sum, x, mask, false);
  return reshape(x, dims);
}

namespace detail {
// Returns v, which has the result's extents, with the reduced axes put back as extents of 1.
constexpr value kept(backward& b, value v) {
  shape s = b.in(0).dims();
  const auto a = b.attributes<reduce_attr>();
  for (int i = 0; i < s.rank; ++i)
    if (a.mask >> i & 1) s.dims[i] = 1;
  return reshape(v, s);
}
GRADUS_CARD_FUNCTION void grad_sum(backward& b) { b.to(0, broadcast_to(kept(b, b.dy), b.in(0).dims())); }
GRADUS_CARD_FUNCTION void grad_reshape(backward& b) { b.to(0, reshape(b.dy, b.in(0).dims())); }
GRADUS_CARD_FUNCTION void grad_broadcast_to(backward& b) { b.to(0, sum_to(b.dy, b.in(0).dims())); }
}  // namespace detail

}  // namespace gradus
