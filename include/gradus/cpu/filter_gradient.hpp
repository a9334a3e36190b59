// This computes the gradient of a convolution's filters: in each image one chain over (oh, ow), then the images are
// added in order from +0. Rows of places above or below the image are left out; places beside it count as zeros.
//
// Registers hold channels of the result, and the rows of a tile are taps. Where extents are read when it runs, and
// numbers are registers, it is a product (cpu/filter_product.hpp).
#pragma once
#include "../base/build.hpp"

#include <cstring>

#include "filter_product.hpp"
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
  // Returns n channels of the places [places.first, places.last) of the image, one place `pitch` numbers after the
  // other, where registers of N can read them whole; or, if they are read one by one, where they lie.
  template <class N, class G>
  const T* block(const G& g, index_range places, std::int64_t n, bool one_by_one, T* room, std::int64_t& pitch) const {
    constexpr auto width = static_cast<std::int64_t>(N::width);
    const T* from = dy + places.first * g.out;
    pitch = g.out;
    if (reads_parts<N> || one_by_one || n % width == 0) return from;
    pitch = (n + width - 1) / width * width;
    for (std::int64_t p = places.first, to = 0; p < places.last; ++p, from += g.out, to += pitch)
      copy_run<N>(room + to, from, n);
    return room;
  }
};

// This computes the gradient of the filters. Up is dense_gradient, or another type that gives the same numbers.
struct filter_gradient {
  template <class A, class T, class S, class Up>
  static void run(const S& s, T* df, const T* x, const Up& dy) {
    using G = windows<S>;
    const G g(s);
    if constexpr (!G::known && pack<T, A>::width > 1)
      filter_product<T, A>::run(s, g, df, x, dy);
    else
      in_pieces<A>(s, g, df, x, dy);
  }

private:
  template <class A, class S, class G, class T, class Up>
  GRADUS_INLINE static void in_pieces(const S& s, const G& g, T* df, const T* x, const Up& dy) {
    const std::int64_t run = g.kw * g.in, pieces = (run + rows_at_once - 1) / rows_at_once;
    const index_range mine = s.share(g.kh * pieces);
    const auto rows_of = [&](std::int64_t p) {
      const std::int64_t first = p % pieces * rows_at_once;
      return index_range{first, first + rows_at_once < run ? first + rows_at_once : run};
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

  // This is how many rows of the result, of kw * in, are in a piece.
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
