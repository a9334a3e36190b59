// These functions clip arrays as TensorFlow 1.15's tf.clip_by_*, with its arithmetic and its edge cases; adaptive
// clipping is here, too.
//
//   clip::by_value(w, -1, 1);                              // in place: a span, a vector, an xt::xtensor, a view, ...
//   clip::by_norm(w, 5.0, {0}, clip::to(out));             // w is only read, the result goes to out
//   const double norm = clip::by_global_norm({dw, db, std::nullopt}, 1.0);
//
//   here              TensorFlow              PyTorch, Optax
//   by_value          clip_by_value           clip_grad_value_ (lo = -hi); optax.clip
//   by_norm           clip_by_norm            optax.clip_by_block_rms divides by sqrt(n) too, this does not
//   by_average_norm   clip_by_average_norm    -
//   global_norm       global_norm             optax.global_norm
//   by_global_norm    clip_by_global_norm     clip_grad_norm_ adds 1e-6 to the norm; optax.clip_by_global_norm
//   adaptive          -                       optax.adaptive_grad_clip
//
// Arrays are float32 or float64 (by_value also takes int32 and int64). A vector or span has one axis; give more with
// tensor_view(span, {2, 3}). Where a `gradient` is taken, anything with a member `values` that is an array is accepted
// too (indexed slices): its values are clipped, duplicate rows one by one, and its rows stay.
//
// Squares are summed in double (tensor/squares.hpp), elements are computed in their own dtype, as TensorFlow does. For
// the same on graphs see ops/clip.hpp; for policies of an optimizer, update/clip.hpp. Nothing allocates except a list
// that is given as a range.
//
// Functions are templates on nothing (`template <class = void>`), so that a program that does not clip compiles none of
// them.
#pragma once
#include "../base/build.hpp"

#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "clip_operands.hpp"
#include "squares.hpp"

namespace gradus::inline GRADUS_BUILD::clip {

namespace detail {
// Calls f(element of the dtype), which must be float32 or float64.
template <class F>
void with_float(std::string_view name, dtype type, F f) {
  if (type == float32) return f(0.0f);
  if (type == float64) return f(0.0);
  raise(status::invalid_argument,
        text("clip::", name, ": expected an array of float32 or float64, found ", name_of(type)));
}
template <class = void>
void same_place(std::string_view name, const const_tensor_view& from, const tensor_view& into) {
  if (from.type != into.type || !(from.dims == into.dims))
    raise(status::invalid_argument, text("clip::", name, ": expected a result of ", name_of(from.type), ' ',
                                         to_text(from.dims), ", found ", name_of(into.type), ' ', to_text(into.dims)));
}
template <class = void>
double squares_of(const const_tensor_view& t) {
  double sum = 0;
  with_float("global_norm", t.type, [&](auto zero) {
    const auto x = t.as<decltype(zero)>();
    sum = sum_of_squares_tree(x.data(), x.size());
  });
  return sum;
}
template <class = void>
unsigned mask_of(std::string_view name, const extents& dims, std::span<const int> axes) {
  if (axes.empty()) return (1u << dims.rank) - 1;
  unsigned mask = 0;
  for (const int a : axes) {
    const int at = a < 0 ? a + dims.rank : a;
    if (at < 0 || at >= dims.rank)
      raise(status::invalid_argument, text("clip::", name, ": axis ", a, " is outside ", to_text(dims)));
    mask |= 1u << at;
  }
  return mask;
}

// Reads the element of a limit that belongs to an element of the operand, by its offset along each axis of the operand.
template <class T>
struct limit_reader {
  const T* data = nullptr;
  T number = 0;
  extents dims;
  std::int64_t stride[max_rank] = {};

  limit_reader(std::string_view name, const char* what, const limit& l, const extents& of) : dims(of) {
    if (!l.is_array) {
      if (std::is_integral_v<T> && !l.whole)
        raise(status::invalid_argument,
              text("clip::", name, ": expected whole numbers as limits of whole numbers, found a float"));
      number = l.whole ? static_cast<T>(l.whole_number) : static_cast<T>(l.number);
      if (std::is_integral_v<T> && static_cast<std::int64_t>(number) != l.whole_number)
        raise(status::invalid_argument,
              text("clip::", name, ": ", what, " of ", l.whole_number, " is no ", name_of(dtype_of<T>)));
      return;
    }
    const extents& e = l.view.dims;
    if (l.view.type != dtype_of<T>)
      raise(status::invalid_argument,
            text("clip::", name, ": expected ", what, " of ", name_of(dtype_of<T>), ", found ", name_of(l.view.type)));
    std::int64_t n = 1;
    bool fits = e.rank <= of.rank;
    for (int i = 1; fits && i <= e.rank; ++i) {
      const std::int64_t here = e[e.rank - i];
      fits = here == 1 || here == of[of.rank - i];
      if (here != 1) stride[of.rank - i] = n;
      n *= here;
    }
    if (!fits)
      raise(status::invalid_argument, text("clip::", name, ": ", what, ' ', to_text(e), " would enlarge the operand ",
                                           to_text(of), "; give a number or an array that broadcasts to it"));
    data = l.view.template as<T>().data();
  }
  T at(std::size_t element) const {
    if (data == nullptr) return number;
    std::int64_t offset = 0;
    auto rest = static_cast<std::int64_t>(element);
    for (int i = dims.rank; i-- > 0; rest /= dims[i]) offset += rest % dims[i] * stride[i];
    return data[offset];
  }
};
template <class T>
void value_of(const const_tensor_view& t, const limit& low, const limit& high, const tensor_view& out) {
  const limit_reader<T> lo("by_value", "a lower limit", low, t.dims), hi("by_value", "an upper limit", high, t.dims);
  const auto x = t.as<T>();
  const auto y = out.mutable_as<T>();
  const auto one = [](T v, T least, T most) {  // a NaN is neither above nor below
    const T cut = v > most ? most : v;
    return cut < least ? least : cut;
  };
  if (lo.data == nullptr && hi.data == nullptr)
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = one(x[i], lo.number, hi.number);
  else
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = one(x[i], lo.at(i), hi.at(i));
}
template <class = void>
void apply_value(const const_tensor_view& t, const limit& low, const limit& high, const tensor_view& out) {
  same_place("by_value", t, out);
  if (t.type == int32) return value_of<std::int32_t>(t, low, high, out);
  if (t.type == int64) return value_of<std::int64_t>(t, low, high, out);
  with_float("by_value", t.type, [&](auto zero) { value_of<decltype(zero)>(t, low, high, out); });
}
template <class = void>
void apply_norm(const const_tensor_view& t, const limit& c, std::span<const int> axes, const tensor_view& out) {
  same_place("by_norm", t, out);
  const squares groups(t.dims, mask_of("by_norm", t.dims, axes));
  with_float("by_norm", t.type, [&](auto zero) {
    using T = decltype(zero);
    const limit_reader<T> most("by_norm", "a norm", c, t.dims);
    const T* x = t.as<T>().data();
    T* y = out.mutable_as<T>().data();
    double sums[squares::strip];
    groups.strips([&](std::size_t first, std::size_t n) {
      groups.sum(x, first, n, sums);
      for (std::size_t j = 0; j < n; ++j) sums[j] = sums[j] > 0 ? std::sqrt(sums[j]) : sums[j];
      groups.elements(first, n, [&](std::size_t at, std::size_t group) {
        const T limit = most.at(at), norm = static_cast<T>(sums[group]);
        y[at] = x[at] * limit / (limit > norm ? limit : norm);  // a norm that is NaN makes every element NaN
      });
    });
  });
}
template <class = void>
void apply_average_norm(const const_tensor_view& t, double c, const tensor_view& out) {
  same_place("by_average_norm", t, out);
  with_float("by_average_norm", t.type, [&](auto zero) {
    using T = decltype(zero);
    const auto x = t.as<T>();
    const auto y = out.mutable_as<T>();
    const T most = static_cast<T>(c), n = static_cast<T>(x.size());
    const T ratio = n / static_cast<T>(std::sqrt(sum_of_squares_tree(x.data(), x.size()))), bound = T(1) / most;
    const T factor = bound < ratio ? bound : ratio;
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * most * factor;
  });
}
template <class = void>
void apply_adaptive(const const_tensor_view& t, const const_tensor_view& parameter, double factor, double eps,
                    const tensor_view& out) {
  same_place("adaptive", t, out);
  if (parameter.type != t.type || !(parameter.dims == t.dims))
    raise(status::invalid_argument,
          text("clip::adaptive: expected a parameter of ", name_of(t.type), ' ', to_text(t.dims), ", found ",
               name_of(parameter.type), ' ', to_text(parameter.dims)));
  int wide = 0;  // axes of more than one element
  for (int i = 0; i < t.dims.rank; ++i) wide += t.dims[i] != 1;
  const unsigned all = (1u << t.dims.rank) - 1;
  const unsigned mask = wide <= 1 ? all : t.dims.rank <= 3 ? 1u : all >> 1;
  const squares groups(t.dims, mask);
  with_float("adaptive", t.type, [&](auto zero) {
    using T = decltype(zero);
    const T* x = t.as<T>().data();
    const T* p = parameter.as<T>().data();
    T* y = out.mutable_as<T>().data();
    double g[squares::strip], most[squares::strip];
    groups.strips([&](std::size_t first, std::size_t n) {
      groups.sum(x, first, n, g);
      groups.sum(p, first, n, most);
      for (std::size_t j = 0; j < n; ++j) {
        const double norm = std::sqrt(most[j]);
        g[j] = std::sqrt(g[j]), most[j] = factor * (norm < eps ? eps : norm);
        // the factor of an element; a gradient below its limit is left as it is
        g[j] = g[j] < most[j] ? 1 : most[j] / (g[j] < 1e-6 ? 1e-6 : g[j]);
      }
      groups.elements(first, n, [&](std::size_t at, std::size_t group) { y[at] = x[at] * static_cast<T>(g[group]); });
    });
  });
}
}  // namespace detail

// Sets each element to max(min(t, high), low): low > high gives low everywhere, NaN stays NaN, infinities are cut.
// Limits are numbers, or arrays of t's dtype that broadcast to t; integers take whole numbers only.
template <class = void>
void by_value(gradient t, limit low, limit high) {
  detail::apply_value(t.view, low, high, t.view);
}
template <class = void>
void by_value(source t, limit low, limit high, to out) {
  detail::apply_value(t.view, low, high, out.view);
}

// Sets t to (t c) / max(n, c), where n is the L2 norm over the axes (none given: over all; negative: from the back). It
// divides even where nothing is to be clipped, so the last bit may change. n = 0 gives zeros, and NaN if c <= 0; c < 0
// changes the signs and makes the norms |c|; n infinite makes finite elements 0 and infinite ones NaN; n NaN makes all
// NaN.
template <class = void>
void by_norm(gradient t, limit c, std::span<const int> axes) {
  detail::apply_norm(t.view, c, axes, t.view);
}
template <class = void>
void by_norm(gradient t, limit c, std::initializer_list<int> axes = {}) {
  detail::apply_norm(t.view, c, {axes.begin(), axes.size()}, t.view);
}
template <class = void>
void by_norm(source t, limit c, std::span<const int> axes, to out) {
  detail::apply_norm(t.view, c, axes, out.view);
}
template <class = void>
void by_norm(source t, limit c, std::initializer_list<int> axes, to out) {
  detail::apply_norm(t.view, c, {axes.begin(), axes.size()}, out.view);
}
template <class = void>
void by_norm(source t, limit c, to out) {
  detail::apply_norm(t.view, c, {}, out.view);
}

// Sets t to t c min(N / n, 1 / c), where n is the L2 norm of all N elements: the "average" divides the norm by N, not
// by sqrt(N).
template <class = void>
void by_average_norm(array t, double c) {
  detail::apply_average_norm(t.view, c, t.view);
}
template <readable_array X>
void by_average_norm(const X& t, double c, to out) {
  detail::apply_average_norm(read_view(t), c, out.view);
}

// Returns the square root of the sum of all squares. None is left out; an empty list and a list of None have norm 0.
template <class = void>
double global_norm(std::span<const term> list) {
  double sum = 0;
  for (const term& t : list)
    if (!t.absent) sum += detail::squares_of(t.from);
  return std::sqrt(sum);
}
template <class = void>
double global_norm(std::initializer_list<term> list) {
  return global_norm(std::span<const term>(list.begin(), list.size()));
}
template <class Range>
  requires(!readable_array<Range> && !std::convertible_to<const Range&, std::span<const term>>) &&
          requires(const Range& r) { term(*std::begin(r)); }
double global_norm(const Range& list) {
  std::vector<term> terms;
  for (const auto& x : list) terms.emplace_back(x);
  return global_norm(std::span<const term>(terms));
}

// Returns the factor of by_global_norm: c min(1 / norm, 1 / c), and NaN where the norm is not finite.
inline double global_scale(double norm, double c) {
  if (!std::isfinite(norm)) return std::numeric_limits<double>::quiet_NaN();
  const double by_norm = 1 / norm, by_limit = 1 / c;
  return c * (by_limit < by_norm ? by_limit : by_norm);
}
// Multiplies every entry by global_scale(norm, c), a double rounded to the entry's dtype. Returns the norm: use_norm if
// it is given, else the list's. An infinite or NaN norm makes every element NaN, so that a broken step shows; norm 0
// leaves everything as it is, and gives NaN if c = 0; c < 0 changes nothing.
template <class = void>
double by_global_norm(std::span<const entry> list, double c, std::optional<double> use_norm = {}) {
  for (const entry& e : list)
    if (!e.absent) detail::same_place("by_global_norm", e.from, e.into);
  double norm = 0;
  if (use_norm.has_value())
    norm = *use_norm;
  else {
    for (const entry& e : list)
      if (!e.absent) norm += detail::squares_of(e.from);
    norm = std::sqrt(norm);
  }
  const double scale = global_scale(norm, c);
  for (const entry& e : list)
    if (!e.absent)
      detail::with_float("by_global_norm", e.from.type, [&](auto zero) {
        using T = decltype(zero);
        const auto x = e.from.as<T>();
        const auto y = e.into.mutable_as<T>();
        for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * static_cast<T>(scale);
      });
  return norm;
}
template <class = void>
double by_global_norm(std::initializer_list<entry> list, double c, std::optional<double> use_norm = {}) {
  return by_global_norm(std::span<const entry>(list.begin(), list.size()), c, use_norm);
}
template <class Range>
  requires(!readable_array<Range> && !std::convertible_to<Range&, std::span<const entry>>) &&
          requires(Range& r) { entry(*std::begin(r)); }
double by_global_norm(Range& list, double c, std::optional<double> use_norm = {}) {
  std::vector<entry> entries;
  for (auto& x : list) entries.emplace_back(x);
  return by_global_norm(std::span<const entry>(entries), c, use_norm);
}

// Adaptive gradient clipping (Brock, De, Smith, Simonyan, "High-performance large-scale image recognition without
// normalization", ICML 2021), as optax.adaptive_grad_clip: multiplies t by factor max(|p|, eps) / |t| wherever |t| is
// not below factor max(|p|, eps). Each norm is that of one unit: of the whole array where at most one extent is above
// 1; over axis 0 for rank 2 [in, out] and rank 3; over all axes but the last for kernels [h, w, in, out]. The parameter
// has t's dtype and extents. 0.01 is the paper's factor for large batches.
template <class = void>
void adaptive(array t, source parameter, double factor, double eps = 1e-3) {
  detail::apply_adaptive(t.view, parameter.view, factor, eps, t.view);
}
template <class = void>
void adaptive(source t, source parameter, double factor, double eps, to out) {
  detail::apply_adaptive(t.view, parameter.view, factor, eps, out.view);
}

}  // namespace gradus::clip
