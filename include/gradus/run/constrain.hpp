// This header applies the constraints of variables (graph/constraint.hpp) after an update, before the average.
//
// Sums of squares are taken in double, in row-major order, and every number is rounded once, so the bits are the same
// on every machine and with any number of threads.
#pragma once
#include "../base/build.hpp"

#include <cmath>
#include <span>

#include "../base/math.hpp"
#include "../graph/constraint.hpp"
#include "../graph/node.hpp"
#include "../update/single.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
inline constexpr double constraint_epsilon = 1e-7;  // Keras's

// Walks over the axes that a norm goes over, or over the others, of an array of `dims`: calls f(offset) for every
// index.
struct axis_walk {
  std::int64_t extent[max_rank] = {}, stride[max_rank] = {};
  int rank = 0;

  axis_walk(const constraint& c, const extents& dims, bool reduced);
  template <class F>
  void each(F f) const {
    std::int64_t at[max_rank] = {}, offset = 0;
    for (int i = 0; i < rank; ++i)
      if (extent[i] == 0) return;
    for (;;) {
      f(offset);
      int i = rank - 1;
      for (; i >= 0; --i) {
        offset += stride[i];
        if (++at[i] < extent[i]) break;
        offset -= stride[i] * extent[i], at[i] = 0;
      }
      if (i < 0) return;
    }
  }
};
template <class T>
void constrain_norms(const constraint& c, T* w, const extents& dims) {
  using portable_math::product;
  const axis_walk groups(c, dims, false), members(c, dims, true);
  groups.each([&](std::int64_t first) {
    double squares = 0;
    members.each([&](std::int64_t i) {
      const double x = static_cast<double>(w[first + i]);
      squares += product(x, x);
    });
    const double norm = std::sqrt(squares), bounded = norm < c.low ? c.low : norm > c.high ? c.high : norm;
    const double wanted = product(c.rate, bounded) + product(1 - c.rate, norm);
    const double divisor = constraint_epsilon + norm, factor = wanted / divisor;
    members.each([&](std::int64_t i) {
      const double x = static_cast<double>(w[first + i]);
      w[first + i] = static_cast<T>(c.kind == constraint::unit ? x / divisor : x * factor);
    });
  });
}
}  // namespace detail

// Sets w to constraint(w). NaN stays NaN. (The name is in brackets since Arduino has a macro of this name, with
// arguments.)
template <class T>
void(constrain)(const constraint& c, T* w, const extents& dims) {
  const std::int64_t n = count(dims);
  switch (c.kind) {
  case constraint::positive:
    for (std::int64_t i = 0; i < n; ++i) w[i] = w[i] < T(0) ? T(0) : w[i];
    return;
  case constraint::range: {
    const T low = static_cast<T>(c.low), high = static_cast<T>(c.high);
    for (std::int64_t i = 0; i < n; ++i) w[i] = w[i] < low ? low : w[i] > high ? high : w[i];
    return;
  }
  case constraint::unit:
  case constraint::norm: return detail::constrain_norms(c, w, dims);
  default: return;
  }
}

namespace detail {
// A sweep computes the average together with the update; for a constrained variable the average comes after the
// constraint instead.
template <class Constants>
Constants without_average(Constants c) {
  c.new_share = 0;
  return c;
}
struct no_step {  // a rule that leaves theta alone
  using policy_for = kind::rule;
  static constexpr std::string_view name = "no step";
  std::optional<double> rate = {};
  static constexpr double default_rate = 0;
  template <class N>
  struct constants {
    N unused;
  };
  constexpr constants<double> prepare(const step_info&) const { return {}; }
  template <class N>
  N step(N theta, N, const constants<N>&) const {
    return theta;
  }
};
template <class Device, class T, class Single>
[[gnu::noinline]] void constrain_then_average(const constraint& c, const Single& single,
                                              const typename Single::template constants<T>& now, T* theta,
                                              T* const* mirrors, const extents& dims) {
  (constrain)(c, theta, dims);
  if constexpr (Single::has_average) {
    using alone = single_update<no_step, no_schedule, no_clip, typename Single::average_type>;
    const alone average(no_step{}, no_schedule{}, no_clip{}, single.average());
    Device::follow(average, typename alone::template constants<T>{{}, now.new_share}, theta,
                   mirrors + Single::slot_count, static_cast<std::size_t>(count(dims)));
  }
}
}  // namespace detail

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "constrain.ipp"
#endif
