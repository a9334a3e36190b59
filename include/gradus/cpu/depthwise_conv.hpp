// These kernels compute depthwise convolutions. Vector registers hold channels of the result: these are adjacent in
// filters and in results, and in images as well where the multiplier is 1. Where it is not, each channel of a pixel is
// spread to all its channels of the result.
//
// The order of sums is a function of shapes alone. Every sum goes over places inside the image and begins at +0:
// - depthwise_conv2d: one chain of fma over (kh, kw).
// - depthwise_conv2d_filter: in each image one chain over (oh, ow), then the images are added in order from +0.
// - depthwise_conv2d_input: one chain over (kh, kw) for each of the channels of the result that a channel of the image
//   has, then these are added in order.
#pragma once
#include "../base/build.hpp"

#include <cstring>

#include "../ops/depthwise_conv.hpp"
#include "kernel.hpp"
#include "window_sums.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// These are N::width channels of the result, or, if Part, the first `some` of them.
template <class N, bool Part>
struct depthwise_channels {
  using numbers = N;
  using T = typename N::value_type;
  static constexpr bool one_of_each = true;

  std::int64_t first, of_image;  // the first channel, in the result and in the image
  std::size_t some;
  depthwise_channels(std::int64_t c, std::size_t n, std::int64_t multiplier)
      : first(c), of_image(c / multiplier), some(n) {}

  GRADUS_INLINE N read(const T* p) const {
    if constexpr (Part)
      return load_first<N>(p, some);
    else
      return N::load(p);
  }
  GRADUS_INLINE void write(N x, T* p) const {
    if constexpr (Part)
      x.store_partial(p, some);
    else
      x.store(p);
  }
  // Returns the image values that these channels of a filter tap multiply.
  GRADUS_INLINE N pixel(const T* p) const { return read(p); }
};
#if GRADUS_SIMD
template <class N>
inline constexpr bool spreads = reads_parts<N> && simd::picked<typename N::value_type, sizeof(N)>::supported;

// These are the same where a channel of the image has several channels of the result.
template <class N, bool Part>
struct spread_channels : depthwise_channels<N, Part> {
  using T = typename N::value_type;
  static constexpr bool one_of_each = false;

  std::size_t seen = 1;  // how many channels of the image they read
  typename N::words places;
  spread_channels(std::int64_t c, std::size_t n, std::int64_t multiplier)
      : depthwise_channels<N, Part>(c, n, multiplier) {
    typename N::word list[N::width], place = 0;
    std::int64_t number = c - this->of_image * multiplier;
    for (std::size_t i = 0; i < N::width; ++i) {
      list[i] = place;
      if (i < n) seen = place + 1;
      if (++number == multiplier) number = 0, ++place;
    }
    std::memcpy(&places, list, sizeof places);
  }
  GRADUS_INLINE N pixel(const T* p) const {
    return N(simd::picked<T, sizeof(N)>::from(load_first<N>(p, seen).raw(), places));
  }
};
#endif

// Calls f(channels) for registers of the channels [mine.first, mine.last) of the result, and for single lanes where
// registers do not serve.
template <class A, class T, class G, class F>
void in_channels(const G& g, index_range mine, F f) {
  const std::int64_t multiplier = g.out / g.in;
  std::int64_t c = mine.first;
#if GRADUS_SIMD
  using N = pack<T, A>;
  using known = known_windows<G>;
  constexpr auto w = static_cast<std::int64_t>(N::width);
  const auto registers = [&]<template <class, bool> class Channels>() {
    for (; c + w <= mine.last; c += w) f(Channels<N, false>(c, N::width, multiplier));
    if constexpr (reads_parts<N> && (known::out == 0 || known::out % w != 0))
      if (c < mine.last) {
        f(Channels<N, true>(c, static_cast<std::size_t>(mine.last - c), multiplier));
        c = mine.last;
      }
  };
  if constexpr (known::in == known::out)  // both are 0 where they are not known
    if (multiplier == 1) registers.template operator()<depthwise_channels>();
  if constexpr ((known::out == 0 || known::in != known::out) && spreads<N>)
    if (multiplier != 1) registers.template operator()<spread_channels>();
  constexpr bool lanes = !reads_parts<N> || (!spreads<N> && (known::out == 0 || known::in != known::out));
#else
  constexpr bool lanes = true;
#endif
  if constexpr (lanes)
    for (; c < mine.last; ++c) f(depthwise_channels<lane<T, A>, false>(c, 1, multiplier));
}

// These are Rows sums over the filters, for places `step` numbers apart.
template <class Channels, int Rows>
struct depthwise_sums {
  using N = typename Channels::numbers;
  using T = typename N::value_type;
  using row_places = std::make_integer_sequence<int, Rows>;

  N sums[static_cast<std::size_t>(Rows)];

  GRADUS_INLINE depthwise_sums() { clear(row_places{}); }
  // Adds a filter tap's products. If Own, x is read as channels of the result are; else x is a pixel.
  template <bool Own>
  GRADUS_INLINE void add(const Channels& c, const T* x, std::int64_t step, const T* filter) {
    add<Own>(c, x, step, c.read(filter), row_places{});
  }
  template <class F>
  GRADUS_INLINE void each(F f) const {
    each(f, row_places{});
  }

private:
  template <int... R>
  GRADUS_INLINE void clear(std::integer_sequence<int, R...>) {
    ((sums[R] = N(T(0))), ...);
  }
  template <bool Own, int... R>
  GRADUS_INLINE void add(const Channels& c, const T* x, std::int64_t step, N filter, std::integer_sequence<int, R...>) {
    if constexpr (Own)
      ((sums[R] = fma(c.read(x + R * step), filter, sums[R])), ...);
    else
      ((sums[R] = fma(c.pixel(x + R * step), filter, sums[R])), ...);
  }
  template <class F, int... R>
  GRADUS_INLINE void each(F f, std::integer_sequence<int, R...>) const {
    (f(R, sums[R]), ...);
  }
};

// Works like in_tiles, with fewer heights where the number of rows is not known, because each is code for all kinds of
// channels. Without vectors there is then no tile: a microcontroller that interprets has every kernel, and no memory to
// spare.
template <class N, std::int64_t Constant, class F>
GRADUS_INLINE void in_place_tiles(std::int64_t first, std::int64_t last, F f) {
  constexpr int most = N::width == 1 ? 4 : 8, half = most / 2;
  const auto run = [&]<int Rows>() {
    for (std::int64_t i = first; i < last; i += Rows) {
      const std::int64_t start = i + Rows <= last ? i : last - Rows;
      f.template operator()<Rows>(start, i - start);
    }
  };
  const std::int64_t n = last - first, rest = n % most;
  if constexpr (Constant != 0)
    in_tiles<most, Constant>(first, last, f);
  else if (GRADUS_SIMD == 0 || n < half)
    run.template operator()<1>();
  else if constexpr (GRADUS_SIMD != 0)
    n >= most && (rest == 0 || rest > half) ? run.template operator()<most>() : run.template operator()<half>();
}

}  // namespace detail

template <>
struct op_kernel<&cards::depthwise_conv2d> {
  static constexpr bool divides = true;

  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      const detail::windows<S> g(s);
      const index_range mine = s.share(g.images * g.oh);
      for (std::int64_t row = mine.first; row < mine.last; ++row)
        detail::in_channels<A, T>(g, {0, g.out}, [&](const auto& channels) {
          one_row(g, row, channels, at<T>(a, 0), at<const T>(a, 1), at<const T>(a, 2));
        });
    });
  }

private:
  template <class G, class Channels, class T>
  static void one_row(const G g, std::int64_t row, const Channels c, T* y, const T* x, const T* filters) {
    const std::int64_t top = row % g.oh * g.sh - g.above, line = g.w * g.in;
    const std::int64_t above = (row / g.oh * g.h + top) * line + c.of_image;  // where the windows begin
    const detail::visible down(top, g.kh, g.h);
    const detail::whole_windows whole(g.ow, g.kw, g.sw, g.left, g.w);
    const auto tile = [&]<int Rows>(std::int64_t ow, std::int64_t from, std::int64_t end) {
      detail::depthwise_sums<Channels, Rows> sums;
      const std::int64_t start = above + (ow * g.sw - g.left) * g.in;
      for (std::int64_t kh = down.first; kh < down.last; ++kh)
        for (std::int64_t kw = from; kw < end; ++kw)
          sums.template add<false>(c, x + start + kh * line + kw * g.in, g.sw * g.in,
                                   filters + (kh * g.kw + kw) * g.out + c.first);
      T* const to = y + (row * g.ow + ow) * g.out + c.first;
      sums.each([&](int r, const auto& sum) __attribute__((always_inline)) { c.write(sum, to + r * g.out); });
    };
    const auto edge = [&](std::int64_t ow, std::int64_t last) {
      for (; ow < last; ++ow) {
        const detail::visible v(ow * g.sw - g.left, g.kw, g.w);
        tile.template operator()<1>(ow, v.first, v.last);
      }
    };
    edge(0, whole.first);
    detail::in_place_tiles<typename Channels::numbers, detail::known_windows<G>::across>(
        whole.first, whole.last,
        [&]<int Rows>(std::int64_t ow, std::int64_t) { tile.template operator()<Rows>(ow, 0, g.kw); });
    edge(whole.last, g.ow);
  }
};

// The operands are filters and dy.
template <>
struct op_kernel<&cards::depthwise_conv2d_input> {
  static constexpr bool divides = true;

  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      const detail::windows<S> g(s);
      const index_range mine = s.share(g.images * g.h);
      for (std::int64_t row = mine.first; row < mine.last; ++row)
        detail::in_channels<A, T>(g, {0, g.out}, [&](const auto& channels) {
          for (std::int64_t w = 0; w < g.w && w < g.sw; ++w)
            one_row(g, row, w, channels, at<T>(a, 0), at<const T>(a, 1), at<const T>(a, 2));
        });
    });
  }

private:
  // The gradients of pixels w, w + sw, w + 2 sw ... of a row sum over the same columns of the filters: first, first +
  // sw, ... The window at place `nearest` has pixel w in its column `first`.
  template <class G, class Channels, class T>
  static void one_row(const G g, std::int64_t row, std::int64_t w, const Channels c, T* dx, const T* filters,
                      const T* dy) {
    const std::int64_t image = row / g.h, below = row % g.h + g.above, pixels = (g.w - w + g.sw - 1) / g.sw;
    const std::int64_t first = (w + g.left) % g.sw, nearest = (w + g.left) / g.sw;  // for pixel 0, which is w
    const std::int64_t columns = first < g.kw ? (g.kw - 1 - first) / g.sw + 1 : 0;
    // Seen from the pixels, the places lie in reverse order.
    const detail::whole_windows whole(pixels, columns, 1, columns - 1 - nearest, g.ow);
    const auto tile = [&]<int Rows>(std::int64_t pixel, std::int64_t skip) {
      detail::depthwise_sums<Channels, Rows> sums;
      for (std::int64_t kh = 0; kh < g.kh; ++kh) {
        const std::int64_t down = below - kh, oh = down / g.sh;
        if (down < 0 || down % g.sh != 0 || oh >= g.oh) continue;
        for (std::int64_t k = 0; k < columns; ++k) {
          const std::int64_t ow = pixel + nearest - k;
          if (Rows == 1 && (ow < 0 || ow >= g.ow)) continue;
          sums.template add<true>(c, dy + ((image * g.oh + oh) * g.ow + ow) * g.out + c.first, g.out,
                                  filters + (kh * g.kw + first + k * g.sw) * g.out + c.first);
        }
      }
      T* const to = dx + (row * g.w + w + pixel * g.sw) * g.in;
      sums.each([&](int r, const auto& sum) __attribute__((always_inline)) {
        if (r >= skip) give(g, c, sum, to + r * g.sw * g.in);
      });
    };
    for (std::int64_t i = 0; i < whole.first; ++i) tile.template operator()<1>(i, 0);
    detail::in_place_tiles<typename Channels::numbers, alike<G>>(whole.first, whole.last, tile);
    for (std::int64_t i = whole.last; i < pixels; ++i) tile.template operator()<1>(i, 0);
  }
  // This is how many pixels of a row sum over all columns of the filters, where that is a constant and sw is 1; else 0.
  template <class G>
  static constexpr std::int64_t alike = [] {
    if constexpr (G::known) {
      constexpr detail::whole_windows whole(G::w, G::kw, 1, G::kw - 1 - G::left, G::ow);
      return G::sw == 1 ? whole.last - whole.first : std::int64_t{0};
    } else {
      return std::int64_t{0};
    }
  }();
  // Writes the sums of one pixel to the channels of the image that they belong to; those of one channel are added in
  // order.
  template <class G, class Channels, class N, class T>
  static GRADUS_INLINE void give(const G& g, const Channels& c, N sums, T* dx) {
    if constexpr (Channels::one_of_each && N::width > 1) {
      c.write(sums, dx + c.first);
    } else {
      const std::int64_t multiplier = g.out / g.in;
      T* to = dx + c.of_image;
      std::int64_t number = c.first - c.of_image * multiplier;
      for (std::size_t i = 0; i < c.some; ++i) {
        *to = number == 0 ? sums[i] : *to + sums[i];
        if (++number == multiplier) number = 0, ++to;
      }
    }
  }
};

// The operands are x and dy.
template <>
struct op_kernel<&cards::depthwise_conv2d_filter> {
  static constexpr bool divides = true;

  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      using G = detail::windows<S>;
      const G g(s);
      const index_range mine = s.share(g.out, 64 / sizeof(T));
      T* const df = at<T>(a, 0);
      for (std::int64_t tap = 0; tap < g.kh * g.kw; ++tap)
        for (std::int64_t c = mine.first; c < mine.last; ++c) df[tap * g.out + c] = T(0);
      detail::in_channels<A, T>(g, mine, [&](const auto& channels) {
        using known = detail::known_windows<G>;
        for (std::int64_t i = 0; i < g.images; ++i)
          in_taps<known::kh>(g.kh, [&]<int Down>(std::int64_t kh) {
            in_taps<known::kw>(g.kw, [&]<int Across>(std::int64_t kw) {
              some_taps<Down, Across>(g, i, kh, kw, channels, df, at<const T>(a, 1), at<const T>(a, 2));
            });
          });
      });
    });
  }

private:
  // Calls f.operator()<taps>(first): by threes, then the rest at once where n is a constant, else one by one (without
  // SIMD, all of them).
  template <std::int64_t Constant, class F>
  static GRADUS_INLINE void in_taps(std::int64_t n, F f) {
    std::int64_t k = 0;
    if constexpr (Constant == 0 ? GRADUS_SIMD != 0 : Constant >= 3)
      for (; k + 3 <= n; k += 3) f.template operator()<3>(k);
    if constexpr (Constant % 3 != 0) f.template operator()<static_cast<int>(Constant % 3)>(k);
    if constexpr (Constant == 0)
      for (; k < n; ++k) f.template operator()<1>(k);
  }
  // Adds the sums over one image to Down x Across taps of a filter, from (kh, kw) on; the sums are in registers.
  template <int Down, int Across, class G, class Channels, class T>
  static void some_taps(const G g, std::int64_t image, std::int64_t kh, std::int64_t kw, const Channels c, T* df,
                        const T* x, const T* dy) {
    using N = typename Channels::numbers;
    N sums[static_cast<std::size_t>(Down * Across)];
    const auto each = [&](auto f) __attribute__((always_inline)) {
      [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) { (f(I), ...); }
      (std::make_integer_sequence<int, Down * Across>{});
    };
    each([&](int i) __attribute__((always_inline)) { sums[i] = N(T(0)); });
    const std::int64_t line = g.w * g.in;
    const detail::whole_windows whole(g.ow, Across, g.sw, g.left - kw, g.w);
    for (std::int64_t oh = 0; oh < g.oh; ++oh) {
      const std::int64_t top = oh * g.sh - g.above + kh;
      const detail::visible down(top, Down, g.h);
      const T* const from = x + (image * g.h + top) * line + (kw - g.left) * g.in + c.of_image;
      const T* const up = dy + (image * g.oh + oh) * g.ow * g.out + c.first;
      const auto place = [&]<bool All>(std::int64_t ow, const detail::visible& across) __attribute__((always_inline)) {
        const N upstream = c.read(up + ow * g.out);
        const T* const p = from + ow * g.sw * g.in;
        each([&](int i) __attribute__((always_inline)) {
          const int h = i / Across, w = i % Across;
          if (All || (h >= down.first && h < down.last && w >= across.first && w < across.last))
            sums[i] = fma(c.pixel(p + h * line + w * g.in), upstream, sums[i]);
        });
      };
      const auto some = [&](std::int64_t ow, std::int64_t last) __attribute__((always_inline)) {
        for (; ow < last; ++ow)
          place.template operator()<false>(ow, detail::visible(ow * g.sw - g.left + kw, Across, g.w));
      };
      if (down.first > 0 || down.last < Down) {
        if (down.first < down.last) some(0, g.ow);
        continue;
      }
      some(0, whole.first);
      for (std::int64_t ow = whole.first; ow < whole.last; ++ow)
        place.template operator()<true>(ow, detail::visible(0, Across, Across));
      some(whole.last, g.ow);
    }
    each([&](int i) __attribute__((always_inline)) {
      T* const to = df + ((kh + i / Across) * g.kw + kw + i % Across) * g.out + c.first;
      c.write(c.read(to) + sums[i], to);
    });
  }
};

using depthwise_conv_ops =
    op_list<&cards::depthwise_conv2d, &cards::depthwise_conv2d_input, &cards::depthwise_conv2d_filter>;

}  // namespace gradus
