// These are products of few rows, or of few columns, for which tiles of registers are slow: op(b) transposed, a single
// row, two to six rows, a few columns. The wide operand is read once, from end to end, and transposed in registers
// where necessary. So many sums are in flight at a time that none waits for the one before.
//
// An element is one chain of fused multiply-adds over k in order, as everywhere (cpu/tile.hpp).
#pragma once
#include "../base/build.hpp"

#include <cstring>

#include "tile.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

#if GRADUS_SIMD && GRADUS_SHUFFLES
// This transposes a register's width of rows, `stride` apart: it calls to(p, numbers at place p of all rows) for every
// p below the register's width. Registers are put together from pieces of 16 bytes as they are loaded, so that only the
// squares within the pieces are left to transpose.
template <class N>
struct turned_square {
  using T = typename N::value_type;
  using reg = typename N::reg;
  static constexpr std::size_t width = N::width, side = 16 / sizeof(T), pieces = width / side;

  // Returns the first 16 bytes of each of the rows at from, from + apart, ..., one after another.
  static GRADUS_INLINE reg gathered(const T* from, std::int64_t apart) {
    const auto piece = [&](std::size_t i) __attribute__((always_inline)) {
      return from + static_cast<std::int64_t>(i) * apart;
    };
#if defined(__AVX512F__)
    if constexpr (pieces == 4) {  // each piece is loaded into its place, which takes no shuffle
      __m512 x = _mm512_castps128_ps512(_mm_loadu_ps(reinterpret_cast<const float*>(from)));
      x = _mm512_insertf32x4(x, _mm_loadu_ps(reinterpret_cast<const float*>(piece(1))), 1);
      x = _mm512_insertf32x4(x, _mm_loadu_ps(reinterpret_cast<const float*>(piece(2))), 2);
      return reg(_mm512_insertf32x4(x, _mm_loadu_ps(reinterpret_cast<const float*>(piece(3))), 3));
    }
#endif
#if defined(__AVX__)
    if constexpr (pieces == 2) {
      const __m256 x = _mm256_castps128_ps256(_mm_loadu_ps(reinterpret_cast<const float*>(from)));
      return reg(_mm256_insertf128_ps(x, _mm_loadu_ps(reinterpret_cast<const float*>(piece(1))), 1));
    }
#endif
    T all[width];
    for (std::size_t i = 0; i < pieces; ++i) std::memcpy(all + i * side, piece(i), 16);
    return N::load(all).raw();
  }
  // Returns, in each piece, the places From, From + 1, ... of a and b in turn, Run places of each at a time.
  template <std::size_t From, std::size_t Run>
  static GRADUS_INLINE reg woven(reg a, reg b) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) {
      return reg(__builtin_shufflevector(a, b,
                                         static_cast<int>(I / side * side + From + I % side / (2 * Run) * Run +
                                                          I % Run + (I % side / Run % 2 != 0 ? width : 0))...));
    }
    (std::make_index_sequence<width>{});
  }
  template <class To>
  static GRADUS_INLINE void each(const T* from, std::int64_t stride, To to) {
    // Unless the first address is new to them, compilers keep an address for each row in memory and advance all of
    // them.
    asm("" : "+r"(from));
    const std::int64_t apart = static_cast<std::int64_t>(side) * stride;
    const T* rows[side];
    for (std::size_t i = 0; i < side; ++i) rows[i] = i == 0 ? from : rows[i - 1] + stride;
    for (std::size_t c = 0; c < pieces; ++c) {
      const auto p = static_cast<std::int64_t>(c * side);
      const auto row = [&](std::size_t i) __attribute__((always_inline)) { return gathered(rows[i] + p, apart); };
      const auto give = [&](std::int64_t i, reg x) __attribute__((always_inline)) {
        to(p + i, N(typename N::batch(x)));
      };
      if constexpr (side == 2) {
        const reg a = row(0), b = row(1);
        give(0, woven<0, 1>(a, b)), give(1, woven<1, 1>(a, b));
      } else {
        const reg a = row(0), b = row(1), x = row(2), y = row(3);
        const reg ab = woven<0, 1>(a, b), ab2 = woven<2, 1>(a, b), xy = woven<0, 1>(x, y), xy2 = woven<2, 1>(x, y);
        give(0, woven<0, 2>(ab, xy)), give(1, woven<2, 2>(ab, xy));
        give(2, woven<0, 2>(ab2, xy2)), give(3, woven<2, 2>(ab2, xy2));
      }
    }
  }
};
#endif

template <class T, class A>
struct few_rows {
  using N = pack<T, A>;
  using one = lane<T, A>;
  static constexpr auto width = static_cast<std::int64_t>(N::width);
  static constexpr int most = 6, most_registers = 8;  // rows, and registers side by side
  // Rows are prefetched this far ahead: so many lines are read at a time that processors do not see the pattern.
  static constexpr std::int64_t rows_ahead = 12;
#if GRADUS_SIMD && GRADUS_SHUFFLES
  static constexpr bool possible = N::width > 1;
#else
  static constexpr bool possible = false;
#endif

  // The numbers of the few rows lie at x[r * row + p * step]. Those of the wide operand lie at y[p * stride + q] or, if
  // Turned, at y[q * stride + p].
  struct work {
    const T* x;
    std::int64_t row, step;
    const T* y;
    std::int64_t stride, k;
  };

  template <int Rows, bool Turned>
  static constexpr int registers_of() {
    if (Rows == 1) return !Turned ? most_registers : sizeof(T) * N::width == 64 ? 2 : 4;
    return Rows == 2 ? 4 : Turned ? 2 : tile_registers;
  }
  using panel = T[std::size_t{most}][static_cast<std::size_t>(most_registers) * N::width];

  // Loads into a register: g++ would otherwise read memory again for each use of a number, often across two cache
  // lines.
  static GRADUS_INLINE N loaded(const T* from) {
    N x = N::load(from);
#if GRADUS_SIMD && (defined(__AVX512F__) || defined(__AVX__)) && !defined(__clang__)
    if constexpr (N::width > 1) {
      typename N::reg r = x.raw();
#if defined(__AVX512F__)
      asm("" : "+v"(r));
#else
      asm("" : "+x"(r));
#endif
      x = N(typename N::batch(r));
    }
#endif
    return x;
  }

  // Computes the sums of Rows rows and Registers registers of columns.
  template <int Rows, int Registers, bool Turned>
  [[gnu::noinline]] static void sums(const work& given, panel& to) {
    const work w = given;
    N acc[std::size_t{Rows}][std::size_t{Registers}];
    for (auto& row : acc)
      for (N& sum : row) sum = N(T(0));
    const auto add = [&](int q, std::int64_t p, N y) __attribute__((always_inline)) {
      const T* const x = w.x + p * w.step;
      for (int r = 0; r < Rows; ++r) acc[r][q] = fma(N(x[r * w.row]), y, acc[r][q]);
    };
    std::int64_t p = 0;
    if constexpr (!Turned) {
      const T* y = w.y;
      for (; p < w.k; ++p, y += w.stride) {
        for (int q = 0; q < Registers; ++q) __builtin_prefetch(y + rows_ahead * w.stride + q * width);
        N some[std::size_t{Registers}];
        for (int q = 0; q < Registers; ++q) some[q] = Rows == 1 ? N::load(y + q * width) : loaded(y + q * width);
        for (int r = 0; r < Rows; ++r) {
          const N x(w.x[p * w.step + r * w.row]);
          for (int q = 0; q < Registers; ++q) acc[r][q] = fma(x, some[q], acc[r][q]);
        }
      }
    } else {
#if GRADUS_SIMD && GRADUS_SHUFFLES
      for (; p + width <= w.k; p += width)
        for (int q = 0; q < Registers; ++q) {
          const T* const y = w.y + q * width * w.stride + p;
          turned_square<N>::each(
              y, w.stride, [&](std::int64_t i, N some) __attribute__((always_inline)) { add(q, p + i, some); });
        }
      if (p < w.k)  // the last square begins at places that are added already
        for (int q = 0; q < Registers; ++q) {
          const T* const y = w.y + q * width * w.stride + w.k - width;
          alignas(64) T last[N::width][N::width];
          turned_square<N>::each(
              y, w.stride, [&](std::int64_t i, N some) __attribute__((always_inline)) { some.store(last[i]); });
          for (std::int64_t at = p; at < w.k; ++at) add(q, at, N::load(last[at - (w.k - width)]));
        }
#endif
    }
    for (int r = 0; r < Rows; ++r)
      for (int q = 0; q < Registers; ++q) acc[r][q].store(to[r] + q * width);
  }

  // This takes a panel, and its first column that is new, the end, and its first column. It is called by a pointer, so
  // that the code below is compiled once and not for each epilogue.
  struct panel_taker {
    const void* self;
    void (*take)(const void* self, const panel& from, std::int64_t j, std::int64_t end, std::int64_t begin);
    template <class Put>
    explicit panel_taker(const Put& put)
        : self(&put), take([](const void* to, const panel& from, std::int64_t j, std::int64_t end, std::int64_t begin) {
            (*static_cast<const Put*>(to))(from, j, end, begin);
          }) {}
  };
  // Computes all columns, panel after panel; there are `columns`, at least as many as a register holds. A panel may
  // begin before its first new column.
  template <int Rows, bool Turned>
  [[gnu::noinline]] static void panels(work w, std::int64_t columns, const panel_taker& put) {
    constexpr int most_here = registers_of<Rows, Turned>();
    constexpr std::int64_t wide = most_here * width;
    alignas(64) panel to;
    const T* const y = w.y;
    const auto one_panel = [&]<int Registers>(std::int64_t j) {
      const std::int64_t begin = j + Registers * width <= columns ? j : columns - Registers * width;
      w.y = Turned ? y + begin * w.stride : y + begin;
      sums<Rows, Registers, Turned>(w, to);
      put.take(put.self, to, j, begin + Registers * width, begin);
    };
    std::int64_t j = 0;
    // The rest is a panel as well, if most of it is new.
    for (; j + wide <= columns || (columns >= wide && columns - j > wide / 2); j += wide)
      one_panel.template operator()<most_here>(j);
    if constexpr (most_here > 2)
      for (; j + width < columns && columns >= 2 * width; j += 2 * width) one_panel.template operator()<2>(j);
    for (; j < columns; j += width) one_panel.template operator()<1>(j);
  }
  // Does the same for a number of rows that is not a constant.
  template <bool Turned>
  [[gnu::noinline]] static void all_panels(std::int64_t rows, const work& w, std::int64_t columns,
                                           const panel_taker& put);

  static bool fits_rows(const matrix_product<T>& g) { return g.m <= most && g.n >= width && g.k >= 16; }
  // Computes a product of few rows.
  template <class E>
  static void run_rows(const matrix_product<T>& g, const E& e) {
    const work w{g.a.at, g.a.row(), g.a.step(), g.b.at, g.b.stride, g.k};
    const auto store = [&](const panel& from, std::int64_t j, std::int64_t end, std::int64_t begin) {
      for (std::int64_t i = 0; i < g.m; ++i)
        for (std::int64_t at = j; at < end; at += width) {
          const auto count = static_cast<std::size_t>(end - at < width ? end - at : width);
          const T* const some = from[i] + (at - begin);
          const N sum =
              e(count == N::width ? N::load(some) : N::load_partial(some, count), g.row + i, g.column + at, count);
          T* const to = g.c + i * g.stride + at;
          count == N::width ? sum.store(to) : sum.store_partial(to, count);
        }
    };
    const panel_taker put(store);
    g.b.transposed ? all_panels<true>(g.m, w, g.n, put) : all_panels<false>(g.m, w, g.n, put);
  }

  // Returns whether the columns leave much of their registers empty, and there are enough rows.
  static bool fits_columns(const matrix_product<T>& g) {
    return g.n > 1 && (g.n <= width / 2 || (!reads_parts<N> && g.n < 16 && g.n % width != 0)) && g.m >= 2 * width &&
           g.k >= 16;
  }
  // Computes a product of few columns: they are the rows of the transposed product, at most six at a time.
  template <class E>
  static void run_columns(const matrix_product<T>& g, const E& e) {
    const std::int64_t parts = (g.n + most - 1) / most;
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t first = g.n * part / parts, last = g.n * (part + 1) / parts;
      const work w{g.b.at + first * g.b.step(), g.b.step(), g.b.row(), g.a.at, g.a.stride, g.k};
      const auto store = [&](const panel& from, std::int64_t i, std::int64_t end, std::int64_t begin) {
        for (; i < end; ++i)
          for (std::int64_t j = first; j < last; ++j)
            g.c[i * g.stride + j] = e(one(from[j - first][i - begin]), g.row + i, g.column + j, std::size_t{1}).v;
      };
      const panel_taker put(store);
      g.a.transposed ? all_panels<false>(last - first, w, g.m, put) : all_panels<true>(last - first, w, g.m, put);
    }
  }
};
template <class T, class A>
template <bool Turned>
void few_rows<T, A>::all_panels(std::int64_t rows, const work& w, std::int64_t columns, const panel_taker& put) {
  switch (rows) {
  case 1: return panels<1, Turned>(w, columns, put);
  case 2: return panels<2, Turned>(w, columns, put);
  case 3: return panels<3, Turned>(w, columns, put);
  case 4: return panels<4, Turned>(w, columns, put);
  case 5: return panels<5, Turned>(w, columns, put);
  default: return panels<6, Turned>(w, columns, put);
  }
}

}  // namespace gradus::inline GRADUS_BUILD::detail
