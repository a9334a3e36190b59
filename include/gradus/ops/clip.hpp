// These functions clip tensors of a graph, as TensorFlow 1.15's tf.clip_by_*, with its arithmetic, its edge cases and
// its gradients. They are composed of other ops, so every clip can be differentiated again, compiled and fused. For
// arrays in memory see tensor/clip.hpp, which lists the names in other libraries; for policies of an optimizer,
// update/clip.hpp.
//
//   auto h = clip::by_value(dense(x, {.units = 8}), -1, 1);
//   auto all = clip::by_global_norm(g, {dw, db, {}}, 5.0);        // all.list[0].dense, ...; all.norm
//
// A gradient may be rows of a table (gradient_value): its values are clipped, and rows that repeat are clipped one by
// one.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "reduce.hpp"

namespace gradus::inline GRADUS_BUILD::clip {

// A bound is a number, or a tensor of the operand's dtype that broadcasts to the operand without enlarging it.
struct bound {
  value tensor;
  double number = 0;
  std::int64_t whole_number = 0;
  bool is_number = true, whole = false;
  int end = 0;  // 1: no int64 is above it, -1: none is below it
  template <class N>
    requires std::is_arithmetic_v<N>
  constexpr bound(N n) : number(static_cast<double>(n)), whole(std::is_integral_v<N>) {
    if constexpr (std::is_integral_v<N>) {
      using whole_numbers = std::numeric_limits<std::int64_t>;
      whole_number = static_cast<std::int64_t>(n);
      const bool over = n > N(0) && (whole_number < 0 || whole_number == whole_numbers::max());
      end = over ? 1 : whole_number == whole_numbers::min() ? -1 : 0;
    }
  }
  constexpr bound(value t) : tensor(t), is_number(false) {}
};

namespace detail {
constexpr bool fit(std::string_view name, value t, const bound& b) {
  graph& g = *t.g;
  if (b.is_number) {
    if (b.whole || is_float(t.type())) return true;
    g.refuse(name, ": a tensor of ", t.type(), " takes whole numbers as bounds, got a float");
    return false;
  }
  if (!b.tensor) {
    g.refuse(name, ": the bound is no tensor of this graph");
    return false;
  }
  const shape dims = t.dims(), other = b.tensor.dims();
  shape both;
  if (gradus::detail::broadcast(dims, other, both) && both == dims) return true;
  g.refuse(name, ": a bound ", other, " would enlarge the tensor ", dims);
  return false;
}
constexpr value tensor_of(value t, const bound& b) {
  if (!b.is_number) return b.tensor;
  return b.whole && b.end == 0 ? t.g->constant(b.whole_number, t.type()) : t.g->constant(b.number, t.type());
}
// Returns whether a bound at this end of int64 is none. (A graph cannot hold the largest int64: as a double it is
// 2^63.)
constexpr bool unbounded(value t, const bound& b, int end) { return b.is_number && b.end == end && t.type() == int64; }
constexpr bool floats(std::string_view name, value t) {
  if (is_float(t.type())) return true;
  t.g->refuse(name, ": takes float32 or float64, got ", t.type(), "; use cast");
  return false;
}
template <class Axes>
constexpr int mask_of(std::string_view name, value t, const Axes& axes) {
  const int rank = t.dims().rank;
  if (axes.size() == 0) return (1 << rank) - 1;
  int mask = 0;
  for (const int a : axes) {
    const int at = a < 0 ? a + rank : a;
    if (at < 0 || at >= rank)
      t.g->refuse(name, ": axis ", a, " is outside ", t.dims());
    else
      mask |= 1 << at;
  }
  return mask;
}
// The root of a sum of squares, with derivative 0 at 0; the same root that is never 0; and whether the sum is above 0.
struct norm {
  value root, safe;  // safe: 1 where the root is 0
  value some;
};
constexpr norm root_of(value squares) {
  graph& g = *squares.g;
  const value zero = g.constant(0, squares.type()), one = g.constant(1, squares.type());
  const value some = greater(squares, zero), root = sqrt(select(some, squares, one));
  return {select(some, root, squares), root, some};
}
constexpr value squares_of(value t, int mask) { return gradus::detail::reduce(cards::sum, square(t), mask, true); }
// Returns a / the norm; where the norm is 0, infinity with derivative 0; NaN for a norm of NaN.
constexpr value over(value a, const norm& n) {
  const value unlimited = n.safe.g->constant(std::numeric_limits<double>::infinity(), n.safe.type());
  const value other = unlimited + stop_gradient(n.root), quotient = a / n.safe;
  return select(n.some, quotient, other);
}
// Returns the smaller of the two, and NaN if b is NaN. Of equals it returns b, which then has the gradient.
constexpr value least(value a, value b) { return select(less(a, b), a, b); }
template <class Axes>
constexpr value by_norm_over(value t, bound c, const Axes& axes) {
  if (!floats("clip_by_norm", t) || !fit("clip_by_norm", t, c)) return t;
  const auto scope = t.g->name_scope("clip_by_norm");
  const int mask = mask_of("clip_by_norm", t, axes);
  const value n = root_of(squares_of(t, mask)).root, most = tensor_of(t, c);
  const value scaled = t * most, divisor = select(greater(most, n), most, n);
  return scaled / divisor;
}
}  // namespace detail

// Returns max(min(t, high), low): low > high gives low everywhere, NaN stays NaN. At a bound the gradient is passed to
// t. A tensor of integers takes whole numbers as bounds; the least int64 as low, and the largest as high, are none.
constexpr value by_value(value t, bound low, bound high) {
  if (!detail::fit("clip_by_value", t, low) || !detail::fit("clip_by_value", t, high)) return t;
  const auto scope = t.g->name_scope("clip_by_value");
  value hi, lo;
  if (!detail::unbounded(t, high, 1)) hi = detail::tensor_of(t, high);
  if (!detail::unbounded(t, low, -1)) lo = detail::tensor_of(t, low);
  const value cut = hi ? select(greater(t, hi), hi, t) : t;
  return lo ? select(less(cut, lo), lo, cut) : cut;
}

// Returns (t c) / max(n, c), where n is the L2 norm over the axes (none given: over all; negative: from the back). n =
// 0 gives zeros with derivative 1, and NaN if c <= 0; c < 0 changes the signs and makes the norms |c|; an infinite n
// makes finite elements 0 and infinite ones NaN; a NaN makes all elements of its norm NaN.
constexpr value by_norm(value t, bound c, std::span<const int> axes) { return detail::by_norm_over(t, c, axes); }
constexpr value by_norm(value t, bound c, std::initializer_list<int> axes = {}) {
  return detail::by_norm_over(t, c, axes);
}

// Returns t c min(N / n, 1 / c), where n is the L2 norm of all N elements: it is divided by N, not by sqrt(N). Where n
// is 0 the derivative is 1; TensorFlow's is NaN.
constexpr value by_average_norm(value t, bound c) {
  if (!detail::floats("clip_by_average_norm", t) || !detail::fit("clip_by_average_norm", t, c)) return t;
  const auto scope = t.g->name_scope("clip_by_average_norm");
  const int all = (1 << t.dims().rank) - 1;
  const auto n = detail::root_of(detail::squares_of(t, all));
  const value most = detail::tensor_of(t, c), limit = 1.0 / most;
  const value ratio = detail::over(size_of(t, t.type()), n), factor = detail::least(limit, ratio);
  return t * most * factor;
}

// Returns the numbers of a gradient: all of a dense one, or those of the rows of a sparse one.
constexpr value numbers_of(const gradient_value& t) { return t.sparse() ? t.values : t.dense; }
// Returns the same gradient with other numbers.
constexpr gradient_value with_numbers(const gradient_value& t, value v) {
  return t.sparse() ? gradient_value{{}, v, t.indices} : gradient_value{v, {}, {}};
}
constexpr gradient_value by_value(const gradient_value& t, bound low, bound high) {
  return t ? with_numbers(t, by_value(numbers_of(t), low, high)) : t;
}
constexpr gradient_value by_norm(const gradient_value& t, bound c, std::initializer_list<int> axes = {}) {
  return t ? with_numbers(t, by_norm(numbers_of(t), c, axes)) : t;
}

// An entry of a list in braces: a tensor, a gradient, or None, which is {}.
struct item {
  gradient_value gradient = {};
  constexpr item() = default;
  constexpr item(value v) : gradient{v, {}, {}} {}
  constexpr item(const gradient_value& v) : gradient(v) {}
};
namespace detail {
constexpr gradus::detail::seq<gradient_value> gradients_of(std::initializer_list<item> list) {
  gradus::detail::seq<gradient_value> out;
  for (const item& i : list) out.push(i.gradient);
  return out;
}
// Returns the sum of all squares, halved and doubled again as TensorFlow does; 0 of float32 if all are None.
template <class List>
constexpr value squares_of(std::string_view name, graph& g, const List& list) {
  value sum;
  for (const gradient_value& i : list) {
    if (!i || !floats(name, numbers_of(i))) continue;
    const value half = reduce_sum(square(numbers_of(i))) * 0.5;
    sum = sum ? sum + half : half;
  }
  return sum ? sum * 2.0 : g.constant(0);
}
}  // namespace detail

// Returns the square root of the sum of all squares, a scalar. None is left out; an empty list and a list of None have
// norm 0. At 0 the derivative is 0; TensorFlow's is NaN.
constexpr value global_norm(graph& g, std::span<const gradient_value> list) {
  const auto scope = g.name_scope("global_norm");
  return detail::root_of(detail::squares_of("global_norm", g, list)).root;
}
constexpr value global_norm(graph& g, std::initializer_list<item> list) {
  const auto scope = g.name_scope("global_norm");
  return detail::root_of(detail::squares_of("global_norm", g, detail::gradients_of(list))).root;
}

struct clipped {
  gradus::detail::seq<gradient_value> list;  // in order; None stays None
  value norm;                                // before clipping, or use_norm
};

namespace detail {
template <class List>
constexpr clipped by_global_norm_of(graph& g, const List& list, bound c, value use_norm) {
  const auto scope = g.name_scope("clip_by_global_norm");
  norm n{use_norm, use_norm, use_norm};
  if (!use_norm)
    n = root_of(squares_of("clip_by_global_norm", g, list));
  else if (use_norm.dims().rank == 0 && floats("clip_by_global_norm", use_norm))
    n.some = not_equal(use_norm, g.constant(0, use_norm.type()));
  else
    g.refuse("clip_by_global_norm: use_norm must be a scalar, got ", use_norm.dims());
  clipped out;
  out.norm = n.root;
  if (n.root.dims().rank != 0 || !fit("clip_by_global_norm", n.root, c)) return out;
  const dtype type = n.root.type();
  const value most = tensor_of(n.root, c), one = g.constant(1, type), limit = one / most;
  const value scale = most * least(limit, over(one, n));
  const value nothing = n.root - n.root, finite = equal(nothing, g.constant(0, type));  // inf - inf is NaN
  const value factor = select(finite, scale, g.constant(std::numeric_limits<double>::quiet_NaN(), type));
  for (const gradient_value& i : list)
    out.list.push(i ? with_numbers(i, numbers_of(i) * cast(factor, numbers_of(i).type())) : i);
  return out;
}
}  // namespace detail

// Returns every entry times s = c min(1 / norm, 1 / c). An infinite or NaN norm makes everything NaN; norm 0 leaves
// everything as it is, and gives NaN if c = 0 too; c < 0 changes nothing. use_norm is a norm that is known already, a
// scalar.
constexpr clipped by_global_norm(graph& g, std::span<const gradient_value> list, bound c, value use_norm = {}) {
  return detail::by_global_norm_of(g, list, c, use_norm);
}
constexpr clipped by_global_norm(graph& g, std::initializer_list<item> list, bound c, value use_norm = {}) {
  return detail::by_global_norm_of(g, detail::gradients_of(list), c, use_norm);
}

// Adaptive gradient clipping (Brock, De, Smith, Simonyan, ICML 2021), as optax.adaptive_grad_clip: returns t times
// factor max(|p|, eps) / |t| wherever |t| is not below factor max(|p|, eps). Each norm is that of one unit: of the
// whole tensor where at most one extent is above 1; over axis 0 for rank 2 [in, out] and rank 3; over all axes but the
// last for kernels [h, w, in, out].
constexpr value adaptive(value t, value parameter, double factor, double eps = 1e-3) {
  if (!detail::floats("clip_adaptive", t)) return t;
  const shape dims = t.dims();
  if (parameter.type() != t.type() || !(parameter.dims() == dims)) {
    t.g->refuse("clip_adaptive: the gradient ", dims, " and its parameter ", parameter.dims(),
                " must have one shape and dtype");
    return t;
  }
  const auto scope = t.g->name_scope("clip_adaptive");
  graph& g = *t.g;
  int wide = 0;
  for (int i = 0; i < dims.rank; ++i) wide += dims.dims[i] != 1;
  const int all = (1 << dims.rank) - 1, mask = wide <= 1 ? all : dims.rank <= 3 ? 1 : all >> 1;
  const value n = detail::root_of(detail::squares_of(t, mask)).root;
  const value size = detail::root_of(detail::squares_of(parameter, mask)).root;
  const value least = g.constant(eps, t.type()), tiny = g.constant(1e-6, t.type());
  const value most = select(less(size, least), least, size) * factor;
  const value ratio = most / select(less(n, tiny), tiny, n), scaled = t * ratio;
  return select(less(n, most), t, scaled);
}

}  // namespace gradus::clip
