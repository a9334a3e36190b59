// Kernels of convolution and pooling. Vector registers hold channels.
//
// Order of sums, for every element of a result: conv2d adds by fma over (kh, kw, in), its image gradient over (kh, kw,
// out), its filter gradient over the places (oh, ow) of one image and then over images; pools go over (kh, kw).
#pragma once
#include <cstring>

#include "../ops/conv.hpp"
#include "kernel.hpp"
#include "number.hpp"

namespace gradus {

namespace detail {
template <class S>
struct windows {
  std::int64_t images, h, w, in, oh, ow, out, kh, kw, sh, sw, above, left;
  explicit windows(const S& s)
      : images(s.dim(0)),
        h(s.raw(1)),
        w(s.raw(2)),
        in(s.raw(3)),
        oh(s.raw(4)),
        ow(s.raw(5)),
        out(s.raw(6)),
        kh(s.raw(7)),
        kw(s.raw(8)),
        sh(s.raw(9)),
        sw(s.raw(10)),
        above(s.raw(11)),
        left(s.raw(12)) {}
};
// The part [first, last) of a window of k places at `start` that lies in [0, n).
struct visible {
  std::int64_t first, last;
  visible(std::int64_t start, std::int64_t k, std::int64_t n)
      : first(start < 0 ? -start : 0), last(n - start < k ? n - start : k) {}
};
// f(start, c) with a number type: registers along the channels, single lanes for the rest.
template <class A, class T, class F>
void along_channels(std::int64_t n, F f) {
  using N = pack<T, A>;
  constexpr auto w = static_cast<std::int64_t>(N::width);
  std::int64_t c = 0;
  for (; c + 4 * w <= n; c += 4 * w) f.template operator()<N, 4>(c);
  for (; c + w <= n; c += w) f.template operator()<N, 1>(c);
  for (; c < n; ++c) f.template operator()<lane<T, A>, 1>(c);
}
// acc[j] = fma(x, row[j], acc[j]) for a row of channels.
template <class N, int Count, class T>
GRADUS_INLINE void add_scaled(N (&acc)[Count], T x, const T* row) {
  for (int j = 0; j < Count; ++j) acc[j] = fma(N(x), N::load(row + j * static_cast<std::int64_t>(N::width)), acc[j]);
}
template <class N, int Count, class T>
GRADUS_INLINE void store(const N (&acc)[Count], T* row) {
  for (int j = 0; j < Count; ++j) acc[j].store(row + j * static_cast<std::int64_t>(N::width));
}
}  // namespace detail

template <>
struct kernel<&cards::conv2d> {
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    typed<0, float, double>(s, [&]<class T>() {
      const detail::windows<S> g(s);
      T* y = at<T>(a, 0);
      const T *x = at<const T>(a, 1), *filters = at<const T>(a, 2);
      for (std::int64_t i = 0; i < g.images; ++i, x += g.h * g.w * g.in)
        for (std::int64_t oh = 0; oh < g.oh; ++oh)
          for (std::int64_t ow = 0; ow < g.ow; ++ow, y += g.out) {
            const std::int64_t top = oh * g.sh - g.above, left = ow * g.sw - g.left;
            const detail::visible rows(top, g.kh, g.h), columns(left, g.kw, g.w);
            detail::along_channels<A, T>(g.out, [&]<class N, int Count>(std::int64_t c) {
              N acc[Count];
              for (auto& n : acc) n = N(T(0));
              for (auto kh = rows.first; kh < rows.last; ++kh)
                for (auto kw = columns.first; kw < columns.last; ++kw) {
                  const T* pixel = x + ((top + kh) * g.w + left + kw) * g.in;
                  const T* f = filters + (kh * g.kw + kw) * g.in * g.out + c;
                  for (std::int64_t k = 0; k < g.in; ++k, f += g.out) detail::add_scaled(acc, pixel[k], f);
                }
              detail::store(acc, y + c);
            });
          }
    });
  }
};

// operands: filters [kh, kw, out, in], dy
template <>
struct kernel<&cards::conv2d_input> {
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    typed<0, float, double>(s, [&]<class T>() {
      const detail::windows<S> g(s);
      T* dx = at<T>(a, 0);
      const T *filters = at<const T>(a, 1), *dy = at<const T>(a, 2);
      for (std::int64_t i = 0; i < g.images; ++i, dy += g.oh * g.ow * g.out)
        for (std::int64_t h = 0; h < g.h; ++h)
          for (std::int64_t w = 0; w < g.w; ++w, dx += g.in)
            detail::along_channels<A, T>(g.in, [&]<class N, int Count>(std::int64_t c) {
              N acc[Count];
              for (auto& n : acc) n = N(T(0));
              for (std::int64_t kh = 0; kh < g.kh; ++kh) {
                const std::int64_t down = h + g.above - kh, oh = down / g.sh;
                if (down < 0 || down % g.sh != 0 || oh >= g.oh) continue;
                for (std::int64_t kw = 0; kw < g.kw; ++kw) {
                  const std::int64_t across = w + g.left - kw, ow = across / g.sw;
                  if (across < 0 || across % g.sw != 0 || ow >= g.ow) continue;
                  const T* upstream = dy + (oh * g.ow + ow) * g.out;
                  const T* f = filters + (kh * g.kw + kw) * g.in * g.out + c;
                  for (std::int64_t k = 0; k < g.out; ++k, f += g.in) detail::add_scaled(acc, upstream[k], f);
                }
              }
              detail::store(acc, dx + c);
            });
    });
  }
};

template <>
struct kernel<&cards::conv2d_filter> {
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    typed<0, float, double>(s, [&]<class T>() {
      const detail::windows<S> g(s);
      T* df = at<T>(a, 0);
      const T *x = at<const T>(a, 1), *dy = at<const T>(a, 2);
      std::memset(df, 0, static_cast<std::size_t>(g.kh * g.kw * g.in * g.out) * sizeof(T));
      for (std::int64_t i = 0; i < g.images; ++i, x += g.h * g.w * g.in, dy += g.oh * g.ow * g.out) {
        T* row = df;
        for (std::int64_t kh = 0; kh < g.kh; ++kh)
          for (std::int64_t kw = 0; kw < g.kw; ++kw)
            for (std::int64_t k = 0; k < g.in; ++k, row += g.out)
              detail::along_channels<A, T>(g.out, [&]<class N, int Count>(std::int64_t c) {
                N acc[Count];
                for (auto& n : acc) n = N(T(0));
                for (std::int64_t oh = 0; oh < g.oh; ++oh) {
                  const std::int64_t h = oh * g.sh - g.above + kh;
                  if (h < 0 || h >= g.h) continue;
                  for (std::int64_t ow = 0; ow < g.ow; ++ow) {
                    const std::int64_t w = ow * g.sw - g.left + kw;
                    if (w < 0 || w >= g.w) continue;
                    detail::add_scaled(acc, x[(h * g.w + w) * g.in + k], dy + (oh * g.ow + ow) * g.out + c);
                  }
                }
                for (int j = 0; j < Count; ++j) {
                  T* place = row + c + j * static_cast<std::int64_t>(N::width);
                  (N::load(place) + acc[j]).store(place);
                }
              });
      }
    });
  }
};

namespace detail {
// f(image of x, window of x, row of y) for every window.
template <class S, class F>
void each_window(const windows<S>& g, F f) {
  for (std::int64_t i = 0, place = 0; i < g.images; ++i)
    for (std::int64_t oh = 0; oh < g.oh; ++oh)
      for (std::int64_t ow = 0; ow < g.ow; ++ow, ++place) {
        const std::int64_t top = oh * g.sh - g.above, left = ow * g.sw - g.left;
        const visible rows(top, g.kh, g.h), columns(left, g.kw, g.w);
        const auto first = (i * g.h + top + rows.first) * g.w + left + columns.first;
        f(first * g.in, rows.last - rows.first, columns.last - columns.first, place * g.in);
      }
}
}  // namespace detail

template <>
struct kernel<&cards::max_pool> {
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    typed<0, float, double>(s, [&]<class T>() {
      const detail::windows<S> g(s);
      detail::each_window(g, [&](std::int64_t first, std::int64_t rows, std::int64_t columns, std::int64_t to) {
        const T* x = at<const T>(a, 1) + first;
        T* y = at<T>(a, 0) + to;
        detail::along_channels<A, T>(g.in, [&]<class N, int Count>(std::int64_t c) {
          for (int j = 0; j < Count; ++j, c += static_cast<std::int64_t>(N::width)) {
            N most = N::load(x + c);
            for (std::int64_t h = 0; h < rows; ++h)
              for (std::int64_t w = 0; w < columns; ++w) most = max(N::load(x + (h * g.w + w) * g.in + c), most);
            most.store(y + c);
          }
        });
      });
    });
  }
};

// operands: x, dy
template <>
struct kernel<&cards::max_pool_grad> {
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    typed<0, float, double>(s, [&]<class T>() {
      const detail::windows<S> g(s);
      T* dx = at<T>(a, 0);
      std::memset(dx, 0, static_cast<std::size_t>(g.images * g.h * g.w * g.in) * sizeof(T));
      detail::each_window(g, [&](std::int64_t first, std::int64_t rows, std::int64_t columns, std::int64_t to) {
        const T *x = at<const T>(a, 1) + first, *dy = at<const T>(a, 2) + to;
        for (std::int64_t c = 0; c < g.in; ++c) {
          std::int64_t best = c;
          for (std::int64_t h = 0; h < rows; ++h)
            for (std::int64_t w = 0; w < columns; ++w) {
              const std::int64_t place = (h * g.w + w) * g.in + c;
              if (x[place] > x[best]) best = place;
            }
          dx[first + best] += dy[c];
        }
      });
    });
  }
};

template <>
struct kernel<&cards::avg_pool> {
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    typed<0, float, double>(s, [&]<class T>() {
      const detail::windows<S> g(s);
      detail::each_window(g, [&](std::int64_t first, std::int64_t rows, std::int64_t columns, std::int64_t to) {
        const T* x = at<const T>(a, 1) + first;
        T* y = at<T>(a, 0) + to;
        detail::along_channels<A, T>(g.in, [&]<class N, int Count>(std::int64_t c) {
          for (int j = 0; j < Count; ++j, c += static_cast<std::int64_t>(N::width)) {
            N sum(T(0));
            for (std::int64_t h = 0; h < rows; ++h)
              for (std::int64_t w = 0; w < columns; ++w) sum = sum + N::load(x + (h * g.w + w) * g.in + c);
            (sum / N(static_cast<T>(rows * columns))).store(y + c);
          }
        });
      });
    });
  }
};

template <>
struct kernel<&cards::avg_pool_grad> {
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    typed<0, float, double>(s, [&]<class T>() {
      const detail::windows<S> g(s);
      T* out = at<T>(a, 0);
      std::memset(out, 0, static_cast<std::size_t>(g.images * g.h * g.w * g.in) * sizeof(T));
      detail::each_window(g, [&](std::int64_t first, std::int64_t rows, std::int64_t columns, std::int64_t from) {
        T* dx = out + first;
        const T* dy = at<const T>(a, 1) + from;
        detail::along_channels<A, T>(g.in, [&]<class N, int Count>(std::int64_t c) {
          for (int j = 0; j < Count; ++j, c += static_cast<std::int64_t>(N::width)) {
            const N share = N::load(dy + c) / N(static_cast<T>(rows * columns));
            for (std::int64_t h = 0; h < rows; ++h)
              for (std::int64_t w = 0; w < columns; ++w) {
                T* place = dx + (h * g.w + w) * g.in + c;
                (N::load(place) + share).store(place);
              }
          }
        });
      });
    });
  }
};

using conv_ops = op_list<&cards::conv2d, &cards::conv2d_input, &cards::conv2d_filter, &cards::max_pool,
                         &cards::max_pool_grad, &cards::avg_pool, &cards::avg_pool_grad>;

}  // namespace gradus
