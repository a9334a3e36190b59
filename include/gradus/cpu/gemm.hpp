// Products of large matrices: c = op(a) op(b), packed into blocks that stay in the caches and computed in tiles that
// stay in the registers.
//
// Every element of c is one chain of fused multiply-adds over k in order (products and sums where A is `portable`), as
// in cpu/matmul.hpp: blocks, tiles, the width of a register and how the rows are divided among callers do not show in
// the bits. A sum over k that is split between blocks rests in c in between, which rounds nothing.
//
// Order of loops: a block of op(a), rows x depth, is packed for the second-level cache; past it goes op(b), a panel of
// depth x (columns of a tile) at a time, packed for the first-level cache. Both lie on the stack: about 240 KB, or 20
// KB where there is no SIMD.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "number.hpp"

namespace gradus {

// A row-major matrix in memory, `stride` numbers from row to row; op(it) is its transpose if `transposed`.
template <class T>
struct matrix_operand {
  const T* at = nullptr;
  std::int64_t stride = 0;
  bool transposed = false;
};

enum class product_into {
  overwrite,  // c = op(a) op(b)
  add,        // c = c + op(a) op(b), the chain starting from c
  subtract,   // c = c - op(a) op(b), the same
  symmetric   // c = op(a) op(b), known to be symmetric: the lower triangle is computed, and mirrored
};

namespace detail {

// Rows and registers of a tile: as many accumulators as the machine has registers, less one row of b and one of a.
#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int tile_rows = 8, tile_registers = 3;
#else
inline constexpr int tile_rows = 6, tile_registers = 2;
#endif

template <class T, class A>
struct packed_product {
  using N = pack<T, A>;
  static constexpr auto width = static_cast<std::int64_t>(N::width);
  static constexpr std::int64_t rows = tile_rows, registers = tile_registers, columns = registers * width;
  static constexpr std::int64_t depth = sizeof(T) == 4 ? 256 : 192;
  static constexpr std::int64_t block_bytes = GRADUS_SIMD ? 196608 : 16384;  // no SIMD: a small machine's stack
  static constexpr std::int64_t block_rows = block_bytes / static_cast<std::int64_t>(sizeof(T)) / depth / rows * rows;
  static_assert(block_rows > 0);
  using row_places = std::make_integer_sequence<int, tile_rows>;
  using register_places = std::make_integer_sequence<int, tile_registers>;

  matrix_operand<T> a, b;
  T* c;
  std::int64_t stride, m, n, k;
  product_into into;

  // What follows is unrolled by pack expansion: the accumulators must be registers at every level of optimization.
  template <int... Q>
  static GRADUS_INLINE void read(N* acc, const T* from, std::integer_sequence<int, Q...>) {
    ((acc[Q] = N::load(from + Q * width)), ...);
  }
  template <int... Q>
  static GRADUS_INLINE void write(const N* acc, T* to, std::integer_sequence<int, Q...>) {
    (acc[Q].store(to + Q * width), ...);
  }
  template <int... Q>
  static GRADUS_INLINE void multiply_add(N* acc, N x, const N* w, std::integer_sequence<int, Q...>) {
    ((acc[Q] = fma(x, w[Q], acc[Q])), ...);
  }
  template <int... R, int... Q>
  static GRADUS_INLINE void tile(T* to, std::int64_t to_stride, bool from_zero, const T* x, const T* y,
                                 std::int64_t steps, std::integer_sequence<int, R...>,
                                 std::integer_sequence<int, Q...> q) {
    constexpr int count = sizeof...(Q);
    (__builtin_prefetch(to + R * to_stride, 1), ...);
    N acc[rows * count];
    if (from_zero)
      for (N& v : acc) v = N(T(0));
    else
      (read(acc + R * count, to + R * to_stride, q), ...);
    for (; steps > 0; --steps, x += rows, y += columns) {
      N w[count];
      read(w, y, q);
      (multiply_add(acc + R * count, N(x[R]), w, q), ...);
    }
    (write(acc + R * count, to + R * to_stride, q), ...);
  }

  // A tile of which the first `tall` rows and `wide` columns are in c, by as few registers as hold them.
  template <int Registers>
  void tile_of(T* to, std::int64_t tall, std::int64_t wide, bool from_zero, const T* x, const T* y,
               std::int64_t steps) const {
    constexpr std::make_integer_sequence<int, Registers> q{};
    if constexpr (Registers > 1)
      if (wide <= (Registers - 1) * width) return tile_of<Registers - 1>(to, tall, wide, from_zero, x, y, steps);
    if (tall == rows && wide == Registers * width) return tile(to, stride, from_zero, x, y, steps, row_places{}, q);
    alignas(64) T whole[rows * columns];
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < Registers * width; ++j)
        whole[i * columns + j] = i < tall && j < wide && !from_zero ? to[i * stride + j] : T(0);
    tile(whole, columns, false, x, y, steps, row_places{}, q);
    for (std::int64_t i = 0; i < tall; ++i)
      for (std::int64_t j = 0; j < wide; ++j) to[i * stride + j] = whole[i * columns + j];
  }

#if GRADUS_SIMD && GRADUS_SHUFFLES
  // A register's worth of rows, `stride` apart: to(p, their places p) for as many p of `steps` as fill registers; how
  // many those are.
  template <class To>
  static GRADUS_INLINE std::int64_t transpose_rows(const T* from, std::int64_t stride, std::int64_t steps, To to) {
    std::int64_t p = 0;
    if constexpr (width > 1)
      for (; p + width <= steps; p += width) {
        typename N::reg r[width];
        for (std::int64_t i = 0; i < width; ++i) r[i] = N::load(from + i * stride + p).raw();
        simd::transpose<N::width / 2>(r, std::make_index_sequence<N::width>{});
        for (std::int64_t i = 0; i < width; ++i) to(p + i, N(typename N::batch(r[i])));
      }
    return p;
  }
#endif

  // Rows i0 <= i < i1 and places k0 <= p < k1 of op(a), tile after tile, p after p; missing rows are zeros.
  void pack_rows(T* to, std::int64_t i0, std::int64_t i1, std::int64_t k0, std::int64_t k1) const {
    const std::int64_t steps = k1 - k0, down = a.transposed ? 1 : a.stride, along = a.transposed ? a.stride : 1;
    const bool minus = into == product_into::subtract;
    std::int64_t i = i0;
#if GRADUS_SIMD && GRADUS_SHUFFLES
    // A register of rows at a time, where that is a tile or two.
    if constexpr (width == rows || width == 2 * rows)
      for (; !a.transposed && i + width <= i1; i += width, to += width * steps) {
        const T* from = a.at + i * down + k0;
        const std::int64_t done = transpose_rows(from, down, steps, [&](std::int64_t p, N column) {
          alignas(64) T all[width];
          (minus ? -column : column).store(all);
          for (std::int64_t r = 0; r < width; r += rows)
            std::memcpy(to + r * steps + p * rows, all + r, rows * sizeof(T));
        });
        for (std::int64_t r = 0; r < width; ++r)
          for (std::int64_t p = done; p < steps; ++p) {
            const T x = from[r * down + p];
            to[r / rows * rows * steps + p * rows + r % rows] = minus ? -x : x;
          }
      }
#endif
    for (; i < i1; i += rows, to += rows * steps) {
      const std::int64_t tall = i1 - i < rows ? i1 - i : rows;
      const T* from = a.at + i * down + k0 * along;
      if (tall == rows && a.transposed) {
        for (std::int64_t p = 0; p < steps; ++p, from += along)
          for (std::int64_t r = 0; r < rows; ++r) to[p * rows + r] = minus ? -from[r] : from[r];
        continue;
      }
      for (std::int64_t p = 0; p < steps; ++p)
        for (std::int64_t r = 0; r < rows; ++r) {
          const T x = r < tall ? from[r * down + p * along] : T(0);
          to[p * rows + r] = minus ? -x : x;
        }
    }
  }
  // Columns j <= q < j + columns and places k0 <= p < k1 of op(b), p after p; missing columns are zeros.
  void pack_columns(T* to, std::int64_t j, std::int64_t k0, std::int64_t k1) const {
    const std::int64_t wide = n - j < columns ? n - j : columns, steps = k1 - k0;
    std::int64_t q = 0;
    if (!b.transposed) {
      const T* from = b.at + k0 * b.stride + j;
      if (wide == columns) {
        for (std::int64_t p = 0; p < steps; ++p, from += b.stride, to += columns) {
          N w[registers];
          read(w, from, register_places{});
          write(w, to, register_places{});
        }
        return;
      }
      for (std::int64_t p = 0; p < steps; ++p)
        for (std::int64_t r = 0; r < columns; ++r) to[p * columns + r] = r < wide ? from[p * b.stride + r] : T(0);
      return;
    }
    const T* from = b.at + j * b.stride + k0;
#if GRADUS_SIMD && GRADUS_SHUFFLES
    for (; width > 1 && q + width <= wide; q += width) {
      std::int64_t p = transpose_rows(from + q * b.stride, b.stride, steps,
                                      [&](std::int64_t at, N row) { row.store(to + at * columns + q); });
      for (; p < steps; ++p)
        for (std::int64_t i = 0; i < width; ++i) to[p * columns + q + i] = from[(q + i) * b.stride + p];
    }
#endif
    for (; q < columns; ++q)
      for (std::int64_t p = 0; p < steps; ++p) to[p * columns + q] = q < wide ? from[q * b.stride + p] : T(0);
  }

  void run() const {
    const bool zeroed = into == product_into::overwrite || into == product_into::symmetric;
    if (k == 0 && zeroed)
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) c[i * stride + j] = T(0);
    alignas(64) T block[block_rows * depth];
    alignas(64) T panel[columns * depth];
    for (std::int64_t k0 = 0; k0 < k; k0 += depth) {
      const std::int64_t k1 = k - k0 < depth ? k : k0 + depth, steps = k1 - k0;
      for (std::int64_t i0 = 0; i0 < m; i0 += block_rows) {
        const std::int64_t i1 = m - i0 < block_rows ? m : i0 + block_rows;
        pack_rows(block, i0, i1, k0, k1);
        const std::int64_t last = into == product_into::symmetric && i1 < n ? i1 : n;  // columns that are computed
        for (std::int64_t j = 0; j < last; j += columns) {
          pack_columns(panel, j, k0, k1);
          const std::int64_t wide = n - j < columns ? n - j : columns;
          for (std::int64_t i = i0; i < i1; i += rows) {
            const std::int64_t tall = i1 - i < rows ? i1 - i : rows;
            if (into == product_into::symmetric && j >= i + tall) continue;
            T* to = c + i * stride + j;
            const T* x = block + (i - i0) * steps;
            tile_of<tile_registers>(to, tall, wide, zeroed && k0 == 0, x, panel, steps);
          }
        }
      }
    }
    if (into == product_into::symmetric) mirror();
  }
  // The upper triangle from the lower one, in squares that stay in the cache.
  void mirror() const {
    constexpr std::int64_t side = 32;
    for (std::int64_t i0 = 0; i0 < n; i0 += side)
      for (std::int64_t j0 = i0; j0 < n; j0 += side)
        for (std::int64_t j = j0; j < n && j < j0 + side; ++j)
          for (std::int64_t i = i0; i < j && i < i0 + side; ++i) c[i * stride + j] = c[j * stride + i];
  }
};

}  // namespace detail

// c [m, n] with `stride` numbers from row to row; op(a) is [m, k], op(b) [k, n]. c may not overlap a or b.
template <class A, class T>
void multiply(matrix_operand<T> a, matrix_operand<T> b, T* c, std::int64_t stride, std::int64_t m, std::int64_t n,
              std::int64_t k, product_into into = product_into::overwrite) {
  detail::packed_product<T, A>{a, b, c, stride, m, n, k, into}.run();
}

}  // namespace gradus
