// Matrix products. Every element of the result is one chain of fused multiply-adds over k in order, whatever the tile,
// so shape alone decides its bits. A tile of rows x columns of the result stays in registers; the right operand is read
// in place where its rows are contiguous and whole registers wide (or masked), and packed into a panel on the stack
// otherwise. Large products go to cpu/gemm.hpp, which packs both operands and gives the same bits.
#pragma once
#include "../ops/matmul.hpp"
#include "gemm.hpp"
#include "kernel.hpp"
#include "number.hpp"

namespace gradus {

namespace detail {

// True where reading the first places of a register costs about as much as reading all.
template <class N>
inline constexpr bool reads_parts = N::width == 1;
#if GRADUS_SIMD
template <class T, class A, class Arch>
inline constexpr bool reads_parts<vector_pack<T, A, Arch>> = vector_pack<T, A, Arch>::masked::supported;
#endif

// to[p * stride + q] = from[q * k + p] for p < rows, q < N::width, a block of registers at a time.
template <class N, class T>
void transpose_columns(T* to, std::int64_t stride, const T* from, std::int64_t k, std::int64_t rows) {
  constexpr auto width = static_cast<std::int64_t>(N::width);
  std::int64_t p = 0;
#if GRADUS_SIMD && GRADUS_SHUFFLES
  if constexpr (N::width > 1)
    for (; p + width <= rows; p += width) {
      typename N::reg r[N::width];
      for (std::int64_t q = 0; q < width; ++q) r[q] = N::load(from + q * k + p).raw();
      simd::transpose<N::width / 2>(r, std::make_index_sequence<N::width>{});
      for (std::int64_t q = 0; q < width; ++q) N(typename N::batch(r[q])).store(to + (p + q) * stride);
    }
#endif
  for (; p < rows; ++p)
    for (std::int64_t q = 0; q < width; ++q) to[p * stride + q] = from[q * k + p];
}

template <class T, class A>
struct gemm {
  using N = pack<T, A>;
  static constexpr auto width = static_cast<std::int64_t>(N::width);
  static constexpr int columns = width >= 16 ? 4 : 2, rows = 4;  // of a tile, in registers and in rows
  static constexpr int narrow_rows = 8;                          // of a tile one register wide: enough chains in flight
  static constexpr std::int64_t panel_columns = columns * width, depth = 128;

  std::int64_t m, k, n;
  bool ta, tb;
  const T *a, *b;
  T* c;

  // A single row or column lies in memory as its transpose does; with one column, b^T a^T has long rows.
  GRADUS_INLINE gemm simplified() const {
    gemm g = *this;
    if (n == 1 && (ta || m >= narrow_rows)) g = {1, k, m, true, !ta, b, a, c};
    if (g.k == 1) g.ta = g.tb = false;
    return g;
  }
  GRADUS_INLINE std::int64_t a_row() const { return ta ? 1 : k; }
  GRADUS_INLINE std::int64_t a_step() const { return ta ? m : 1; }

  // Rows x Columns registers from (i, j), over k0 <= p < k1. A part of a register: one column, of `valid` places.
  template <int Rows, int Columns, bool Part>
  GRADUS_INLINE void tile(std::int64_t i, std::int64_t j, std::int64_t k0, std::int64_t k1, const T* panel,
                          std::int64_t stride, bool padded, std::int64_t valid) const {
    static_assert(!Part || Columns == 1);
    const auto part = static_cast<std::size_t>(valid);
    N acc[Rows][Columns];
    for (int r = 0; r < Rows; ++r)
      for (int q = 0; q < Columns; ++q) {
        const T* from = c + (i + r) * n + j + q * width;
        acc[r][q] = k0 == 0 ? N(T(0)) : Part ? N::load_partial(from, part) : N::load(from);
      }
    const std::int64_t row = a_row(), step = a_step();
    const T* x = a + i * row + k0 * step;
    for (std::int64_t p = k0; p < k1; ++p, panel += stride, x += step) {
      N w[Columns];
      for (int q = 0; q < Columns; ++q)
        w[q] = Part && !padded ? N::load_partial(panel, part) : N::load(panel + q * width);
      for (int r = 0; r < Rows; ++r) {
        const N v(x[r * row]);
        for (int q = 0; q < Columns; ++q) acc[r][q] = fma(v, w[q], acc[r][q]);
      }
    }
    for (int r = 0; r < Rows; ++r)
      for (int q = 0; q < Columns; ++q) {
        T* to = c + (i + r) * n + j + q * width;
        if constexpr (Part)
          acc[r][q].store_partial(to, part);
        else
          acc[r][q].store(to);
      }
  }
  template <int Rows, int Columns, bool Part>
  void strip(std::int64_t j, std::int64_t k0, std::int64_t k1, const T* panel, std::int64_t stride, bool padded,
             std::int64_t valid) const {
    std::int64_t i = 0;
    for (; i + Rows <= m; i += Rows) tile<Rows, Columns, Part>(i, j, k0, k1, panel, stride, padded, valid);
    for (; i < m; ++i) tile<1, Columns, Part>(i, j, k0, k1, panel, stride, padded, valid);
  }
  template <int Columns>
  void pack_panel(T* panel, std::int64_t j, std::int64_t k0, std::int64_t k1, std::int64_t valid) const {
    constexpr std::int64_t wide = Columns * width;
    std::int64_t q = 0;
    if (tb)
      for (; q + width <= valid; q += width) transpose_columns<N>(panel + q, wide, b + (j + q) * k + k0, k, k1 - k0);
    for (std::int64_t p = k0; p < k1; ++p) {
      T* to = panel + (p - k0) * wide;
      for (std::int64_t r = q; r < valid; ++r) to[r] = tb ? b[(j + r) * k + p] : b[p * n + j + r];
      for (std::int64_t r = valid; r < wide; ++r) to[r] = T(0);
    }
  }
  template <int Rows, int Columns, bool Part>
  void block_of_columns(std::int64_t j, std::int64_t valid) const {
    constexpr std::int64_t wide = Columns * width;
    const bool in_place = !tb && (!Part || reads_parts<N>);
    if (in_place) return strip<Rows, Columns, Part>(j, 0, k, b + j, n, false, valid);
    alignas(64) T panel[depth * wide];
    for (std::int64_t k0 = 0; k0 < k; k0 += depth) {
      const std::int64_t k1 = k - k0 < depth ? k : k0 + depth;
      pack_panel<Columns>(panel, j, k0, k1, valid);
      strip<Rows, Columns, Part>(j, k0, k1, panel, wide, true, valid);
    }
  }
  // Where packing both operands pays. Not where there are no registers: such a machine has no stack for panels.
  bool is_large() const {
    return N::width > 1 && m >= 16 && n >= 48 && m * n * k >= (tb ? std::int64_t{1} << 27 : std::int64_t{1} << 20);
  }
  void run() const {
    if constexpr (N::width > 1)
      if (is_large()) return gradus::multiply<A, T>({a, ta ? m : k, ta}, {b, tb ? k : n, tb}, c, n, m, n, k);
    std::int64_t j = 0;
    if (k == 0)
      for (; j < m * n; ++j) c[j] = T(0);
    for (; n - j >= panel_columns; j += panel_columns) block_of_columns<rows, columns, false>(j, panel_columns);
    for (; n - j >= width; j += width) block_of_columns<narrow_rows, 1, false>(j, width);
    if (n > j) block_of_columns<narrow_rows, 1, true>(j, n - j);
  }

  // A few numbers: into the kernel of this very shape, without a call.
  GRADUS_INLINE bool run_small() const {
    if (k == 0 || (tb && n > 1) || !(reads_parts<N> || n % width == 0 || n == 1)) return false;
    if (n == 1) {
      for (std::int64_t i = 0; i < m; ++i) {
        lane<T, A> acc(T(0));
        for (std::int64_t p = 0; p < k; ++p)
          acc = fma(lane<T, A>(a[i * a_row() + p * a_step()]), lane<T, A>(b[p]), acc);
        c[i] = acc.v;
      }
      return true;
    }
    for (std::int64_t i = 0; i < m; ++i) {
      std::int64_t j = 0;
      for (; j + width <= n; j += width) tile<1, 1, false>(i, j, 0, k, b + j, n, false, width);
      if (j < n) tile<1, 1, true>(i, j, 0, k, b + j, n, false, n - j);
    }
    return true;
  }
};
// Known extents whose product is at most this make a kernel of their own; one that is not known counts as 1.
inline constexpr std::int64_t small_matmul = 256;

}  // namespace detail

template <>
struct kernel<&cards::matmul> {
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    typed<0, float, double>(s, [&]<class T>() {
      detail::gemm<T, A> g{s.dim(1),      s.dim(2),    s.dim(3),    s.raw(4) != 0,
                           s.raw(5) != 0, at<T>(a, 1), at<T>(a, 2), at<T>(a, 0)};
      for (std::int64_t i = 0; i < s.dim(0); ++i) {
        multiply<S>(g.simplified());
        g.a += g.m * g.k, g.b += g.k * g.n, g.c += g.m * g.n;
      }
    });
  }

private:
  template <class S, class T, class A>
  static GRADUS_INLINE void multiply(const detail::gemm<T, A>& g) {
    if constexpr (S::is_fixed) {
      constexpr auto known = [](int i) { return S::raw(i) > 0 ? S::raw(i) : 1; };
      if constexpr (std::int64_t{known(1)} * known(2) * known(3) <= detail::small_matmul)
        if (g.m * g.k * g.n <= detail::small_matmul && g.run_small()) return;
    }
    g.run();
  }
};
using matmul_ops = op_list<&cards::matmul>;

}  // namespace gradus
