// These ops move elements and compute nothing: transpose, slice, concat, pad, causal_mask. gather.hpp reads rows by
// their numbers.
//
// Lowering collapses neighbouring axes that move together, so that a kernel sees the fewest and longest loops.
#pragma once
#include "gather.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// ---- transpose
struct transpose_attr {
  int perm[max_rank];
};
GRADUS_CARD_FUNCTION void infer_transpose(inference& r) {
  const auto a = r.attributes<transpose_attr>();
  const shape& s = r.in(0);
  r.type = r.in_type(0);
  int seen = 0;
  for (int i = 0; i < s.rank; ++i) {
    const int from = a.perm[i];
    if (from < 0 || from >= s.rank || (seen >> from & 1) != 0)
      return r.refuse("the axes must be a permutation of 0 ... ", s.rank - 1, ", axis ", i, " is ", from);
    seen |= 1 << from;
    r.dims.push(s.dims[from]);
  }
}
// dims: {loops, 6 extents of the result, 6 places of those loops in the operand}. A first axis that stays first becomes
// the rows.
GRADUS_CARD_FUNCTION void lower_transpose(lowering& l) {
  const auto a = l.attributes<transpose_attr>();
  const shape& s = l.in(0);
  int loops = 0, first[max_rank] = {};  // the operand's axis where each loop begins
  for (int i = 0; i < s.rank; ++i) {
    const int n = s.dims[a.perm[i]];
    if (i > 0 && a.perm[i] == a.perm[i - 1] + 1)
      l.dims[loops] *= n;
    else
      first[loops] = a.perm[i], l.dims[++loops] = n;
  }
  for (int i = 0; i < loops; ++i)
    for (int j = 0; j < loops; ++j) l.dims[7 + i] += first[j] < first[i];
  if (loops == 0) l.dims[++loops] = 1;
  l.dims[0] = loops;
  if (l.dims[7] == 0) l.rows = l.dims[1], l.dims[1] = 0;
}
GRADUS_CARD_FUNCTION void grad_transpose(backward&);

// ---- slice and pad: one is the other's gradient
struct box_attr {
  int low[max_rank], high[max_rank];  // slice: begin, size; pad: before, after
};
// An axis that is taken whole joins the axis before it. dims: {loops, 5 x inner extent, 5 x offset, 5 x outer extent}.
struct box {
  int loops = 0, in[max_rank] = {}, offset[max_rank] = {}, out[max_rank] = {};
  constexpr void axis(int n, int at, int m) {
    if (loops > 0 && n == m)
      in[loops - 1] *= n, offset[loops - 1] *= n, out[loops - 1] *= n;
    else
      in[loops] = n, offset[loops] = at, out[loops++] = m;
  }
  constexpr void lower(lowering& l) {
    if (loops == 0) axis(1, 0, 1);
    l.dims[0] = loops;
    for (int i = 0; i < loops; ++i) l.dims[1 + i] = in[i], l.dims[6 + i] = offset[i], l.dims[11 + i] = out[i];
    if (in[0] == out[0]) l.rows = in[0], l.dims[1] = l.dims[11] = 0;
  }
};
inline constexpr int max_cuts = 5;
GRADUS_CARD_FUNCTION void infer_slice(inference& r) {
  const auto a = r.attributes<box_attr>();
  const shape& s = r.in(0);
  r.type = r.in_type(0), r.dims = s;
  box b;
  for (int i = 0; i < s.rank; ++i) {
    const int n = s.dims[i], begin = a.low[i], size = a.high[i];
    if (n < 0 && (begin != 0 || size != n)) return r.refuse("axis ", i, " holds the batch and can only be taken whole");
    if (n >= 0 && (begin < 0 || size < 0 || begin > n || size > n - begin))
      return r.refuse("begin ", begin, " and size ", size, " do not fit extent ", n, " of axis ", i);
    r.dims.dims[i] = size;
    b.axis(size, begin, n);
  }
  if (b.loops > max_cuts) r.refuse("cuts six axes at once; slice twice");
}
GRADUS_CARD_FUNCTION void lower_slice(lowering& l) {
  const auto a = l.attributes<box_attr>();
  box b;
  for (int i = 0; i < l.in(0).rank; ++i) b.axis(a.high[i], a.low[i], l.in(0).dims[i]);
  b.lower(l);
}
GRADUS_CARD_FUNCTION void infer_pad(inference& r) {
  const auto a = r.attributes<box_attr>();
  const shape& s = r.in(0);
  r.type = r.in_type(0), r.dims = s;
  if (r.in(1).rank != 0 || r.in_type(1) != r.type) return r.refuse("the fill must be a scalar of ", r.type);
  box b;
  for (int i = 0; i < s.rank; ++i) {
    if (a.low[i] < 0 || a.high[i] < 0)
      return r.refuse("paddings must be 0 or more, axis ", i, " has ", a.low[i], ", ", a.high[i]);
    if (s.dims[i] < 0 && (a.low[i] != 0 || a.high[i] != 0))
      return r.refuse("axis ", i, " holds the batch and cannot be padded");
    const std::int64_t n = std::int64_t{s.dims[i]} + a.low[i] + a.high[i];
    if (n > most_counted) return r.refuse("axis ", i, " would have more than ", most_counted, " elements; pad it less");
    r.dims.dims[i] = static_cast<int>(n);
  }
  if (!is_counted(r.dims)) return;  // it is refused for its size
  for (int i = 0; i < s.rank; ++i) b.axis(s.dims[i], a.low[i], r.dims.dims[i]);
  if (b.loops > max_cuts) r.refuse("pads six axes at once; pad twice");
}
GRADUS_CARD_FUNCTION void lower_pad(lowering& l) {
  const auto a = l.attributes<box_attr>();
  box b;
  for (int i = 0; i < l.in(0).rank; ++i) b.axis(l.in(0).dims[i], a.low[i], l.out().dims[i]);
  b.lower(l);
}
GRADUS_CARD_FUNCTION void grad_slice(backward&);
GRADUS_CARD_FUNCTION void grad_pad(backward&);

// ---- concat
struct axis_attr {
  int axis;
};
inline constexpr int max_pieces = max_extents - 2;
GRADUS_CARD_FUNCTION void infer_concat(inference& r) {
  const int axis = r.attributes<axis_attr>().axis;
  if (r.count == 0) return r.refuse("needs at least one operand");
  r.type = r.in_type(0), r.dims = r.in(0);
  if (axis < 0 || axis >= r.dims.rank) return r.refuse("axis ", axis, " is outside ", r.dims);
  for (int k = 1; k < r.count; ++k) {
    const shape& s = r.in(k);
    bool fits = s.rank == r.dims.rank && r.in_type(k) == r.type;
    for (int i = 0; fits && i < s.rank; ++i)
      fits = i == axis ? (s.dims[i] < 0) == (r.dims.dims[i] < 0) : s.dims[i] == r.dims.dims[i];
    if (!fits)
      return r.refuse("operand ", k, " must have the dtype and, but for axis ", axis, ", the extents of operand 0");
    const std::int64_t all = std::int64_t{r.dims.dims[axis]} + s.dims[axis];
    if (all > most_counted || all < -most_counted)
      return r.refuse("axis ", axis, " would have more than ", most_counted, " elements; join fewer, or work in parts");
    r.dims.dims[axis] = static_cast<int>(all);
  }
}
// dims: {0 = rows, operands, run of each operand}
GRADUS_CARD_FUNCTION void lower_concat(lowering& l) {
  const int axis = l.attributes<axis_attr>().axis;
  l.rows = 1, l.dims[1] = l.n.inputs;
  for (int i = 0; i < axis; ++i) l.rows *= l.in(0).dims[i];
  for (int k = 0; k < l.n.inputs; ++k) {
    l.dims[2 + k] = 1;
    for (int i = axis; i < l.in(k).rank; ++i) l.dims[2 + k] *= l.in(k).dims[i];
  }
}
GRADUS_CARD_FUNCTION void grad_concat(backward&);

// ---- the rest
GRADUS_CARD_FUNCTION void infer_causal_mask(inference& r) {
  const shape& s = r.in(0);
  r.type = r.in_type(0), r.dims = s;
  if (s.rank < 2 || s[-1] != s[-2] || s[-1] <= 0) return r.refuse("the last two extents must be equal and known");
  if (r.in(1).rank != 0 || r.in_type(1) != r.type) r.refuse("the fill must be a scalar of ", r.type);
}
// dims: {0 = matrices, extent}
GRADUS_CARD_FUNCTION void lower_causal_mask(lowering& l) {
  l.dims[1] = l.in(0).back();
  l.rows = 1;
  for (int i = 0; i < l.in(0).rank - 2; ++i) l.rows *= l.in(0).dims[i];
}
GRADUS_CARD_FUNCTION void grad_causal_mask(backward&);
struct range_attr {
  int count, type;
};
GRADUS_CARD_FUNCTION void infer_range(inference& r) {
  const auto a = r.attributes<range_attr>();
  r.type = static_cast<dtype>(a.type);
  r.dims.push(a.count);
  if (a.count <= 0) r.refuse("needs a count > 0, got ", a.count);
  if (r.type == boolean) r.refuse("takes numbers, got bool");
  if (!can_hold(r.type, a.count - 1)) r.refuse("counts to ", a.count - 1, ", which is no ", r.type);
}
GRADUS_CARD_FUNCTION void lower_range(lowering& l) { l.rows = l.out().dims[0]; }
}  // namespace detail

namespace cards {
inline constexpr card transpose{"Transpose", 1, 0, infer_transpose, grad_transpose, lower_transpose},
    slice{"Slice", 1, 0, infer_slice, grad_slice, lower_slice}, pad{"PadV2", 2, 0, infer_pad, grad_pad, lower_pad},
    concat{"ConcatV2", -1, 0, infer_concat, grad_concat, lower_concat},
    causal_mask{"CausalMask", 2, 0, infer_causal_mask, grad_causal_mask, lower_causal_mask},
    range{"Range", 0, trait::blocks, infer_range, nullptr, lower_range};
}  // namespace cards

// ---- what a user writes
// Returns x with its axes permuted: axis i of the result is axis perm[i] of x.
constexpr value transpose(value x, std::initializer_list<int> perm) {
  detail::transpose_attr a{};
  if (static_cast<int>(perm.size()) != x.dims().rank) {
    x.g->refuse("Transpose: ", static_cast<int>(perm.size()), " axes were given for ", x.dims());
    return x;
  }
  int i = 0;
  for (int p : perm) a.perm[i++] = p;
  return x.g->add_with(cards::transpose, {x}, a);
}
// Returns the part of x that starts at `begin` and has these sizes; a size of -1 reaches to the end. The axis that
// holds the batch must be taken whole: begin 0, size -1.
constexpr value slice(value x, std::initializer_list<int> begin, std::initializer_list<int> size) {
  const shape& s = x.dims();
  if (static_cast<int>(begin.size()) != s.rank || begin.size() != size.size()) {
    x.g->refuse("Slice: needs a begin and a size for each axis of ", s);
    return x;
  }
  detail::box_attr a{};
  for (int i = 0; i < s.rank; ++i) {
    a.low[i] = begin.begin()[i], a.high[i] = size.begin()[i];
    if (a.high[i] == -1) a.high[i] = static_cast<int>(std::int64_t{s.dims[i]} - a.low[i]);  // any `begin` may be here
  }
  return x.g->add_with(cards::slice, {x}, a);
}
struct padding_of_axis {
  int before = 0, after = 0;
};
// Returns x inside a frame of `fill`: pad(x, {{0, 0}, {1, 2}}).
constexpr value pad(value x, std::initializer_list<padding_of_axis> paddings, double fill = 0) {
  if (static_cast<int>(paddings.size()) != x.dims().rank) {
    x.g->refuse("PadV2: ", static_cast<int>(paddings.size()), " paddings were given for ", x.dims());
    return x;
  }
  detail::box_attr a{};
  int i = 0;
  for (const auto& p : paddings) a.low[i] = p.before, a.high[i++] = p.after;
  return x.g->add_with(cards::pad, {x, x.g->constant(fill, x.type())}, a);
}

namespace detail {
constexpr int axis_of(value x, int axis, int room = 0) { return axis < 0 ? axis + x.dims().rank + room : axis; }
constexpr value concat(graph& g, const value* list, int n, int axis) {
  if (n <= max_pieces) return g.add(cards::concat, list, n, &axis, 1);
  seq<value> joined;  // these are more than a kernel takes: pieces are joined first
  for (int i = 0; i < n; i += max_pieces)
    joined.push(concat(g, list + i, n - i < max_pieces ? n - i : max_pieces, axis));
  return concat(g, joined.first, joined.count, axis);
}
}  // namespace detail
// Returns the values joined one after another along the axis (negative: from the back). Along it, a batch extent joins
// batch extents only.
constexpr value concat(std::initializer_list<value> values, int axis) {
  if (values.size() == 0) raise(status::invalid_argument, "concat: expected at least one value, found none");
  const value first = *values.begin();
  return detail::concat(*first.g, values.begin(), static_cast<int>(values.size()), detail::axis_of(first, axis));
}
// Returns x with a new axis of extent 1 at `axis` (negative: from the back).
constexpr value expand_dims(value x, int axis) {
  const int at = detail::axis_of(x, axis, 1);
  shape s;
  if (at < 0 || at > x.dims().rank || x.dims().rank == max_rank) {
    x.g->refuse("expand_dims: no place for axis ", axis, " in ", x.dims());
    return x;
  }
  for (int i = 0; i <= x.dims().rank; ++i) {
    if (i == at) s.push(1);
    if (i < x.dims().rank) s.push(x.dims().dims[i]);
  }
  return reshape(x, s);
}
// Returns x without the named axes, whose extents must be 1; if none is named, without every axis of extent 1.
constexpr value squeeze(value x, std::initializer_list<int> axes = {}) {
  const int mask = detail::axis_mask(x, axes);
  shape s;
  for (int i = 0; i < x.dims().rank; ++i) {
    const int n = x.dims().dims[i];
    const bool named = (mask >> i & 1) != 0;
    if (named && n != 1 && axes.size() != 0) x.g->refuse("squeeze: axis ", i, " of ", x.dims(), " is not 1");
    if (!named || n != 1) s.push(n);
  }
  return reshape(x, s);
}
// Returns x [n, a, b, ...] as [n, a b ...].
constexpr value flatten(value x) {
  if (x.dims().rank == 0) return reshape(x, {1, 1});
  return reshape(x, {x.dims().dims[0], detail::product(x.dims(), 1)});
}
// Returns values of one shape, joined along a new axis.
constexpr value stack(std::initializer_list<value> values, int axis = 0) {
  if (values.size() == 0) raise(status::invalid_argument, "stack: expected at least one value, found none");
  detail::seq<value> list;
  const value first = *values.begin();
  for (const value& v : values) list.push(expand_dims(v, axis));
  return detail::concat(*first.g, list.first, list.count, detail::axis_of(first, axis, 1));
}
// Returns N equal pieces of x along the axis: auto [q, k, v] = split<3>(x, -1);
template <int N>
constexpr std::array<value, std::size_t{N}> split(value x, int axis) {
  std::array<value, std::size_t{N}> pieces{};
  for (auto& p : pieces) p = x;
  const shape& s = x.dims();
  const int at = detail::axis_of(x, axis);
  if (at < 0 || at >= s.rank || s.dims[at] < 0 || s.dims[at] % N != 0) {
    x.g->refuse("split: axis ", axis, " of ", s, " is not ", N, " equal pieces of known extent");
    return pieces;
  }
  const int size = s.dims[at] / N;
  detail::box_attr a{};
  for (int i = 0; i < s.rank; ++i) a.high[i] = i == at ? size : s.dims[i];
  for (auto& p : pieces) p = x.g->add_with(cards::slice, {x}, a), a.low[at] += size;
  return pieces;
}
// Returns x [..., t, t] where column <= row, and `fill` in the triangle above the diagonal, which holds what a position
// must not see.
constexpr value causal_mask(value x, double fill) {
  return x.g->add(cards::causal_mask, {x, x.g->constant(fill, x.type())});
}
// Returns 0, 1, ..., n - 1.
constexpr value range(graph& g, int n, dtype type = int32) {
  return g.add_with(cards::range, {}, detail::range_attr{n, static_cast<int>(type)});
}

// ---- gradients
namespace detail {
GRADUS_CARD_FUNCTION void grad_transpose(backward& b) {
  const auto a = b.attributes<transpose_attr>();
  transpose_attr back{};
  for (int i = 0; i < b.dy.dims().rank; ++i) back.perm[a.perm[i]] = i;
  b.to(0, b.g.add_with(cards::transpose, {b.dy}, back));
}
GRADUS_CARD_FUNCTION void grad_slice(backward& b) {
  auto a = b.attributes<box_attr>();
  const shape& s = b.in(0).dims();
  for (int i = 0; i < s.rank; ++i) a.high[i] = s.dims[i] - a.low[i] - a.high[i];
  b.to(0, b.g.add_with(cards::pad, {b.dy, b.g.constant(0, b.dy.type())}, a));
}
GRADUS_CARD_FUNCTION void grad_pad(backward& b) {
  auto a = b.attributes<box_attr>();
  const shape& s = b.in(0).dims();
  for (int i = 0; i < s.rank; ++i) a.high[i] = s.dims[i];
  const value inner = b.g.add_with(cards::slice, {b.dy}, a);
  if (b.wants(0)) b.to(0, inner);
  if (!b.wants(1)) return;
  const value all = reduce_sum(b.dy), inside = reduce_sum(inner);
  b.to(1, all - inside);
}
GRADUS_CARD_FUNCTION void grad_concat(backward& b) {
  const int axis = b.attributes<axis_attr>().axis;
  if (b.dy.dims().dims[axis] < 0) {
    if (b.operands() == 1)
      b.to(0, b.dy);
    else
      b.g.refuse("ConcatV2: no gradient along the axis that holds the batch");
    return;
  }
  box_attr a{};
  for (int i = 0; i < b.dy.dims().rank; ++i) a.high[i] = b.dy.dims().dims[i];
  for (int k = 0; k < b.operands(); ++k) {
    a.high[axis] = b.in(k).dims().dims[axis];
    if (b.wants(k)) b.to(k, b.g.add_with(cards::slice, {b.dy}, a));
    a.low[axis] += a.high[axis];
  }
}
GRADUS_CARD_FUNCTION void grad_causal_mask(backward& b) {
  const value below = causal_mask(b.dy, 0);
  if (b.wants(0)) b.to(0, below);
  if (b.wants(1)) b.to(1, reduce_sum(b.dy - below));
}
}  // namespace detail

}  // namespace gradus
