// This header has the register tile that every matrix product is made of: some rows by some registers of the result,
// summed over k.
//
// An element is one chain of fused multiply-adds over k in order (a product and a sum each where A is `portable`). A
// lane of a register does what a single number would, so the size of a tile, the width of a register and the division
// into blocks and shares do not change the bits.
#pragma once
#include "../base/build.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "number.hpp"

namespace gradus::inline GRADUS_BUILD {

// This is a row-major matrix in memory with `stride` numbers from row to row; op(it) is its transpose if `transposed`.
template <class T>
struct matrix_operand {
  const T* at = nullptr;
  std::int64_t stride = 0;
  bool transposed = false;
  std::int64_t row() const { return transposed ? 1 : stride; }  // the stride from row to row of op(it)
  std::int64_t step() const { return transposed ? stride : 1; }
};

// This epilogue changes nothing. An epilogue is called once for every number of the result, a register of numbers of
// one row at a time, when their sums are complete: e(sums, row, column, count) receives the sums of `row` at columns
// column ... column + count - 1; count is less than N::width at the end of a row. What it returns is stored. N may be a
// lane. The epilogue is copied, and may be called once the sums of more rows lie in the result.
struct as_is {
  template <class N>
  GRADUS_INLINE N operator()(N sums, std::int64_t, std::int64_t, std::size_t) const {
    return sums;
  }
};

namespace detail {

// This is the product c = op(a) op(b) of dims [m, n], summed over k. c's first number is at (row, column) of what an
// epilogue sees.
template <class T>
struct matrix_product {
  matrix_operand<T> a, b;
  T* c;
  std::int64_t stride, m, n, k;
  std::int64_t row = 0, column = 0;

  // Returns the part with rows [i0, i1) and columns [j0, j1).
  matrix_product part(std::int64_t i0, std::int64_t i1, std::int64_t j0, std::int64_t j1) const {
    matrix_product g = *this;
    g.a.at += i0 * a.row(), g.b.at += j0 * b.step(), g.c += i0 * stride + j0;
    g.m = i1 - i0, g.n = j1 - j0, g.row += i0, g.column += j0;
    return g;
  }
};

// This applies an epilogue to a part of a product whose sums are complete and lie in memory. Tiles leave this to it: it
// is called by a pointer once for each panel of columns, so that tiles are compiled once and not for each epilogue.
template <class T>
struct epilogue_call {
  const void* self = nullptr;
  void (*apply)(const void* self, const matrix_product<T>& part) = nullptr;

  // Calls the epilogue for registers of numbers of N, wherever the part has as many.
  template <class N, class E>
  static epilogue_call of(const E& e) {
    if constexpr (std::is_same_v<E, as_is> || requires(const E& some) { some.stored(0, 0, 0, 0); })
      return {};
    else
      return {
          &e, [](const void* to, const matrix_product<T>& g) {
            const E epilogue = *static_cast<const E*>(to);  // a copy, which no store to the result may change
            constexpr auto width = static_cast<std::int64_t>(N::width);
            for (std::int64_t i = 0; i < g.m; ++i) {
              T* const row = g.c + i * g.stride;
              std::int64_t j = 0;
              for (; j + width <= g.n; j += width)
                epilogue(N::load(row + j), g.row + i, g.column + j, N::width).store(row + j);
              if (const auto rest = static_cast<std::size_t>(g.n - j); rest > 0)
                epilogue(N::load_partial(row + j, rest), g.row + i, g.column + j, rest).store_partial(row + j, rest);
            }
          }};
  }
  void operator()(const matrix_product<T>& part) const {
    if (apply != nullptr) apply(self, part);
  }
};

// This is true where reading the first lanes of a register costs about as much as reading all of them.
template <class N>
inline constexpr bool reads_parts = N::width == 1;
#if GRADUS_SIMD
template <class T, class A, class Arch>
inline constexpr bool reads_parts<vector_pack<T, A, Arch>> = vector_pack<T, A, Arch>::masked::supported;
#endif

// Loads the first n lanes of a register, with zeros behind them. It leaves out load_partial's way for a single number,
// which would be a branch in every step of a tile.
template <class N>
GRADUS_INLINE N load_first(const typename N::value_type* p, std::size_t n) {
  if constexpr (reads_parts<N> && N::width > 1)
    return typename N::batch(N::masked::load(p, n));
  else
    return N::load_partial(p, n);
}

// These are the widest tile, in registers, and how many rows go with how many registers: together at most as many sums
// as the machine has registers, less a row of op(b) and a number of op(a).
#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int tile_registers = 4;
constexpr int tile_rows(int registers) { return registers == 4 ? 6 : registers == 3 ? 8 : registers == 2 ? 12 : 14; }
#else
inline constexpr int tile_registers = 2;
constexpr int tile_rows(int registers) { return GRADUS_SIMD ? (registers == 2 ? 6 : 8) : 4; }
#endif
// These are the heights of the tiles below the tallest ones, where the number of rows is not known.
constexpr int lower_tile_rows(int registers) { return !GRADUS_SIMD ? 2 : tile_rows(registers) > 12 ? 8 : 4; }

// This is what a run of tiles, one below the other, reads and writes. Numbers of op(a) lie at x[r * row + p * step],
// those of op(b) at y[p * y_stride + q].
template <class T>
struct tile_work {
  const T* x;
  std::int64_t row, step;
  const T* y;
  std::int64_t y_stride;
  T* to;
  std::int64_t stride, steps, tall, wide;  // the stride of `to`, the steps of k, rows and columns
  bool first, last;                        // whether this block of k starts the sums from 0, or completes them
  std::int64_t i, j;                       // row and column of to's first number, for the epilogue
};

template <class N, int Rows, int Registers, bool Part>
struct tiles {
  using T = typename N::value_type;
  static constexpr auto width = static_cast<std::int64_t>(N::width);
  using row_places = std::make_integer_sequence<int, Rows>;
  using register_places = std::make_integer_sequence<int, Registers>;
  using groups = std::make_integer_sequence<int, (Rows + 2) / 3>;

  // These functions are unrolled by pack expansion, because the sums must be registers at every level of optimization.
  template <int... Q>
  static GRADUS_INLINE void clear(N* sums, std::integer_sequence<int, Q...>) {
    ((sums[Q] = N(T(0))), ...);
  }
  template <int... Q>
  static GRADUS_INLINE void read(N* to, const T* from, std::integer_sequence<int, Q...>) {
    ((to[Q] = N::load(from + Q * width)), ...);
  }
  template <int... Q>
  static GRADUS_INLINE void read_part(N* to, const T* from, std::size_t last, std::integer_sequence<int, Q...>) {
    ((to[Q] = Q + 1 < Registers ? N::load(from + Q * width) : load_first<N>(from + Q * width, last)), ...);
  }
  template <int... Q>
  static GRADUS_INLINE void multiply_add(N* sums, N x, const N* w, std::integer_sequence<int, Q...>) {
    ((sums[Q] = fma(x, w[Q], sums[Q])), ...);
  }
  template <class E, int... Q>
  static GRADUS_INLINE void finish(N* sums, const E& e, std::int64_t i, std::int64_t j, std::size_t last,
                                   std::integer_sequence<int, Q...>) {
    ((sums[Q] = e(sums[Q], i, j + Q * width, Q + 1 < Registers ? N::width : last)), ...);
  }
  template <int... Q>
  static GRADUS_INLINE void write(const N* sums, T* to, std::size_t last, std::integer_sequence<int, Q...>) {
    ((Q + 1 < Registers || last == N::width ? sums[Q].store(to + Q * width)
                                            : sums[Q].store_partial(to + Q * width, last)),
     ...);
  }

  // Computes one tile, and keeps its rows from `from` to `tall`. Rows are addressed from every third one, because a
  // machine address adds one or two strides to a pointer.
  template <class E, int... R, int... G>
  static GRADUS_INLINE void one(const tile_work<T>& w, const T* x, T* to, std::int64_t i, std::int64_t from,
                                std::int64_t tall, const E& e, std::integer_sequence<int, R...>,
                                std::integer_sequence<int, G...>) {
    constexpr register_places q{};
    const auto last = static_cast<std::size_t>(w.wide - (Registers - 1) * width);
    N sums[static_cast<std::size_t>(Rows * Registers)];
    clear(sums, std::make_integer_sequence<int, Rows * Registers>{});
    if (!w.first) {
      if (last == N::width)
        ((R < tall ? read(sums + R * Registers, to + R * w.stride, q) : void()), ...);
      else
        ((R < tall ? read_part(sums + R * Registers, to + R * w.stride, last, q) : void()), ...);
    }
    const T* group[] = {x + 3 * G * w.row...};
    const T* y = w.y;
    const std::int64_t row = w.row, step = w.step, y_stride = w.y_stride;
    for (std::int64_t p = w.steps; p > 0; --p, y += y_stride) {
      N v[static_cast<std::size_t>(Registers)];
      if constexpr (Part)
        read_part(v, y, last, q);
      else
        read(v, y, q);
      (multiply_add(sums + R * Registers, N(group[R / 3][R % 3 * row]), v, q), ...);
      ((group[G] += step), ...);
    }
    if constexpr (!std::is_same_v<E, as_is>)
      if (w.last) ((R >= from && R < tall ? finish(sums + R * Registers, e, i + R, w.j, last, q) : void()), ...);
    ((R >= from && R < tall ? write(sums + R * Registers, to + R * w.stride, last, q) : void()), ...);
  }

  // Computes a product that is one tile, as part of the caller.
  template <class E>
  static GRADUS_INLINE void alone(const tile_work<T>& w, const E& e) {
    one(w, w.x, w.to, w.i, 0, Rows, e, row_places{}, groups{});
  }
  // The last tile may begin at rows that are computed already, which it computes again and does not keep.
  static constexpr bool overlaps = N::width > 1;
  // Computes tiles downwards from row i while whole ones fit, and returns the row where they end: the last row of all,
  // where tiles overlap and there are as many rows as one has.
  template <class E>
  [[gnu::noinline]] static std::int64_t down(const tile_work<T>& work, std::int64_t i, const E& e);
  // Computes all tiles from row i, where x is packed tile after tile and missing rows are zeros.
  template <class E>
  [[gnu::noinline]] static void packed(const tile_work<T>& work, std::int64_t i, const E& e) {
    const tile_work<T> w = work;
    for (; i < w.tall; i += Rows)
      one(w, w.x + i * w.steps, w.to + i * w.stride, w.i + i, 0, w.tall - i < Rows ? w.tall - i : Rows, e, row_places{},
          groups{});
  }
};

template <class N, int Rows, int Registers, bool Part>
template <class E>
std::int64_t tiles<N, Rows, Registers, Part>::down(const tile_work<T>& work, std::int64_t i, const E& e) {
  const tile_work<T> w = work;  // a copy, which no store to the result may change
  while (i < w.tall) {
    std::int64_t again = 0;
    if (i + Rows > w.tall) {
      if (!overlaps || w.tall < Rows) break;
      again = i + Rows - w.tall;
    }
    const std::int64_t first = i - again;
    one(w, w.x + first * w.row, w.to + first * w.stride, w.i + first, again, Rows, e, row_places{}, groups{});
    i = first + Rows;
  }
  return i;
}

// Transposes as many rows, `stride` apart, as a register has lanes: calls to(p, numbers p of the rows) for p < steps,
// as far as whole registers reach (and for the rest where a register can be read in part and at least a quarter of it
// is there), and returns for how many p it did. Where there are fewer rows, the last one stands for the missing ones.
#if GRADUS_SIMD && GRADUS_SHUFFLES
template <class N, class To>
GRADUS_INLINE std::int64_t transpose_rows(const typename N::value_type* from, std::int64_t stride, std::int64_t steps,
                                          To to, std::int64_t rows = static_cast<std::int64_t>(N::width)) {
  constexpr auto width = static_cast<std::int64_t>(N::width);
  const auto row = [&](std::int64_t i) __attribute__((always_inline)) {
    return from + (i < rows ? i : rows - 1) * stride;
  };
  std::int64_t p = 0;
  if constexpr (N::width > 1)
    while (p < steps) {
      const std::int64_t some = steps - p < width ? steps - p : width;
      typename N::reg r[N::width];
      if (some == width) {
        for (std::int64_t i = 0; i < width; ++i) r[i] = N::load(row(i) + p).raw();
      } else {
        if (!reads_parts<N> || some < width / 4) break;
        for (std::int64_t i = 0; i < width; ++i)
          r[i] = N::load_partial(row(i) + p, static_cast<std::size_t>(some)).raw();
      }
      simd::transpose<N::width / 2>(r, std::make_index_sequence<N::width>{});
      for (std::int64_t i = 0; i < some; ++i) to(p + i, N(typename N::batch(r[i])));
      p += some;
    }
  return p;
}
#endif

}  // namespace detail

}  // namespace gradus
