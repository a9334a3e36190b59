// This computes products of large matrices: c = op(a) op(b), packed into blocks that stay in the caches and computed in
// tiles that stay in the registers.
//
// Every element of c is one chain of fused multiply-adds over k in order (products and sums where A is `portable`), as
// in cpu/matmul.hpp: blocks, tiles, the width of a register and how the rows are divided among callers do not change
// the bits. A sum over k that is split between blocks is stored in c in between, which rounds nothing.
//
// The loops have this order: a block of op(a), rows x depth, is packed for the second-level cache. It is multiplied by
// op(b), a panel of depth x (columns of a tile) at a time, packed for the first-level cache. Both lie on the stack:
// about 240 KB, or 20 KB where there is no SIMD.
#pragma once
#include "../base/build.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "../base/error.hpp"
#include "tile.hpp"

namespace gradus::inline GRADUS_BUILD {

enum class product_into {
  overwrite,  // c = op(a) op(b)
  add,        // c = c + op(a) op(b); the chain starts from c
  subtract,   // c = c - op(a) op(b); the chain starts from c
  symmetric   // c = op(a) op(b), known to be symmetric: the lower triangle is computed, and mirrored
};

namespace detail {

// Packs columns j <= q < j + wide and places k0 <= p < k1 of op(b), p after p, `columns` apart; missing columns are
// numbers that mean nothing: zeros, or those of the last column.
template <class N, class T>
[[gnu::noinline]] void pack_columns(T* to, std::int64_t columns, const matrix_operand<T>& b, std::int64_t j,
                                    std::int64_t wide, std::int64_t k0, std::int64_t k1) {
  constexpr auto width = static_cast<std::int64_t>(N::width);
  const std::int64_t steps = k1 - k0;
  std::int64_t q = 0;
  if (!b.transposed) {
    const T* from = b.at + k0 * b.stride + j;
    for (std::int64_t p = 0; p < steps; ++p, from += b.stride, to += columns) {
      for (q = 0; q + width <= wide; q += width) N::load(from + q).store(to + q);
      for (; q < columns; q += width)
        (q < wide ? N::load_partial(from + q, static_cast<std::size_t>(wide - q)) : N(T(0))).store(to + q);
    }
    return;
  }
  const T* from = b.at + j * b.stride + k0;
#if GRADUS_SIMD && GRADUS_SHUFFLES
  for (; width > 1 && q < wide; q += width) {
    const std::int64_t rows = wide - q < width ? wide - q : width;
    std::int64_t p = transpose_rows<N>(
        from + q * b.stride, b.stride, steps, [&](std::int64_t at, N row) { row.store(to + at * columns + q); }, rows);
    for (; p < steps; ++p)
      for (std::int64_t i = 0; i < width; ++i)
        to[p * columns + q + i] = from[(q + (i < rows ? i : rows - 1)) * b.stride + p];
  }
#endif
  for (; q < columns; ++q)
    for (std::int64_t p = 0; p < steps; ++p) to[p * columns + q] = q < wide ? from[q * b.stride + p] : T(0);
}

template <class T, class A>
struct packed_product {
  using N = pack<T, A>;
  static constexpr auto width = static_cast<std::int64_t>(N::width);
  static constexpr int registers = tile_registers > 3 ? 3 : tile_registers;
  static constexpr std::int64_t rows = tile_rows(registers), columns = registers * width;
  static constexpr std::int64_t depth = sizeof(T) == 4 ? 256 : 192;
  static constexpr std::int64_t block_bytes = GRADUS_SIMD ? 196608 : 16384;  // without SIMD: a small machine's stack
  static constexpr std::int64_t block_rows = block_bytes / static_cast<std::int64_t>(sizeof(T)) / depth / rows * rows;
  static_assert(block_rows > 0);

  matrix_product<T> g;
  product_into into;

  // Returns whether packing both operands pays for a product of these extents, which narrow tiles read more often.
  // Without SIMD it never does: such a machine has no stack for it.
  static constexpr bool pays(std::int64_t m, std::int64_t n, std::int64_t k) {
    constexpr bool narrow = registers < 3;
    constexpr std::int64_t least_rows = narrow ? 48 : 256, least = narrow ? 96 : 256, all = 1 << (narrow ? 23 : 28);
    return N::width > 1 && m >= least_rows && n >= least && k >= least && m * n * k >= all;
  }
  // Computes tiles of as few registers as hold the columns.
  template <int Registers>
  static void tiles_of(const tile_work<T>& w, std::int64_t i) {
    if constexpr (Registers > 1)
      if (w.wide <= (Registers - 1) * width) return tiles_of<Registers - 1>(w, i);
    tiles<N, static_cast<int>(rows), Registers, false>::packed(w, i, as_is{});
  }

  // Packs rows i0 <= i < i1 and places k0 <= p < k1 of op(a), tile after tile, p after p; missing rows are zeros.
  void pack_rows(T* to, std::int64_t i0, std::int64_t i1, std::int64_t k0, std::int64_t k1) const {
    const matrix_operand<T>& a = g.a;
    const std::int64_t steps = k1 - k0, down = a.row(), along = a.step();
    const bool minus = into == product_into::subtract;
    std::int64_t i = i0;
#if GRADUS_SIMD && GRADUS_SHUFFLES
    // This packs a register's width of rows at a time, where that is a tile or two.
    if constexpr (width == rows || width == 2 * rows)
      for (; !a.transposed && i + width <= i1; i += width, to += width * steps) {
        const T* from = a.at + i * down + k0;
        const std::int64_t done = transpose_rows<N>(from, down, steps, [&](std::int64_t p, N column) {
          alignas(64) T all[static_cast<std::size_t>(width)];
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
  void run(const epilogue_call<T>& finish) const;
  // Copies the lower triangle to the upper one, in squares that stay in the cache.
  void mirror() const {
    constexpr std::int64_t side = 32;
    for (std::int64_t i0 = 0; i0 < g.n; i0 += side)
      for (std::int64_t j0 = i0; j0 < g.n; j0 += side)
        for (std::int64_t j = j0; j < g.n && j < j0 + side; ++j)
          for (std::int64_t i = i0; i < j && i < i0 + side; ++i) g.c[i * g.stride + j] = g.c[j * g.stride + i];
  }
};

template <class T, class A>
void packed_product<T, A>::run(const epilogue_call<T>& finish) const {
  const std::int64_t m = g.m, n = g.n, k = g.k, stride = g.stride;
  const bool zeroed = into == product_into::overwrite || into == product_into::symmetric;
  alignas(64) T block[static_cast<std::size_t>(block_rows * depth)];
  alignas(64) T panel[static_cast<std::size_t>(columns * depth)];
  for (std::int64_t k0 = 0; k0 < k; k0 += depth) {
    const std::int64_t k1 = k - k0 < depth ? k : k0 + depth, steps = k1 - k0;
    for (std::int64_t i0 = 0; i0 < m; i0 += block_rows) {
      const std::int64_t i1 = m - i0 < block_rows ? m : i0 + block_rows;
      pack_rows(block, i0, i1, k0, k1);
      const std::int64_t last = into == product_into::symmetric && i1 < n ? i1 : n;  // end of the columns to compute
      for (std::int64_t j = 0; j < last; j += columns) {
        const std::int64_t wide = n - j < columns ? n - j : columns;
        pack_columns<N>(panel, columns, g.b, j, wide, k0, k1);
        tile_work<T> w{block,      1,           rows,    panel, columns,           g.c + i0 * stride + j,
                       stride,     steps,       i1 - i0, wide,  zeroed && k0 == 0, k1 == k,
                       g.row + i0, g.column + j};
        std::int64_t i = 0;
        if (into == product_into::symmetric)
          while (j >= i0 + i + rows) i += rows;  // skips tiles above the diagonal
        tiles_of<registers>(w, i);
        if (w.last) finish(g.part(i0, i1, j, j + wide));
      }
    }
  }
  if (into == product_into::symmetric) mirror();
}

// Computes a result whose sums have no terms: what the chains start from.
template <class A, class T, class E>
void empty_sums(const matrix_product<T>& g, product_into into, const E& e) {
  const bool from_c = into == product_into::add || into == product_into::subtract;
  for (std::int64_t i = 0; i < g.m; ++i)
    for (std::int64_t j = 0; j < g.n; ++j) {
      T& c = g.c[i * g.stride + j];
      c = e(lane<T, A>(from_c ? c : T(0)), g.row + i, g.column + j, std::size_t{1}).v;
    }
}

}  // namespace detail

// Computes c [m, n], with `stride` numbers from row to row, as `into` says; op(a) is [m, k], op(b) [k, n]. c may not
// overlap a or b. The epilogue is of cpu/tile.hpp; with add and subtract it receives sums that started from c. Error:
// invalid_argument for an epilogue of a symmetric product, half of which is a copy.
template <class A, class T, class E = as_is>
void multiply(matrix_operand<T> a, matrix_operand<T> b, T* c, std::int64_t stride, std::int64_t m, std::int64_t n,
              std::int64_t k, product_into into = product_into::overwrite, const E& e = {}) {
  const detail::matrix_product<T> g{a, b, c, stride, m, n, k};
  if constexpr (!std::is_same_v<E, as_is>)
    if (into == product_into::symmetric)
      raise(status::invalid_argument, "multiply: a symmetric product takes no epilogue; ", "use overwrite");
  if (k == 0) return detail::empty_sums<A>(g, into, e);
  detail::packed_product<T, A>{g, into}.run(detail::epilogue_call<T>::template of<detail::pack<T, A>>(e));
}

}  // namespace gradus
