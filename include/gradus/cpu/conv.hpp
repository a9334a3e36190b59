// These kernels compute convolutions directly, with tiles of places x channels in registers (cpu/window_sums.hpp).
// Nothing is unfolded into memory: a row of a window is a run of numbers in a row of the image, and these are the
// numbers that one row of the filters multiplies.
//
// Windows of one pixel are products of matrices (cpu/pointwise_conv.hpp). Where extents are read when it runs, tiles
// have any positions, and filters are packed (cpu/window_product.hpp), or tiles run along lines (cpu/window_lines.hpp).
//
// The order of sums is a function of shapes alone:
// - conv2d: one chain of fma over (kh, kw, in), over the places inside the image.
// - conv2d_filter: cpu/filter_gradient.hpp.
// - conv2d_input: if the image has 16 channels or more, or a row of a window has more than 256 numbers (kw * in), one
//   chain over (kh, kw, out). Else one chain over (kh, out) for each column ow of places that saw the pixel, and these
//   are added over ow from +0.
#pragma once
#include "../base/build.hpp"

#include <cstring>

#include "../ops/conv.hpp"
#include "filter_gradient.hpp"
#include "kernel.hpp"
#include "pointwise_conv.hpp"
#include "pool.hpp"
#include "window_lines.hpp"
#include "window_product.hpp"

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

// Where extents are not known and numbers are registers, tiles are those of cpu/window_product.hpp or
// cpu/window_lines.hpp.
template <class T, class A, class G>
inline constexpr bool takes_tiles = pack<T, A>::width > 1 && !G::known;

// An arithmetic may name an algorithm that computes some convolutions in another way (cpu/winograd.hpp).
template <class A>
concept has_convolutions = requires { typename A::convolution_algorithm; };

}  // namespace detail

template <>
struct op_kernel<&cards::conv2d> {
  static constexpr bool divides = true;

  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      const detail::windows<S> g(s);
      if constexpr (detail::has_convolutions<A>)
        if (A::convolution_algorithm::forward(s, g, at<T>(a, 0), at<const T>(a, 1), at<const T>(a, 2))) return;
      const index_range mine = s.share(g.images * g.oh);
      if constexpr (detail::may_be_pointwise<T, A, detail::windows<S>>)
        if (detail::is_pointwise(g))
          return detail::pointwise_conv<T, A>::forward(g, mine, at<T>(a, 0), at<const T>(a, 1), at<const T>(a, 2));
      if constexpr (detail::takes_tiles<T, A, detail::windows<S>>)
        in_tiles<A>(g, mine, at<T>(a, 0), at<const T>(a, 1), at<const T>(a, 2));
      else
        detail::in_registers<A, T, detail::known_windows<detail::windows<S>>::out>(
            g.out, [&]<class N, int Registers, int Last>(std::int64_t c, std::size_t some) {
              for (std::int64_t row = mine.first; row < mine.last; ++row)
                detail::convolve_row<N, Registers, Last, false>(g, row, 0, g.ow, c, some,
                                                                at<T>(a, 0) + row * g.ow * g.out + c, g.out,
                                                                at<const T>(a, 1), at<const T>(a, 2));
            });
    });
  }

private:
  template <class A, class G, class T>
  static void in_tiles(const G& g, index_range rows, T* y, const T* x, const T* filters) {
    using product = detail::window_product<T, A>;
    const typename product::problem p{.x = x,
                                      .filters = filters,
                                      .y = y,
                                      .kh = g.kh,
                                      .kw = g.kw,
                                      .depth = g.in,
                                      .channels = g.out,
                                      .down_step = 1,
                                      .across_step = 1,
                                      .line = g.w * g.in,
                                      .pixel = g.in,
                                      .filter_row = g.kw * g.in * g.out,
                                      .filter = g.in * g.out,
                                      .filter_pitch = g.out,
                                      .from = {g.h, g.w, g.in},
                                      .to = {g.oh, g.ow, g.out}};
    const detail::places_axis down{g.oh, g.kh, g.sh, g.above, g.h}, across{g.ow, g.kw, g.sw, g.left, g.w};
    if (product::takes(p) && product::is_deep(p, (rows.last - rows.first) * g.ow))
      return product::run(p, down, across, rows.first, rows.last);
    detail::in_registers<A, T, 0>(g.out, [&]<class N, int Registers, int Last>(std::int64_t c, std::size_t some) {
      lines<N, Registers, Last>(g, rows, c, some, y, x, filters);
    });
  }
  template <class N, int Registers, int Last, class G, class T>
  [[gnu::noinline]] static void lines(const G& g, index_range rows, std::int64_t c, std::size_t some, T* y, const T* x,
                                      const T* filters) {
    const std::int64_t line = g.w * g.in, of_row = g.kw * g.in * g.out;
    detail::each_line(
        detail::places_axis{g.oh, g.kh, g.sh, g.above, g.h}, detail::places_axis{g.ow, g.kw, g.sw, g.left, g.w},
        {g.h, g.w, g.in}, {g.oh, g.ow, g.out}, rows.first, rows.last,
        [&](const detail::window_line& l, const detail::window_run& down, const detail::window_run& across) {
          const T* const w = filters + down.tap * of_row + across.tap * g.in * g.out + c;
          const std::int64_t steps = across.taps * g.in;
          detail::in_tiles<detail::window_rows(Registers), 0>(0, l.count, [&]<int Rows>(std::int64_t i, std::int64_t) {
            detail::sums_of_rows<N, Rows, Registers, Last> sums(some);
            for (std::int64_t kh = 0; kh < down.taps; ++kh)
              sums.add(x + l.from + i * l.from_step + kh * line, l.from_step, 1, w + kh * of_row, g.out, steps);
            sums.store(y + l.to + i * l.to_step + c, l.to_step);
          });
        });
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
      if constexpr (detail::has_convolutions<A>)
        if (A::convolution_algorithm::of_input(s, g, at<T>(a, 0), at<const T>(a, 1), at<const T>(a, 2))) return;
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
    if constexpr (detail::takes_tiles<T, A, G>)
      in_tiles<A>(g, mine, at<T>(a, 0), at<const T>(a, 1), at<const T>(a, 2));
    else
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

  template <class A, class G, class T>
  static void in_tiles(const G& g, index_range rows, T* dx, const T* filters, const T* dy) {
    using product = detail::window_product<T, A>;
    const typename product::problem p{.x = dy,
                                      .filters = filters,
                                      .y = dx,
                                      .kh = g.kh,
                                      .kw = g.kw,
                                      .depth = g.out,
                                      .channels = g.in,
                                      .down_step = g.sh,
                                      .across_step = g.sw,
                                      .line = -g.ow * g.out,
                                      .pixel = -g.out,
                                      .filter_row = g.out * g.kw * g.in,
                                      .filter = g.in,
                                      .filter_pitch = g.kw * g.in,
                                      .from = {g.oh, g.ow, g.out},
                                      .to = {g.h, g.w, g.in}};
    const detail::pixels_axis down{g.oh, g.kh, g.sh, g.above, g.h}, across{g.ow, g.kw, g.sw, g.left, g.w};
    if (product::takes(p)) return product::run(p, down, across, rows.first, rows.last);
    detail::in_registers<A, T, 0, 1>(g.in, [&]<class N, int Registers, int Last>(std::int64_t c, std::size_t some) {
      gather_lines<N, Registers, Last>(g, rows, c, some, dx, filters, dy);
    });
  }
  template <class N, int Registers, int Last, class G, class T>
  [[gnu::noinline]] static void gather_lines(const G& g, index_range rows, std::int64_t c, std::size_t some, T* dx,
                                             const T* filters, const T* dy) {
    const std::int64_t run = g.kw * g.in, line = g.ow * g.out;
    detail::each_line(
        detail::pixels_axis{g.oh, g.kh, g.sh, g.above, g.h}, detail::pixels_axis{g.ow, g.kw, g.sw, g.left, g.w},
        {g.oh, g.ow, g.out}, {g.h, g.w, g.in}, rows.first, rows.last,
        [&](const detail::window_line& l, const detail::window_run& down, const detail::window_run& across) {
          const T* const w = filters + down.tap * g.out * run + across.tap * g.in + c;
          detail::in_tiles<detail::window_rows(Registers), 0>(0, l.count, [&]<int Rows>(std::int64_t i, std::int64_t) {
            detail::sums_of_rows<N, Rows, Registers, Last> sums(some);
            const T* const up = dy + l.from + i * l.from_step;
            for (std::int64_t kh = 0; kh < down.taps; ++kh)
              for (std::int64_t k = 0; k < across.taps; ++k)
                sums.add(up - kh * line - k * g.out, l.from_step, 1, w + kh * g.sh * g.out * run + k * g.sw * g.in, run,
                         g.out);
            sums.store(dx + l.to + i * l.to_step + c, l.to_step);
          });
        });
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
          alignas(N::width * sizeof(T)) T rows[Rows * pitch];
#pragma GCC diagnostic pop
          for (std::int64_t r = 0; r < Rows; ++r)
            N(T(0)).store(rows + r * pitch), N(T(0)).store(rows + r * pitch + width + run);
          sum.template operator()<Rows>(rows + width, ow);
          detail::add_overlapping<N>(rows, pitch, run, skip, Rows, dx + ow * step - g.left * g.in, step);
        });
    edge(whole.last, g.ow);
  }
};

// The operands are x and dy.
template <>
struct op_kernel<&cards::conv2d_filter> {
  static constexpr bool divides = true;

  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      if constexpr (detail::has_convolutions<A>)
        if (const detail::windows<S> g(s);
            A::convolution_algorithm::of_filters(s, g, at<T>(a, 0), at<const T>(a, 1), at<const T>(a, 2)))
          return;
      detail::filter_gradient::run<A>(s, at<T>(a, 0), at<const T>(a, 1), detail::dense_gradient<T>{at<const T>(a, 2)});
    });
  }
};

using conv_ops = op_list<&cards::conv2d, &cards::conv2d_input, &cards::conv2d_filter, &cards::max_pool,
                         &cards::max_pool_grad, &cards::avg_pool, &cards::avg_pool_grad>;

}  // namespace gradus
