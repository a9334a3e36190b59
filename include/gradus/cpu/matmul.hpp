// Matrix products. Every element of the result is one chain of fused multiply-adds over k in order, whatever the tile,
// so shape alone decides its bits. A tile of rows x columns of the result stays in registers; the right operand is read
// in place where its rows are contiguous and whole registers wide, and packed into a panel on the stack otherwise.
#pragma once
#include "../ops/matmul.hpp"
#include "kernel.hpp"
#include "number.hpp"

namespace gradus {

namespace detail {

template <class T, class A>
struct gemm {
  using N = pack<T, A>;
  static constexpr std::int64_t width = N::width;
  static constexpr int columns = width >= 16 ? 4 : 2, rows = 4;  // of a tile, in registers and in rows
  static constexpr std::int64_t panel_columns = columns * width, depth = 128;

  std::int64_t m, k, n;
  bool ta, tb;
  const T *a, *b;
  T* c;

  GRADUS_INLINE std::int64_t a_row() const { return ta ? 1 : k; }
  GRADUS_INLINE std::int64_t a_step() const { return ta ? m : 1; }

  template <int Rows, int Columns>
  GRADUS_INLINE void tile(std::int64_t i, std::int64_t j, std::int64_t k0, std::int64_t k1, const T* panel,
                          std::int64_t stride, std::int64_t valid) const {
    N acc[Rows][Columns];
    const bool whole = valid >= Columns * width;
    for (int r = 0; r < Rows; ++r)
      for (int q = 0; q < Columns; ++q) {
        if (k0 == 0)
          acc[r][q] = N(T(0));
        else {
          const std::int64_t left = valid - q * width;
          const T* from = c + (i + r) * n + j + q * width;
          acc[r][q] = whole || left >= width ? N::load(from)
                                             : N::load_partial(from, left > 0 ? static_cast<std::size_t>(left) : 0);
        }
      }
    const T* x = a + i * a_row();
    const std::int64_t row = a_row(), step = a_step();
    for (std::int64_t p = k0; p < k1; ++p, panel += stride) {
      N w[Columns];
      for (int q = 0; q < Columns; ++q) w[q] = N::load(panel + q * width);
      for (int r = 0; r < Rows; ++r) {
        const N v(x[r * row + p * step]);
        for (int q = 0; q < Columns; ++q) acc[r][q] = fma(v, w[q], acc[r][q]);
      }
    }
    for (int r = 0; r < Rows; ++r)
      for (int q = 0; q < Columns; ++q) {
        const std::int64_t left = valid - q * width;
        T* to = c + (i + r) * n + j + q * width;
        if (whole || left >= width)
          acc[r][q].store(to);
        else if (left > 0)
          acc[r][q].store_partial(to, static_cast<std::size_t>(left));
      }
  }
  template <int Columns>
  GRADUS_INLINE void strip(std::int64_t j, std::int64_t k0, std::int64_t k1, const T* panel, std::int64_t stride,
                           std::int64_t valid) const {
    std::int64_t i = 0;
    for (; i + rows <= m; i += rows) tile<rows, Columns>(i, j, k0, k1, panel, stride, valid);
    for (; i < m; ++i) tile<1, Columns>(i, j, k0, k1, panel, stride, valid);
  }
  template <int Columns>
  GRADUS_INLINE void pack_panel(T* panel, std::int64_t j, std::int64_t k0, std::int64_t k1, std::int64_t valid) const {
    constexpr std::int64_t wide = Columns * width;
    for (std::int64_t p = k0; p < k1; ++p) {
      T* to = panel + (p - k0) * wide;
      if (tb)
        for (std::int64_t q = 0; q < valid; ++q) to[q] = b[(j + q) * k + p];
      else
        for (std::int64_t q = 0; q < valid; ++q) to[q] = b[p * n + j + q];
      for (std::int64_t q = valid; q < wide; ++q) to[q] = T(0);
    }
  }
  template <int Columns>
  GRADUS_INLINE void block_of_columns(std::int64_t j, std::int64_t valid) const {
    constexpr std::int64_t wide = Columns * width;
    const bool in_place = !tb && valid == wide;
    if (k == 0) {
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t q = 0; q < valid; ++q) c[i * n + j + q] = T(0);
      return;
    }
    alignas(64) T panel[depth * wide];
    for (std::int64_t k0 = 0; k0 < k; k0 += depth) {
      const std::int64_t k1 = k - k0 < depth ? k : k0 + depth;
      if (in_place)
        strip<Columns>(j, k0, k1, b + k0 * n + j, n, valid);
      else {
        pack_panel<Columns>(panel, j, k0, k1, valid);
        strip<Columns>(j, k0, k1, panel, wide, valid);
      }
    }
  }
  GRADUS_INLINE void run() const {
    std::int64_t j = 0;
    for (; n - j >= panel_columns; j += panel_columns) block_of_columns<columns>(j, panel_columns);
    for (; n - j > 0; j += width) block_of_columns<1>(j, n - j < width ? n - j : width);
  }
};

}  // namespace detail

template <>
struct kernel<&cards::matmul> {
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    typed<0, float, double>(s, [&]<class T>() {
      detail::gemm<T, A> g{s.dim(1),      s.dim(2),    s.dim(3),    s.raw(4) != 0,
                           s.raw(5) != 0, at<T>(a, 1), at<T>(a, 2), at<T>(a, 0)};
      for (std::int64_t i = 0; i < s.dim(0); ++i) {
        g.run();
        g.a += g.m * g.k, g.b += g.k * g.n, g.c += g.m * g.n;
      }
    });
  }
};
using matmul_ops = op_list<&cards::matmul>;

}  // namespace gradus
