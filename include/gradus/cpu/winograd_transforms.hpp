// These are the transforms of Winograd's minimal filtering (Lavin and Gray, Fast Algorithms for Convolutional Neural
// Networks, 2016, sections 4.1 to 4.3), along one axis and along both.
#pragma once
#include "../base/build.hpp"

#include <cstddef>

#include "number.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// These are the transforms along one axis: of M + 2 pixels, of three filters, of M + 2 sums to M places; and for the
// gradient of filters, of the gradients at M places, and of M + 2 sums to three filters. Interpolation is at the points
// 0, 1, -1 and infinity, with M = 4 also at 2 and -2.
template <int M>
struct winograd_transforms;
template <>
struct winograd_transforms<2> {
  template <class N>
  static GRADUS_INLINE void image(const N* d, N* v) {
    v[0] = d[0] - d[2], v[1] = d[1] + d[2], v[2] = d[2] - d[1], v[3] = d[1] - d[3];
  }
  template <class N>
  static GRADUS_INLINE void filter(const N* g, N* u) {
    const N half = N::of(0.5), even = g[0] + g[2];
    u[0] = g[0], u[1] = half * (even + g[1]), u[2] = half * (even - g[1]), u[3] = g[2];
  }
  template <class N>
  static GRADUS_INLINE void result(const N* m, N* y) {
    y[0] = m[0] + (m[1] + m[2]), y[1] = (m[1] - m[2]) - m[3];
  }
  template <class N>
  static GRADUS_INLINE void gradient(const N* y, N* v) {
    v[0] = y[0], v[1] = y[0] + y[1], v[2] = y[0] - y[1], v[3] = -y[1];
  }
  template <class N>
  static GRADUS_INLINE void of_filter(const N* u, N* g) {
    const N half = N::of(0.5), even = half * (u[1] + u[2]);
    g[0] = u[0] + even, g[1] = half * (u[1] - u[2]), g[2] = even + u[3];
  }
};
template <>
struct winograd_transforms<4> {
  template <class N>
  static GRADUS_INLINE void image(const N* d, N* v) {
    const N four = N::of(4), five = N::of(-5);
    const N even = fma(-four, d[2], d[4]), odd = fma(-four, d[1], d[3]);
    const N near = d[4] - d[2], far = N::of(2) * (d[3] - d[1]);
    v[0] = fma(four, d[0], fma(five, d[2], d[4]));
    v[1] = even + odd, v[2] = even - odd, v[3] = near + far, v[4] = near - far;
    v[5] = fma(four, d[1], fma(five, d[3], d[5]));
  }
  template <class N>
  static GRADUS_INLINE void filter(const N* g, N* u) {
    const N sixth = N::of(-1.0 / 6), part = N::of(1.0 / 24);
    const N near = g[0] + g[2], far = fma(N::of(4), g[2], g[0]), twice = g[1] + g[1];
    u[0] = N::of(0.25) * g[0];
    u[1] = sixth * (near + g[1]), u[2] = sixth * (near - g[1]);
    u[3] = part * (far + twice), u[4] = part * (far - twice);
    u[5] = g[2];
  }
  template <class N>
  static GRADUS_INLINE void result(const N* m, N* y) {
    const N p = m[1] + m[2], q = m[1] - m[2], r = m[3] + m[4], s = m[3] - m[4];
    y[0] = m[0] + (p + r);
    y[1] = fma(N::of(2), s, q);
    y[2] = fma(N::of(4), r, p);
    y[3] = fma(N::of(8), s, q) + m[5];
  }
  template <class N>
  static GRADUS_INLINE void gradient(const N* y, N* v) {
    const N four = N::of(4), even = y[0] + y[2], odd = y[1] + y[3];
    const N far = fma(four, y[2], y[0]), twice = N::of(2) * fma(four, y[3], y[1]);
    v[0] = y[0], v[1] = even + odd, v[2] = even - odd, v[3] = far + twice, v[4] = far - twice, v[5] = y[3];
  }
  template <class N>
  static GRADUS_INLINE void of_filter(const N* u, N* g) {
    const N sixth = N::of(1.0 / 6), p = u[1] + u[2], q = u[2] - u[1], r = u[3] + u[4], s = u[3] - u[4];
    g[0] = fma(N::of(0.25), u[0], fma(N::of(1.0 / 24), r, -(sixth * p)));
    g[1] = fma(N::of(1.0 / 12), s, sixth * q);
    g[2] = fma(sixth, r - p, u[5]);
  }
};

// Applies a transform of In numbers to Out numbers along both axes of In x In numbers, which load(i, j) returns.
template <int In, int Out, class N, class Load, class Transform, class Store>
GRADUS_INLINE void transform_both(Load load, Transform transform, Store store) {
  constexpr auto in = static_cast<std::size_t>(In), out = static_cast<std::size_t>(Out);
  N half[out][in];
  for (int j = 0; j < In; ++j) {
    N column[in], to[out];
    for (int i = 0; i < In; ++i) column[i] = load(i, j);
    transform(column, to);
    for (int i = 0; i < Out; ++i) half[i][j] = to[i];
  }
  for (int i = 0; i < Out; ++i) {
    N to[out];
    transform(half[i], to);
    for (int j = 0; j < Out; ++j) store(i, j, to[j]);
  }
}

}  // namespace gradus::detail
