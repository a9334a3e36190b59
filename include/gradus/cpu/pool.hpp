// These are the kernels of pooling. Vector registers hold channels; windows are traversed over (kh, kw).
#pragma once
#include "../base/build.hpp"

#include <cstring>

#include "../ops/conv.hpp"
#include "kernel.hpp"
#include "window_sums.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// Calls f(c, count) with a number type for the `count` channels from c: with registers, the last one in part, or with
// single lanes where partial registers are expensive.
template <class A, class T, class F>
GRADUS_INLINE void along_channels(std::int64_t n, F f) {
  using N = pack<T, A>;
  constexpr auto w = static_cast<std::int64_t>(N::width);
  std::int64_t c = 0;
  for (; c + w <= n; c += w) f.template operator()<N>(c, N::width);
  if constexpr (reads_parts<N> && N::width > 1) {
    if (c < n) f.template operator()<N>(c, static_cast<std::size_t>(n - c));
  } else {
    for (; c < n; ++c) f.template operator()<lane<T, A>>(c, std::size_t{1});
  }
}
// This is what a pool sees of one window: the offset of its first visible pixel in the images, the rows and columns
// seen, and the offset of its result. Offsets count numbers.
struct pool_window {
  std::int64_t first, rows, columns, place;
};
struct pool_window_of_four {  // the common window, whose loops then unroll
  std::int64_t first, place;
  static constexpr std::int64_t rows = 2, columns = 2;
};
// Calls f(window) for the windows of some rows of windows (a piece of work is one such row of one image).
template <class S, class F>
GRADUS_INLINE void each_window(const windows<S>& g, index_range mine, F f) {
  for (std::int64_t row = mine.first; row < mine.last; ++row) {
    const std::int64_t image = row / g.oh, top = row % g.oh * g.sh - g.above;
    const visible rows(top, g.kh, g.h);
    for (std::int64_t ow = 0; ow < g.ow; ++ow) {
      const std::int64_t left = ow * g.sw - g.left;
      const visible columns(left, g.kw, g.w);
      const std::int64_t first = (image * g.h + top + rows.first) * g.w + left + columns.first;
      const pool_window seen{first * g.in, rows.last - rows.first, columns.last - columns.first,
                             (row * g.ow + ow) * g.in};
      if (!windows<S>::known && seen.rows == 2 && seen.columns == 2)
        f(pool_window_of_four{seen.first, seen.place});
      else
        f(seen);
    }
  }
}
// Does the same for whole images. Where windows may overlap, a gradient adds to the numbers of dx, which are set to
// zero first; where they lie apart (template argument Apart), it writes. Numbers that no window sees stay zeros.
template <class T, class S, class F>
GRADUS_INLINE void each_window_of_images(const S& s, T* dx, F f) {
  const windows<S> g(s);
  const index_range mine = s.share(g.images);
  const std::int64_t image = g.h * g.w * g.in;
  const bool apart = g.sh >= g.kh && g.sw >= g.kw;
  const bool all = g.sh == g.kh && g.sw == g.kw && g.oh * g.kh >= g.h && g.ow * g.kw >= g.w;
  if (!all && mine.first < mine.last)
    std::memset(dx + mine.first * image, 0, static_cast<std::size_t>((mine.last - mine.first) * image) * sizeof(T));
  const index_range rows{mine.first * g.oh, mine.last * g.oh};
  if (apart)
    each_window(
        g, rows, [&](const auto& v) __attribute__((always_inline)) { f.template operator()<true>(v); });
  else
    each_window(
        g, rows, [&](const auto& v) __attribute__((always_inline)) { f.template operator()<false>(v); });
}
template <bool Apart, class N>
GRADUS_INLINE void give(N x, typename N::value_type* p, std::size_t n) {
  store_run(x + (Apart ? N(typename N::value_type(0)) : load_run<N>(p, n)), p, n);
}

}  // namespace detail

template <>
struct op_kernel<&cards::max_pool> {
  static constexpr bool divides = true;

  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      const detail::windows<S> g(s);
      const T* x = at<const T>(a, 1);
      T* y = at<T>(a, 0);
      detail::each_window(
          g, s.share(g.images * g.oh), [&](const auto& v) __attribute__((always_inline)) {
            detail::along_channels<A, T>(
                g.in, [&]<class N>(std::int64_t c, std::size_t n) __attribute__((always_inline)) {
                  const T* from = x + v.first + c;
                  N most = detail::load_run<N>(from, n);
                  for (std::int64_t h = 0; h < v.rows; ++h)
                    for (std::int64_t w = 0; w < v.columns; ++w)
                      most = max(detail::load_run<N>(from + (h * g.w + w) * g.in, n), most);
                  detail::store_run(most, y + v.place + c, n);
                });
          });
    });
  }
};

// The operands are x and dy.
template <>
struct op_kernel<&cards::max_pool_grad> {
  static constexpr bool divides = true;

  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      const detail::windows<S> g(s);
      const T *x = at<const T>(a, 1), *dy = at<const T>(a, 2);
      T* dx = at<T>(a, 0);
      detail::each_window_of_images(
          s, dx, [&]<bool Apart>(const auto& v) __attribute__((always_inline)) {
            detail::along_channels<A, T>(
                g.in, [&]<class N>(std::int64_t c, std::size_t n) __attribute__((always_inline)) {
                  // `best` is the place in the window of the first number that is the largest. A float counts exactly
                  // to 2^24.
                  const T* from = x + v.first + c;
                  N most = detail::load_run<N>(from, n), best(T(0)), place(T(0));
                  const N one(T(1));
                  for (std::int64_t h = 0; h < v.rows; ++h)
                    for (std::int64_t w = 0; w < v.columns; ++w, place = place + one) {
                      const N next = detail::load_run<N>(from + (h * g.w + w) * g.in, n);
                      const auto larger = next > most;
                      most = select(larger, next, most), best = select(larger, place, best);
                    }
                  const N upstream = detail::load_run<N>(dy + v.place + c, n), zero(T(0));
                  T* to = dx + v.first + c;
                  place = zero;
                  for (std::int64_t h = 0; h < v.rows; ++h)
                    for (std::int64_t w = 0; w < v.columns; ++w, place = place + one) {
                      T* p = to + (h * g.w + w) * g.in;
                      detail::give<Apart>(select(place == best, upstream, zero), p, n);
                    }
                });
          });
    });
  }
};

template <>
struct op_kernel<&cards::avg_pool> {
  static constexpr bool divides = true;

  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      const detail::windows<S> g(s);
      const T* x = at<const T>(a, 1);
      T* y = at<T>(a, 0);
      detail::each_window(
          g, s.share(g.images * g.oh), [&](const auto& v) __attribute__((always_inline)) {
            detail::along_channels<A, T>(
                g.in, [&]<class N>(std::int64_t c, std::size_t n) __attribute__((always_inline)) {
                  N sum(T(0));
                  for (std::int64_t h = 0; h < v.rows; ++h)
                    for (std::int64_t w = 0; w < v.columns; ++w)
                      sum = sum + detail::load_run<N>(x + v.first + (h * g.w + w) * g.in + c, n);
                  detail::store_run(sum / N(static_cast<T>(v.rows * v.columns)), y + v.place + c, n);
                });
          });
    });
  }
};

template <>
struct op_kernel<&cards::avg_pool_grad> {
  static constexpr bool divides = true;

  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      const detail::windows<S> g(s);
      const T* dy = at<const T>(a, 1);
      T* dx = at<T>(a, 0);
      detail::each_window_of_images(
          s, dx, [&]<bool Apart>(const auto& v) __attribute__((always_inline)) {
            detail::along_channels<A, T>(
                g.in, [&]<class N>(std::int64_t c, std::size_t n) __attribute__((always_inline)) {
                  const N share = detail::load_run<N>(dy + v.place + c, n) / N(static_cast<T>(v.rows * v.columns));
                  for (std::int64_t h = 0; h < v.rows; ++h)
                    for (std::int64_t w = 0; w < v.columns; ++w) {
                      T* p = dx + v.first + (h * g.w + w) * g.in + c;
                      detail::give<Apart>(share, p, n);
                    }
                });
          });
    });
  }
};

}  // namespace gradus
