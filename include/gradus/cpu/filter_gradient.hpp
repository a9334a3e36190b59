// This computes the gradient of a convolution's filters: in each image one chain over (oh, ow), then the images are
// added in order from +0. Rows of places above or below the image are left out; places beside it count as zeros.
//
// Registers hold channels of the result, and the rows of a tile are taps. Where extents are read when it runs, and
// there are few channels, it is the other way round; and where a row of a window has few taps, tiles have those of more
// rows.
#pragma once
#include "../base/build.hpp"

#include <cstring>
#include <type_traits>

#include "kernel.hpp"
#include "window_sums.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

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

// This computes the gradient of the filters. Up is dense_gradient, or another type that gives the same numbers.
struct filter_gradient {
  template <class A, class T, class S, class Up>
  static void run(const S& s, T* df, const T* x, const Up& dy) {
    using G = windows<S>;
    const G g(s);
    const std::int64_t run = g.kw * g.in, tall = rows_of_piece<pack<T, A>>(g), pieces = (run + tall - 1) / tall;
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
    if constexpr (!G::known && pack<T, A>::width > 1) {
      if (mine.first == 0 && mine.last == g.kh && merges_taps(g)) {
        for (std::int64_t i = 0; i < g.images; ++i) merged_taps<A>(g, df, x + i * g.h * g.w * g.in, dy, i);
        return;
      }
      if constexpr (std::is_same_v<Up, dense_gradient<T>>)
        if (has_few_channels<pack<T, A>>(g)) {
          for (std::int64_t p = mine.first; p < mine.last; ++p)
            few_channels<A>(g, p / pieces, rows_of(p), df + p / pieces * run * g.out, x, dy.dy);
          return;
        }
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
  // Returns how many rows of the result, of kw * in, are in a piece.
  template <class N, class G>
  static constexpr std::int64_t rows_of_piece(const G& g) {
    if constexpr (!G::known && N::width > 1)
      if (has_few_channels<N>(g)) {
        const std::int64_t run = g.kw * g.in, pieces = (run + 63) / 64;
        return ((run + pieces - 1) / pieces + width_of<N> - 1) / width_of<N> * width_of<N>;
      }
    return rows_at_once;
  }
  static constexpr std::int64_t rows_at_once = 60;

  template <class N, int Registers, int Last, class G, class T, class Up>
  static void piece(const G& g, std::int64_t kh, index_range rows, std::size_t some, T* df, const T* x, Up dy) {
    const whole_windows whole(g.ow, g.kw, g.sw, g.left, g.w);
    const std::int64_t line = g.w * g.in, step = g.sw * g.in;
    constexpr std::int64_t run = known_windows<G>::run;
    in_tiles<window_rows(Registers), run <= rows_at_once ? run : 0>(
        rows.first, rows.last, [&]<int Rows>(std::int64_t j, std::int64_t skip) {
          using sums_of_tile = sums_of_rows<N, Rows, Registers, Last>;
          const std::int64_t first = j - g.left * g.in;
          T frame[frame_for<N>(longest_frame)];  // one for all places: the stack of a board is small
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
              copy_framed<N>(frame, from, first + ow * step, (many - 1) * step + Rows, line);
              add(frame, ow, many);
            };
            if (copies_line<N>(g, whole, Rows)) return framed(0, g.ow);
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
  template <class N>
  static constexpr auto width_of = static_cast<std::int64_t>(N::width);
  template <class N>
  static constexpr std::size_t frame_for(std::int64_t numbers) {
    return static_cast<std::size_t>(N::width == 1 ? numbers : numbers + 2 * width_of<N>);
  }
  // Returns whether a row of an image, of whose every place n numbers are read, should be copied as a whole, and not
  // the places that see its ends each for itself.
  template <class N, class G>
  static GRADUS_INLINE bool copies_line(const G& g, const whole_windows& whole, std::int64_t n) {
    const std::int64_t beside = g.ow - (whole.last - whole.first), all = (g.ow - 1) * g.sw * g.in + n;
    return beside != 0 && all <= longest_frame && (N::width == 1 || all <= 2 * beside * n);
  }
  // Copies the numbers [place, place + n) of a line of an image, with zeros where it ends. Up to two registers behind
  // them are overwritten.
  template <class N, class T>
  static GRADUS_INLINE void copy_framed(T* to, const T* line, std::int64_t place, std::int64_t n, std::int64_t end) {
    constexpr std::int64_t width = width_of<N>;
    const visible v(place, n, end);
    if constexpr (width == 1) {
      std::memset(to, 0, static_cast<std::size_t>(n) * sizeof(T));
      if (v.first < v.last)
        std::memcpy(to + v.first, line + place + v.first, static_cast<std::size_t>(v.last - v.first) * sizeof(T));
      return;
    }
    for (std::int64_t j = 0; j < n; j += width) N(T(0)).store(to + j);
    std::int64_t j = v.first;
    for (; j + width <= v.last; j += width) N::load(line + place + j).store(to + j);
    if (j < v.last) load_first<N>(line + place + j, static_cast<std::size_t>(v.last - j)).store(to + j);
  }

  // Returns whether registers should hold taps, and the rows of a tile be channels of the result. Fewer than eight sums
  // in flight wait for one another.
  static constexpr int channels_at_once = 6;
  template <class N, class G>
  static bool has_few_channels(const G& g) {
    const auto tiles_cost = [](std::int64_t rows, std::int64_t columns, std::int64_t most) {
      const std::int64_t registers = (columns + width_of<N> - 1) / width_of<N>, tiles = (rows + most - 1) / most;
      const std::int64_t sums = (rows + tiles - 1) / tiles * registers;
      return tiles * (sums < 8 ? 8 : sums);
    };
    const std::int64_t run = g.kw * g.in;
    return g.kw <= 16 &&  // so that what is beside an image fits in edge_numbers
           tiles_cost(g.out, run, channels_at_once) * 5 < tiles_cost(run, g.out, rows_at_once) * 4;
  }
  // Computes a piece so, with the sums of all images in memory, because the result lies across.
  template <class A, class G, class T>
  static void few_channels(const G& g, std::int64_t kh, index_range taps, T* df, const T* x, const T* dy) {
    using N = pack<T, A>;
    constexpr std::int64_t width = width_of<N>;
    const std::int64_t tiles = (g.out + channels_at_once - 1) / channels_at_once;
    const auto rows = static_cast<int>((g.out + tiles - 1) / tiles);
    const auto with = [&]<class M, int Registers>(std::int64_t tap, std::int64_t some) {
      [&]<int... I>(std::integer_sequence<int, I...>) {
        ((I + 1 == rows ? channels<M, I + 1, Registers>(g, kh, tap, static_cast<std::size_t>(some), df, x, dy)
                        : void()),
         ...);
      }(std::make_integer_sequence<int, channels_at_once>{});
    };
    std::int64_t tap = taps.first;
    for (std::int64_t n; (n = taps.last - tap) > 0;) {
      constexpr bool parts = reads_parts<N>;
      if (tile_registers > 2 && n > (parts ? 3 * width : 4 * width - 1)) {
        with.template operator()<N, tile_registers>(tap, n < 4 * width ? n - 3 * width : width), tap += 4 * width;
      } else if (n > (parts ? width : 2 * width - 1)) {
        with.template operator()<N, 2>(tap, n < 2 * width ? n - width : width), tap += 2 * width;
      } else if (n >= width || parts) {
        with.template operator()<N, 1>(tap, n < width ? n : width), tap += width;
      } else {
        with.template operator()<lane<T, A>, 1>(tap, 1), ++tap;
      }
    }
  }
  static constexpr std::int64_t edge_numbers = 8192;
  template <class N, int Rows, int Registers, class G, class T>
  [[gnu::noinline]] static void channels(const G& g, std::int64_t kh, std::int64_t tap, std::size_t some, T* df,
                                         const T* x, const T* dy) {
    constexpr std::int64_t wide = Registers * width_of<N>;
    const whole_windows whole(g.ow, g.kw, g.sw, g.left, g.w);
    const std::int64_t line = g.w * g.in, step = g.sw * g.in, first = tap - g.left * g.in,
                       held = wide - width_of<N> + static_cast<std::int64_t>(some);
    // What lies beside the image is read in copies with zeros. Those of some rows are made together, because what was
    // just written cannot be read again soon, unless it is read just as it was written.
    const bool copies = copies_line<N>(g, whole, held);
    const std::int64_t beside = copies ? g.ow : whole.first, after = copies ? g.ow : whole.last;
    const std::int64_t of_row = copies ? (g.ow - 1) * step + held : (whole.first + g.ow - whole.last) * held;
    const std::int64_t in_one_go = of_row == 0 ? g.oh : edge_numbers / of_row;
    T edges[static_cast<std::size_t>(edge_numbers + width_of<N>)];
    for (std::int64_t done = 0; done < g.out; done += Rows) {
      const std::int64_t channel = done + Rows <= g.out ? done : g.out - Rows;  // some may be computed twice
      alignas(64) T total[static_cast<std::size_t>(Rows * wide)] = {};
      for (std::int64_t image = 0; image < g.images; ++image) {
        sums_of_rows<N, Rows, Registers, (reads_parts<N> && N::width > 1 ? some_of_register : whole_register)> sums(
            some);
        const auto rows = [&](std::int64_t begin, std::int64_t end, auto f) __attribute__((always_inline)) {
          for (std::int64_t oh = begin; oh < end; ++oh)
            if (const std::int64_t h = oh * g.sh - g.above + kh; h >= 0 && h < g.h)
              f(x + (image * g.h + h) * line, dy + (image * g.oh + oh) * g.ow * g.out + channel);
        };
        for (std::int64_t begin = 0; begin < g.oh; begin += in_one_go) {
          const std::int64_t end = g.oh - begin < in_one_go ? g.oh : begin + in_one_go;
          if (of_row != 0) {
            T* to = edges;
            rows(begin, end, [&](const T* from, const T*) {
              if (copies) {
                copy_framed<N>(to, from, first, of_row, line), to += of_row;
                return;
              }
              for (std::int64_t ow = 0; ow < g.ow; ++ow)
                if (ow < whole.first || ow >= whole.last)
                  copy_framed<N>(to, from, first + ow * step, held, line), to += held;
            });
          }
          const T* edge = edges;
          const std::int64_t edge_step = copies ? step : held;
          rows(
              begin, end, [&](const T* from, const T* up) __attribute__((always_inline)) {
                sums.add(up, 1, g.out, edge, edge_step, beside);
                if (copies) {
                  edge += of_row;
                  return;
                }
                sums.add(up + beside * g.out, 1, g.out, from + first + beside * step, step, after - beside);
                sums.add(up + after * g.out, 1, g.out, edge + beside * held, held, g.ow - after);
                edge += of_row;
              });
        }
        sums.accumulate(total, wide, 0);
      }
      for (std::int64_t r = 0; r < Rows; ++r)
        for (std::int64_t j = 0; j < held; ++j) df[(tap + j) * g.out + channel + r] = total[r * wide + j];
    }
  }

  // Where the extents are not known and a row of a window has few taps, tiles have those of several rows. They are read
  // in a copy of the image that has zeros beside it.
  static constexpr std::int64_t most_copied = 8192;
  template <class G>
  static std::int64_t copied_line(const G& g) {
    return ((g.ow - 1) * g.sw + g.kw) * g.in;
  }
  template <class G>
  static bool merges_taps(const G& g) {
    return g.kh > 1 && g.kw * g.in < 10 && g.h * copied_line(g) <= most_copied;
  }
  template <class A, class G, class T, class Up>
  static void merged_taps(const G& g, T* df, const T* x, const Up& dy, std::int64_t image) {
    using V = pack<T, A>;
    const std::int64_t line = copied_line(g);
    T copy[static_cast<std::size_t>(most_copied + 2 * width_of<V>)];
    for (std::int64_t h = 0; h < g.h; ++h)
      copy_framed<V>(copy + h * line, x + h * g.w * g.in, -g.left * g.in, line, g.w * g.in);
    in_registers<A, T, 0>(g.out, [&]<class N, int Registers, int Last>(std::int64_t c, std::size_t some) {
      tiles_of_taps<N, Registers, Last>(g, some, df + c, copy, dy.at(g, image, c));
    });
  }
  template <class N, int Registers, int Last, class G, class T, class Up>
  [[gnu::noinline]] static void tiles_of_taps(const G& g, std::size_t some, T* df, const T* copy, Up dy) {
    const std::int64_t line = copied_line(g), run = g.kw * g.in, step = g.sw * g.in;
    in_tiles<window_rows(Registers), 0>(0, g.kh * run, [&]<int Rows>(std::int64_t tap, std::int64_t skip) {
      std::int64_t places[static_cast<std::size_t>(Rows)];
      for (std::int64_t r = 0; r < Rows; ++r) places[r] = (tap + r) / run * line + (tap + r) % run;
      sums_of_rows<N, Rows, Registers, Last> sums(some);
      for (std::int64_t oh = 0; oh < g.oh; ++oh) {
        const std::int64_t top = oh * g.sh - g.above;
        const visible down(top, g.kh, g.h);
        std::uint32_t which = 0;
        for (std::int64_t r = 0; r < Rows; ++r)
          if (tap + r >= down.first * run && tap + r < down.last * run) which |= std::uint32_t{1} << r;
        dy.row(g, oh).template places<N, Registers>(
            g, 0, g.ow, some,
            [&](std::int64_t place, const T* up, std::int64_t pitch, std::int64_t count)
                __attribute__((always_inline)) {
                  sums.add_at(copy, top * line + place * step, places, step, up, pitch, count, which);
                });
      }
      sums.accumulate(df + tap * g.out, g.out, skip);
    });
  }

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

}  // namespace gradus::detail
