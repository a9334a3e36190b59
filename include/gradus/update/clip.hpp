// These policies limit gradients before the rule sees them. Namespace gradus::clip has the same clips as functions on
// arrays and on graph values.
//
// A clip is given beside a rule (`updater{adam{}, clip_by_global_norm{1.0}}`) or in a chain. Clips that come before
// every other part see the values of a sparse gradient one by one, before duplicates are summed, as TensorFlow's clips
// do on IndexedSlices. The behaviour is TensorFlow 1.15's.
#pragma once
#include "../base/build.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include "part.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// The constants of clips that multiply a gradient by one number.
template <class N>
struct scale_constants {
  N scale;
};
}  // namespace detail

// Limits every element to [min, max]: max(min(g, max), min), so a NaN stays NaN and min > max gives min.
// tf.clip_by_value.
struct clip_by_value {
  using policy_for = kind::clip;
  double min = -1, max = 1;
  static constexpr std::string_view called = "clip_by_value";
  static constexpr auto settings() {
    using line = setting<clip_by_value>;
    return std::array{line{"min", &clip_by_value::min, setting_range::number},
                      line{"max", &clip_by_value::max, setting_range::number}};
  }
  constexpr void check() const { check_setting(min <= max, called, "min", min, "<= `max`"); }

  template <class N>
  struct constants {
    N min, max;
  };
  constexpr constants<double> prepare(const step_info&) const { return {min, max}; }
  template <class N>
  N clip(N g, const constants<N>& c) const {
    const N below = select(g > c.max, c.max, g);
    return select(below < c.min, c.min, below);
  }
};

// Scales a tensor's gradient so that its L2 norm is at most max_norm: g max_norm / max(norm, max_norm). A norm of 0
// with max_norm = 0 gives NaN, as in TensorFlow. tf.clip_by_norm without axes.
struct clip_by_norm {
  using policy_for = kind::clip;
  double max_norm = 1;
  static constexpr std::string_view called = "clip_by_norm";
  static constexpr auto settings() {
    using line = setting<clip_by_norm>;
    return std::array{line{"max_norm", &clip_by_norm::max_norm, setting_range::not_negative}};
  }

  static constexpr std::size_t measures = 1;
  template <class N>
  using constants = detail::scale_constants<N>;
  constexpr constants<double> prepare(const step_info&) const { return {1}; }
  template <class N>
  std::array<N, 1> measure(N, N g, const constants<N>&) const {
    return {g * g};
  }
  constants<double> adapt(const constants<double>&, const subject&, std::span<const double> sums) const {
    const double norm = std::sqrt(sums[0]);
    return {max_norm / (std::isnan(norm) || norm > max_norm ? norm : max_norm)};
  }
  template <class N>
  N clip(N g, const constants<N>& c) const {
    return g * c.scale;
  }
};

// Clips as clip_by_norm does, with the norm divided by the number of elements (not by its square root): g c min(n /
// norm, 1 / c). tf.clip_by_average_norm.
struct clip_by_average_norm {
  using policy_for = kind::clip;
  double max_norm = 1;
  static constexpr std::string_view called = "clip_by_average_norm";
  static constexpr auto settings() {
    using line = setting<clip_by_average_norm>;
    return std::array{line{"max_norm", &clip_by_average_norm::max_norm, setting_range::not_negative}};
  }

  static constexpr std::size_t measures = 1;
  template <class N>
  using constants = detail::scale_constants<N>;
  constexpr constants<double> prepare(const step_info&) const { return {1}; }
  template <class N>
  std::array<N, 1> measure(N, N g, const constants<N>&) const {
    return {g * g};
  }
  constants<double> adapt(const constants<double>&, const subject& about, std::span<const double> sums) const {
    const double by_norm = static_cast<double>(about.size) / std::sqrt(sums[0]), by_limit = 1 / max_norm;
    return {max_norm * (by_norm < by_limit ? by_norm : by_limit)};
  }
  template <class N>
  N clip(N g, const constants<N>& c) const {
    return g * c.scale;
  }
};

// Scales all gradients of a step together so that their global norm is at most max_norm.
//
//   norm = sqrt(sum of squares over every gradient)       duplicate rows of a sparse gradient count one by one
//   g <- g * max_norm * min(1 / norm, 1 / max_norm)
//
// It behaves as tf.clip_by_global_norm: if the norm is infinite or NaN, every gradient becomes NaN, so that a broken
// step is visible; a norm of 0 leaves gradients unchanged; max_norm = 0 makes them 0, or NaN if their norm is 0 too.
// PyTorch's clip_grad_norm_ adds 1e-6 to the norm.
struct clip_by_global_norm {
  using policy_for = kind::clip;
  static constexpr bool needs_norm = true, global = true;
  double max_norm = 1.0;                // in units of the gradient; 1 to 5 is common, log the norm to choose
  std::optional<double> use_norm = {};  // a norm known from elsewhere, in place of the gradients' own
  static constexpr std::string_view called = "clip_by_global_norm";
  static constexpr auto settings() {
    using line = setting<clip_by_global_norm>;
    return std::array{line{"max_norm", &clip_by_global_norm::max_norm, setting_range::not_negative},
                      line{"use_norm", &clip_by_global_norm::use_norm, setting_range::not_negative}};
  }

  // Returns the factor for every gradient.
  double scale(double norm) const {
    norm = use_norm.value_or(norm);
    if (!std::isfinite(norm)) return std::numeric_limits<double>::quiet_NaN();
    const double by_norm = 1 / norm, by_limit = 1 / max_norm;
    return max_norm * (by_norm < by_limit ? by_norm : by_limit);
  }

  // In a chain, the norm is over all variables of the chain.
  static constexpr std::size_t measures = 1;
  template <class N>
  using constants = detail::scale_constants<N>;
  constexpr constants<double> prepare(const step_info&) const { return {1}; }
  template <class N>
  std::array<N, 1> measure(N, N g, const constants<N>&) const {
    return {g * g};
  }
  constants<double> adapt(const constants<double>&, const subject&, std::span<const double> sums) const {
    return {scale(std::sqrt(sums[0]))};
  }
  template <class N>
  N clip(N g, const constants<N>& c) const {
    return g * c.scale;
  }
};

// Adaptive gradient clipping limits the norm of each unit's gradient to `factor` times the norm of its weights:
//   g_j <- g_j min(1, factor max(||w_j||, epsilon) / ||g_j||)
// where a unit is a column (one index of the last axis) of matrices [in, out] and filters [height, width, in, out];
// vectors and scalars are one unit. Brock et al. 2021, arXiv:2102.06171, equation 3; optax.adaptive_grad_clip. It is
// allowed beside a rule only. A sparse gradient becomes dense.
struct adaptive_clip {
  using policy_for = kind::clip;
  double factor = 0.01;
  double epsilon = 1e-3;  // least norm of a unit, so that zero weights can move
  static constexpr std::string_view called = "adaptive_clip";
  static constexpr auto settings() {
    using line = setting<adaptive_clip>;
    return std::array{line{"factor", &adaptive_clip::factor, setting_range::not_negative},
                      line{"epsilon", &adaptive_clip::epsilon, setting_range::not_negative}};
  }

  double column_scale(double gradient_norm, double parameter_norm) const {
    const double most = factor * (parameter_norm > epsilon ? parameter_norm : epsilon);
    return gradient_norm > most ? most / gradient_norm : gradient_norm == gradient_norm ? 1 : gradient_norm;
  }
  static std::size_t columns(const extents& dims) {
    return dims.rank < 2 ? 1 : static_cast<std::size_t>(dims[dims.rank - 1]);
  }
};

namespace detail {
template <class C>
concept column_clip = requires(const C& c, const extents& dims) {
  { c.column_scale(1.0, 1.0) } -> std::convertible_to<double>;
  { C::columns(dims) } -> std::convertible_to<std::size_t>;
};
template <class C>
concept norm_clip = requires(const C& c) {
  { C::needs_norm } -> std::convertible_to<bool>;
  { c.scale(1.0) } -> std::convertible_to<double>;
};
}  // namespace detail

template <class C>
concept gradient_clip = policy<C> && std::is_same_v<typename C::policy_for, kind::clip> &&
                        (detail::norm_clip<C> || detail::column_clip<C> || chain_part<C>);

// Checks a clip at compile time and reports what it lacks.
template <class C>
struct clip_fits {
  static_assert(gradient_clip<C>,
                "gradus: this clip gives no factor; add `static constexpr bool needs_norm = true;` and `double "
                "scale(double norm) const`, or `template <class N> N clip(N g, const constants<N>& c) const`.");
  static constexpr bool value = gradient_clip<C>;
};

}  // namespace gradus
