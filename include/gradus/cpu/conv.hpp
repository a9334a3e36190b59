// These kernels compute convolutions directly, with tiles of places x channels in registers (cpu/window_sums.hpp).
// Nothing is unfolded into memory: a row of a window is a run of numbers in a row of the image, and these are the
// numbers that one row of the filters multiplies.
//
// The order of sums is a function of shapes alone:
// - conv2d: one chain of fma over (kh, kw, in), over the places inside the image.
// - conv2d_filter: in each image one chain over (oh, ow), then the images are added in order from +0. Rows of places
//   above or below the image are left out; places beside it count as zeros.
// - conv2d_input: if the image has 16 channels or more, or a row of a window has more than 256 numbers (kw * in), one
//   chain over (kh, kw, out). Else one chain over (kh, out) for each column ow of places that saw the pixel, and these
//   are added over ow from +0.
#pragma once
#include "../base/build.hpp"

#include <cstring>

#include "../ops/conv.hpp"
#include "kernel.hpp"
#include "pointwise_conv.hpp"
#include "pool.hpp"
#include "window_sums.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// Computes the places [first, last) of a row of a convolution, for the channels from c on, and writes them to `to`,
// with `pitch` numbers from place to place. If Part, the places may be only some of the row.
template <class N, int Registers, int Last, bool Part, class G, class T>
GRADUS_INLINE void convolve_row(const G& g, std::int64_t row, std::int64_t first, std::int64_t last, std::int64_t c,
                                std::size_t some, T* to, std::int64_t pitch, const T* x, const T* filters) {
  const std::int64_t top = row % g.oh * g.sh - g.above, line = g.w * g.in;
  const std::int64_t above = (row / g.oh * g.h + top) * line;  // where the windows' first row begins
  const visible down(top, g.kh, g.h);
  const whole_windows whole(g.ow, g.kw, g.sw, g.left, g.w);
  const auto tile = [&]<int Rows>(std::int64_t ow, std::int64_t from, std::int64_t columns) {
    sums_of_rows<N, Rows, Registers, Last> sums(some);
    const std::int64_t start = above + (ow * g.sw - g.left + from) * g.in;
    for (std::int64_t kh = down.first; kh < down.last; ++kh)
      sums.add(x + start + kh * line, g.sw * g.in, 1, filters + (kh * g.kw + from) * g.in * g.out + c, g.out,
               columns * g.in);
    sums.store(to + (ow - first) * pitch, pitch);
  };
  const auto edge = [&](std::int64_t from, std::int64_t end) {
    for (std::int64_t ow = from; ow < end; ++ow) {
      const visible v(ow * g.sw - g.left, g.kw, g.w);
      tile.template operator()<1>(ow, v.first, v.last - v.first);
    }
  };
  std::int64_t begin = whole.first, end = whole.last;
  if constexpr (Part) {
    begin = begin < first ? first : begin < last ? begin : last;
    end = end > last ? last : end > begin ? end : begin;
  }
  edge(first, begin);
  in_tiles<window_rows(Registers), Part ? 0 : known_windows<G>::across>(
      begin, end, [&]<int Rows>(std::int64_t ow, std::int64_t) { tile.template operator()<Rows>(ow, 0, g.kw); });
  edge(end, last);
}

// This is the gradient of a convolution as the gradient of its filters reads it. Of a row of an image, from one channel
// on, places() calls f(place, numbers, pitch, count) for runs of the places [ow, ow + many), where `place` counts from
// ow. In this type the gradient lies in memory.
template <class T>
struct dense_gradient {
  const T* dy;
  template <class G>
  GRADUS_INLINE dense_gradient at(const G& g, std::int64_t image, std::int64_t channel) const {
    return {dy + image * g.oh * g.ow * g.out + channel};
  }
  template <class G>
  GRADUS_INLINE dense_gradient row(const G& g, std::int64_t oh) const {
    return {dy + oh * g.ow * g.out};
  }
  template <class N, int Registers, class G, class F>
  GRADUS_INLINE void places(const G& g, std::int64_t ow, std::int64_t many, std::size_t, F f) const {
    f(std::int64_t{0}, dy + ow * g.out, g.out, many);
  }
};

}  // namespace detail

template <>
struct op_kernel<&cards::conv2d> {
  static constexpr bool divides = true;

  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      const detail::windows<S> g(s);
      const index_range mine = s.share(g.images * g.oh);
      if constexpr (detail::may_be_pointwise<T, A, detail::windows<S>>)
        if (detail::is_pointwise(g))
          return detail::pointwise_conv<T, A>::forward(g, mine, at<T>(a, 0), at<const T>(a, 1), at<const T>(a, 2));
      detail::in_registers<A, T, detail::known_windows<detail::windows<S>>::out>(
          g.out, [&]<class N, int Registers, int Last>(std::int64_t c, std::size_t some) {
            for (std::int64_t row = mine.first; row < mine.last; ++row)
              one_row<N, Registers, Last>(g, row, c, some, at<T>(a, 0), at<const T>(a, 1), at<const T>(a, 2));
          });
    });
  }

private:
  template <class N, int Registers, int Last, class G, class T>
  static void one_row(const G& g, std::int64_t row, std::int64_t c, std::size_t some, T* y, const T* x,
                      const T* filters) {
    detail::convolve_row<N, Registers, Last, false>(g, row, 0, g.ow, c, some, y + row * g.ow * g.out + c, g.out, x,
                                                    filters);
  }
};

// The operands are filters [kh, out, kw, in] and dy.
template <>
struct op_kernel<&cards::conv2d_input> {
  static constexpr bool divides = true;

  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      using G = detail::windows<S>;
      const G g(s);
      if constexpr (detail::may_be_pointwise<T, A, G>)
        if (detail::is_pointwise(g))
          return detail::pointwise_conv<T, A>::of_input(g, s.share(g.images * g.h), !gathers(g.in, g.kw), at<T>(a, 0),
                                                        at<const T>(a, 1), at<const T>(a, 2));
      if constexpr (G::known) {
        if constexpr (gathers(G::in, G::kw))
          gather<A, T>(s, g, a);
        else
          scatter<A, T>(s, g, a);
      } else {
        gathers(g.in, g.kw) ? gather<A, T>(s, g, a) : scatter<A, T>(s, g, a);
      }
    });
  }

private:
  static constexpr std::int64_t longest = 256;
  static constexpr bool gathers(std::int64_t in, std::int64_t kw) { return in >= 16 || kw * in > longest; }

  // Computes the gradient with the channels of a pixel in registers.
  template <class A, class T, class S, class G>
  static void gather(const S& s, const G& g, std::byte* const* a) {
    const index_range mine = s.share(g.images * g.h);
    detail::in_registers<A, T, detail::known_windows<G>::in>(
        g.in, [&]<class N, int Registers, int Last>(std::int64_t c, std::size_t some) {
          for (std::int64_t row = mine.first; row < mine.last; ++row)
            for (std::int64_t w = 0; w < g.w && w < g.sw; ++w)
              gather_row<N, Registers, Last>(g, row, w, c, some, at<T>(a, 0), at<const T>(a, 1), at<const T>(a, 2));
        });
  }
  // The gradients of pixels w, w + sw, w + 2 sw ... of a row sum over the same columns of the filters: first, first +
  // sw, ... The window at place `nearest` has pixel w in its column `first`.
  template <class N, int Registers, int Last, class G, class T>
  static void gather_row(const G& g, std::int64_t row, std::int64_t w, std::int64_t c, std::size_t some, T* dx,
                         const T* filters, const T* dy) {
    const std::int64_t run = g.kw * g.in, image = row / g.h, below = row % g.h + g.above;
    const std::int64_t first = (w + g.left) % g.sw, nearest = (w + g.left) / g.sw;  // for pixel 0, which is w
    const std::int64_t columns = first < g.kw ? (g.kw - 1 - first) / g.sw + 1 : 0;
    // Seen from the pixels, the places lie in reverse order.
    const detail::whole_windows whole((g.w - w + g.sw - 1) / g.sw, columns, 1, columns - 1 - nearest, g.ow);
    const auto tile = [&]<int Rows>(std::int64_t pixel, std::int64_t) {
      detail::sums_of_rows<N, Rows, Registers, Last> sums(some);
      for (std::int64_t kh = 0; kh < g.kh; ++kh) {
        const std::int64_t down = below - kh, oh = down / g.sh;
        if (down < 0 || down % g.sh != 0 || oh >= g.oh) continue;
        for (std::int64_t k = 0; k < columns; ++k) {
          const std::int64_t ow = pixel + nearest - k;
          if (Rows == 1 && (ow < 0 || ow >= g.ow)) continue;
          sums.add(dy + ((image * g.oh + oh) * g.ow + ow) * g.out, g.out, 1,
                   filters + kh * g.out * run + (first + k * g.sw) * g.in + c, run, g.out);
        }
      }
      sums.store(dx + (row * g.w + w + pixel * g.sw) * g.in + c, g.sw * g.in);
    };
    const std::int64_t pixels = (g.w - w + g.sw - 1) / g.sw;
    for (std::int64_t i = 0; i < whole.first; ++i) tile.template operator()<1>(i, 0);
    detail::in_tiles<detail::window_rows(Registers), 0>(whole.first, whole.last, tile);
    for (std::int64_t i = whole.last; i < pixels; ++i) tile.template operator()<1>(i, 0);
  }

  // Computes the gradient with the channels of all pixels in a row of a window in registers: they are adjacent.
  template <class A, class T, class S, class G>
  static void scatter(const S& s, const G& g, std::byte* const* a) {
    const std::int64_t line = g.w * g.in;
    const index_range mine = s.share(g.images * g.h);
    for (std::int64_t row = mine.first; row < mine.last; ++row) {
      T* dx = at<T>(a, 0) + row * line;
      std::memset(dx, 0, static_cast<std::size_t>(line) * sizeof(T));
      scatter_row<A>(g, row, dx, at<const T>(a, 1), at<const T>(a, 2));
    }
  }
  template <class A, class G, class T>
  static void scatter_row(const G& g, std::int64_t row, T* dx, const T* filters, const T* dy) {
    using N = detail::pack<T, A>;
    constexpr std::int64_t known = detail::known_windows<G>::run;
    constexpr auto width = static_cast<std::int64_t>(N::width), held = (known == 0 ? longest : known) / width + 1;
    constexpr std::int64_t pitch = (held + 2) * width;
    constexpr auto places = static_cast<std::size_t>(pitch);
    constexpr int registers = held < detail::tile_registers ? static_cast<int>(held) : detail::tile_registers;
    const std::int64_t run = g.kw * g.in, step = g.sw * g.in, image = row / g.h, below = row % g.h + g.above;
    const detail::whole_windows whole(g.ow, g.kw, g.sw, g.left, g.w);
    const auto sum = [&]<int Rows>(T* to, std::int64_t ow) {
      detail::in_registers<A, T, known>(run, [&]<class M, int Registers, int Last>(std::int64_t c, std::size_t some) {
        detail::sums_of_rows<M, Rows, Registers, Last> sums(some);
        for (std::int64_t kh = 0; kh < g.kh; ++kh) {
          const std::int64_t down = below - kh, oh = down / g.sh;
          if (down < 0 || down % g.sh != 0 || oh >= g.oh) continue;
          sums.add(dy + ((image * g.oh + oh) * g.ow + ow) * g.out, g.out, 1, filters + kh * g.out * run + c, run,
                   g.out);
        }
        sums.store(to + c, pitch);
      });
    };
    const auto edge = [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t ow = from; ow < to; ++ow) {
        T one[places];
        sum.template operator()<1>(one, ow);
        const std::int64_t place = ow * step - g.left * g.in;
        const detail::visible v(place, run, g.w * g.in);
        for (std::int64_t j = v.first; j < v.last; ++j) dx[place + j] += one[j];
      }
    };
    edge(0, whole.first);
    detail::in_tiles<detail::window_rows(registers), detail::known_windows<G>::across>(
        whole.first, whole.last, [&]<int Rows>(std::int64_t ow, std::int64_t skip) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"  // g++ 12 crashes on a cast here
          T rows[Rows * pitch];
#pragma GCC diagnostic pop
          for (std::int64_t r = 0; r < Rows; ++r)
            N(T(0)).store(rows + r * pitch), N(T(0)).store(rows + r * pitch + width + run);
          sum.template operator()<Rows>(rows + width, ow);
          detail::add_overlapping<N>(rows, pitch, run, skip, Rows, dx + ow * step - g.left * g.in, step);
        });
    edge(whole.last, g.ow);
  }
};

namespace detail {

// This computes the gradient of the filters. Up is dense_gradient, or another type that gives the same numbers.
struct filter_gradient {
  template <class A, class T, class S, class Up>
  static void run(const S& s, T* df, const T* x, const Up& dy) {
    using G = windows<S>;
    const G g(s);
    const std::int64_t run = g.kw * g.in, pieces = (run + tall - 1) / tall;
    const index_range mine = s.share(g.kh * pieces);
    const auto rows_of = [&](std::int64_t p) {
      const std::int64_t first = p % pieces * tall;
      return index_range{first, first + tall < run ? first + tall : run};
    };
    for (std::int64_t p = mine.first; p < mine.last; ++p) {
      const index_range rows = rows_of(p);
      std::memset(df + (p / pieces * run + rows.first) * g.out, 0,
                  static_cast<std::size_t>((rows.last - rows.first) * g.out) * sizeof(T));
    }
    if constexpr (has_few_taps<G>)
      if (mine.first == 0 && mine.last == g.kh) {
        for (std::int64_t i = 0; i < g.images; ++i) few_taps<A>(g, df, x + i * g.h * g.w * g.in, dy, i);
        return;
      }
    for (std::int64_t i = 0; i < g.images; ++i)
      for (std::int64_t p = mine.first; p < mine.last; ++p)
        in_registers<A, T, known_windows<G>::out>(
            g.out, [&]<class N, int Registers, int Last>(std::int64_t c, std::size_t some) {
              piece<N, Registers, Last>(g, p / pieces, rows_of(p), some, df + p / pieces * run * g.out + c,
                                        x + i * g.h * g.w * g.in, dy.at(g, i, c));
            });
  }

private:
  static constexpr std::int64_t tall = 60;  // rows of the result in a piece, of kw * in

  template <class N, int Registers, int Last, class G, class T, class Up>
  static void piece(const G& g, std::int64_t kh, index_range rows, std::size_t some, T* df, const T* x, Up dy) {
    const whole_windows whole(g.ow, g.kw, g.sw, g.left, g.w);
    const std::int64_t line = g.w * g.in, step = g.sw * g.in;
    constexpr std::int64_t run = known_windows<G>::run;
    in_tiles<window_rows(Registers), run <= tall ? run : 0>(
        rows.first, rows.last, [&]<int Rows>(std::int64_t j, std::int64_t skip) {
          using sums_of_tile = sums_of_rows<N, Rows, Registers, Last>;
          const std::int64_t first = j - g.left * g.in;
          const auto add_row = [&](sums_of_tile & sums, std::int64_t oh) __attribute__((always_inline)) {
            const std::int64_t h = oh * g.sh - g.above + kh;
            if (h < 0 || h >= g.h) return;
            const T* from = x + h * line;
            const Up row = dy.row(g, oh);
            const auto add = [&](const T* numbers, std::int64_t ow, std::int64_t many) __attribute__((always_inline)) {
              row.template places<N, Registers>(
                  g, ow, many, some,
                  [&](std::int64_t place, const T* up, std::int64_t pitch, std::int64_t count) __attribute__((
                      always_inline)) { sums.add_close(numbers + place * step, step, up, pitch, count); });
            };
            // Adds from a copy that has zeros where the row of the image ends.
            const auto framed = [&](std::int64_t ow, std::int64_t many) __attribute__((always_inline)) {
              T frame[longest_frame];
              const std::int64_t place = first + ow * step, n = (many - 1) * step + Rows;
              const visible v(place, n, line);
              std::memset(frame, 0, static_cast<std::size_t>(n) * sizeof(T));
              if (v.first < v.last)
                std::memcpy(frame + v.first, from + place + v.first,
                            static_cast<std::size_t>(v.last - v.first) * sizeof(T));
              add(frame, ow, many);
            };
            const bool whole_row = whole.first == 0 && whole.last == g.ow;
            if (!whole_row && (g.ow - 1) * step + Rows <= longest_frame) return framed(0, g.ow);
            for (std::int64_t ow = 0; ow < whole.first; ++ow) framed(ow, 1);
            add(from + first + whole.first * step, whole.first, whole.last - whole.first);
            for (std::int64_t ow = whole.last; ow < g.ow; ++ow) framed(ow, 1);
          };
          sums_of_tile sums(some);
          for (std::int64_t oh = 0; oh < g.oh; ++oh) add_row(sums, oh);
          sums.accumulate(df + j * g.out, g.out, skip);
        });
  }
  static constexpr std::int64_t longest_frame = 512;

  // Where a row of a window is too short to keep the machine busy, the sums of all rows of the filters run at once.
  template <class G>
  static constexpr std::int64_t framed_line = ((G::ow - 1) * G::sw + G::kw) * G::in;
  template <class G>
  static constexpr bool has_few_taps = [] {
    if constexpr (G::known)
      return G::kw * G::in < 8 && G::h * framed_line<G> <= 2048;
    else
      return false;
  }();
  template <class A, class G, class T, class Up>
  static void few_taps(const G& g, T* df, const T* x, const Up& dy, std::int64_t image) {
    constexpr std::int64_t line = framed_line<G>, n = line < (G::w + G::left) * G::in ? line : (G::w + G::left) * G::in;
    T frame[G::h * line];
    for (std::int64_t h = 0; h < G::h; ++h) {
      T* to = frame + h * line;
      for (std::int64_t j = 0; j < line; ++j)
        to[j] = j >= G::left * G::in && j < n ? x[h * G::w * G::in + j - G::left * G::in] : T(0);
    }
    in_registers<A, T, G::out>(G::out, [&]<class N, int Registers, int Last>(std::int64_t c, std::size_t some) {
      constexpr int most = tile_rows_at_once(Registers), taps = static_cast<int>(G::kh * G::kw * G::in);
      constexpr int tiles = (taps + most - 1) / most, rows = (taps + tiles - 1) / tiles;
      [&]<int... Tile>(std::integer_sequence<int, Tile...>) {
        (some_taps<N, (Tile + 1 < tiles ? rows : taps - (tiles - 1) * rows), Registers, Last, Tile * rows>(
             g, some, df + c, frame, dy.at(g, image, c)),
         ...);
      }(std::make_integer_sequence<int, tiles>{});
    });
  }
  static constexpr int tile_rows_at_once(int registers) {
    return registers == 1 && tile_registers > 2 ? 28 : window_rows(registers);
  }
  template <class N, int Rows, int Registers, int Last, int First, class G, class T, class Up>
  static void some_taps(const G& g, std::size_t some, T* df, const T* frame, Up dy) {
    constexpr std::int64_t line = framed_line<G>, run = G::kw * G::in;
    sums_of_rows<N, Rows, Registers, Last> sums(some);
    for (std::int64_t oh = 0; oh < G::oh; ++oh) {
      const std::int64_t top = oh * G::sh - G::above;
      dy.row(g, oh).template places<N, Registers>(
          g, 0, G::ow, some,
          [&](std::int64_t place, const T* up, std::int64_t pitch, std::int64_t count) __attribute__((always_inline)) {
            sums.template add_filter<run, line, First>(frame, top * line + place * G::sw * G::in, G::sw * G::in, up,
                                                       pitch, count, visible(top, G::kh, G::h));
          });
    }
    sums.accumulate(df + First * G::out, G::out, 0);
  }
};

}  // namespace detail

// The operands are x and dy.
template <>
struct op_kernel<&cards::conv2d_filter> {
  static constexpr bool divides = true;

  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      detail::filter_gradient::run<A>(s, at<T>(a, 0), at<const T>(a, 1), detail::dense_gradient<T>{at<const T>(a, 2)});
    });
  }
};

using conv_ops = op_list<&cards::conv2d, &cards::conv2d_input, &cards::conv2d_filter, &cards::max_pool,
                         &cards::max_pool_grad, &cards::avg_pool, &cards::avg_pool_grad>;

}  // namespace gradus
