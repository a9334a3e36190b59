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
// them; what they call is compiled once for programs that link gradus::compiled.
#pragma once
#include "../base/build.hpp"

#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "../base/body.hpp"
#include "clip_operands.hpp"

namespace gradus::inline GRADUS_BUILD::clip {

namespace detail {
GRADUS_RARE void apply_value(const const_tensor_view& t, const limit& low, const limit& high, const tensor_view& out);
GRADUS_RARE void apply_norm(const const_tensor_view& t, const limit& c, std::span<const int> axes,
                            const tensor_view& out);
GRADUS_RARE void apply_average_norm(const const_tensor_view& t, double c, const tensor_view& out);
GRADUS_RARE void apply_adaptive(const const_tensor_view& t, const const_tensor_view& parameter, double factor,
                                double eps, const tensor_view& out);
GRADUS_RARE double norm_of(const term* list, std::size_t n);
GRADUS_RARE double apply_global_norm(const entry* list, std::size_t n, double c, std::optional<double> use_norm);
// A list of the operands that a range holds; it is compiled with the range.
template <class Range, class Operand>
using list_of = std::vector<std::conditional_t<std::is_void_v<Range>, void, Operand>>;
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
GRADUS_RARE double global_norm(std::span<const term> list);
template <class = void>
double global_norm(std::initializer_list<term> list) {
  return detail::norm_of(list.begin(), list.size());
}
template <class Range>
  requires(!readable_array<Range> && !std::convertible_to<const Range&, std::span<const term>>) &&
          requires(const Range& r) { term(*std::begin(r)); }
double global_norm(const Range& list) {
  detail::list_of<Range, term> terms;
  for (const auto& x : list) terms.emplace_back(x);
  return detail::norm_of(terms.data(), terms.size());
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
GRADUS_RARE double by_global_norm(std::span<const entry> list, double c, std::optional<double> use_norm = {});
template <class = void>
double by_global_norm(std::initializer_list<entry> list, double c, std::optional<double> use_norm = {}) {
  return detail::apply_global_norm(list.begin(), list.size(), c, use_norm);
}
template <class Range>
  requires(!readable_array<Range> && !std::convertible_to<Range&, std::span<const entry>>) &&
          requires(Range& r) { entry(*std::begin(r)); }
double by_global_norm(Range& list, double c, std::optional<double> use_norm = {}) {
  detail::list_of<Range, entry> entries;
  for (auto& x : list) entries.emplace_back(x);
  return detail::apply_global_norm(entries.data(), entries.size(), c, use_norm);
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

#ifndef GRADUS_COMPILED
#include "clip.ipp"
#endif
