// This header has matrix products by methods chosen by shape: a few numbers at a time where there is little to do,
// register tiles on op(b) in place or packed into a panel on the stack, and for large products both operands packed
// (cpu/gemm.hpp).
//
// An element is one chain of fused multiply-adds over k in order, whatever the tile. Where there would be too few
// chains to keep the machine busy (a single column, or a single row of at most 16 elements), and k is 8 or more, an
// element is the tree of `dot` instead. So the shape m, k, n of the whole product alone decides its bits.
#pragma once
#include "../ops/matmul.hpp"
#include "kernel.hpp"
#include "products.hpp"
#include "shared_products.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// Known extents whose product is at most this get a kernel of their own; an extent that is not known counts as 1.
inline constexpr std::int64_t small_matmul = 256;
// Returns extent i where it is known when compiling, else `other`.
template <class S>
constexpr std::int64_t known_extent(int i, std::int64_t other) {
  if constexpr (requires { std::bool_constant<(S::dim(1) > 0)>{}; })
    return S::dim(i) > 0 ? S::dim(i) : other;
  else if constexpr (S::is_fixed)
    return S::raw(i) > 0 ? S::raw(i) : other;
  else
    return other;
}
template <class S>
inline constexpr bool may_be_small =
    S::is_fixed && known_extent<S>(1, 1) * known_extent<S>(2, 1) * known_extent<S>(3, 1) <= small_matmul;
// This is true where the extents of a row of the result and of its sums are known (and, where may_be_small is true,
// small).
template <class S>
inline constexpr bool row_known = known_extent<S>(2, 0) > 0 && known_extent<S>(3, 0) > 0;
// This is true where all extents are known and the product is a single tile that does not have many steps.
template <class S, class Direct>
inline constexpr bool is_one_tile = [] {
  constexpr std::int64_t one = known_extent<S>(0, 0), m = known_extent<S>(1, 0), k = known_extent<S>(2, 0),
                         n = known_extent<S>(3, 0);
  if constexpr (S::is_fixed)
    return Direct::width > 1 && tile_registers > 2 && one == 1 && S::raw(5) == 0 && m > 1 && m <= 16 && k > 0 &&
           k <= 64 && n == Direct::width && m * n * k > small_matmul;
  else
    return false;
}();
// This is true where all extents are known, of one matrix and of few numbers: then one of run_dots and run_small is all
// the code there is.
template <class S, class Direct>
inline constexpr bool is_small = [] {
  constexpr std::int64_t one = known_extent<S>(0, 0), m = known_extent<S>(1, 0), k = known_extent<S>(2, 0),
                         n = known_extent<S>(3, 0);
  if constexpr (S::is_fixed)
    return one == 1 && m > 0 && k > 0 && n > 0 && m * k * n <= small_matmul &&
           (sums_are_dots(m, k, n) || n == 1 ||
            ((S::raw(5) == 0 || k == 1) && (reads_parts<typename Direct::N> || n % Direct::width == 0)));
  else
    return false;
}();
// This is true where the sums of some batch size may be dots (sums_are_dots).
template <class S>
inline constexpr bool may_be_dots = [] {
  constexpr std::int64_t m = known_extent<S>(1, 0), k = known_extent<S>(2, 0), n = known_extent<S>(3, 0);
  return (k == 0 || k >= 8) && (n <= 1 || (m <= 1 && n <= 16));
}();
// Where this is false, the code of large products is left out, because the extents that are known are too small for
// one. A part of a product is never larger than the product.
template <class S, class Direct>
inline constexpr bool may_be_large =
    Direct::packed::pays(known_extent<S>(1, 1 << 20), known_extent<S>(3, 1 << 20), known_extent<S>(2, 1 << 20));
// Tells an epilogue that has `stored(first row, end, first column, end)` of each part once it lies in memory.
template <class T, class E>
GRADUS_INLINE void tell_stored(const matrix_product<T>& g, const E& e) {
  if constexpr (requires { e.stored(g.row, g.row + g.m, g.column, g.column + g.n); })
    e.stored(g.row, g.row + g.m, g.column, g.column + g.n);
}
// Computes sum[i][j] += x[i] y[j], or, where `first`, sum[i][j] = x[i] y[j]: a product of one term, then an addition.
template <class N, class T = typename N::value_type>
void add_outer(T* sum, const T* x, std::int64_t m, const T* y, std::int64_t n, bool first) {
  constexpr auto width = static_cast<std::int64_t>(N::width);
  for (std::int64_t i = 0; i < m; ++i, sum += n)
    for (std::int64_t j = 0; j < n; j += width) {
      const auto some = static_cast<std::size_t>(n - j < width ? n - j : width);
      const N product = fma(N(x[i]), N::load_partial(y + j, some), N(T(0)));
      (first ? product : N::load_partial(sum + j, some) + product).store_partial(sum + j, some);
    }
}
}  // namespace detail

// Runs the kernel of the op with an epilogue (cpu/tile.hpp), which gets rows that count through all matrices, in
// order. The work is divided into runs of rows, or of columns where those are more and the rows fewer than 96.
// multiply_operands_as is for an epilogue that knows T.
template <class A, class T, class S, class E = as_is>
void multiply_operands_as(const S& s, std::byte* const* args, const E& e = {}) {
  using direct = detail::direct_product<T, A>;
  const std::int64_t matrices = s.dim(0), m = s.dim(1), k = s.dim(2), n = s.dim(3);
  const bool ta = s.raw(4) != 0, tb = s.raw(5) != 0;
  const detail::matrix_product<T> all{
      {at<const T>(args, 1), ta ? m : k, ta}, {at<const T>(args, 2), tb ? k : n, tb}, at<T>(args, 0), n, m, n, k};
  if constexpr (detail::has_product_library<A, T>)
    if (detail::library_product<A>(s, all, matrices, e)) return;
  if constexpr (detail::is_small<S, direct>) {
    constexpr std::int64_t columns = detail::known_extent<S>(3, 0);
    if (const index_range whole = s.share(1); whole.first == whole.last) return;
    if constexpr (detail::sums_are_dots(detail::known_extent<S>(1, 0), detail::known_extent<S>(2, 0), columns))
      direct{all}.template run_dots<true, columns>(e);
    else
      direct{all}.template run_small<columns>(e);
    detail::tell_stored(all, e);
  } else {
    const bool dots = detail::may_be_dots<S> && detail::sums_are_dots(m, k, n);
    const auto multiply_part = [&](const detail::matrix_product<T>& g) __attribute__((always_inline)) {
      if constexpr (detail::may_be_small<S>)
        if (g.m * g.k * g.n <= detail::small_matmul) {
          if constexpr (detail::may_be_dots<S>)
            if (dots) return direct{g}.template run_dots<detail::row_known<S>>(e);
          if (direct{g}.run_small(e)) return;
        }
      if constexpr (detail::may_be_dots<S>)
        if (dots) return direct{g}.run_all_dots(e);
      direct{g}
          .template run<detail::known_extent<S>(1, 0), detail::known_extent<S>(3, 0), detail::may_be_large<S, direct>>(
              e);
    };
    const auto run = [&](const detail::matrix_product<T>& g) __attribute__((always_inline)) {
      if constexpr (detail::is_one_tile<S, direct>)
        direct{g}.template one_tile<detail::known_extent<S>(1, 0), detail::known_extent<S>(3, 0)>(
            detail::known_extent<S>(2, 0), e);
      else
        multiply_part(g);
      detail::tell_stored(g, e);
    };
    if constexpr (detail::may_be_small<S> || detail::is_one_tile<S, direct>)
      if (matrices == 1 &&
          (detail::is_one_tile<S, direct> || m * k * n <= detail::small_matmul)) {  // not worth dividing
        const index_range whole = s.share(1);
        if (whole.first < whole.last) run(all);
        return;
      }
    const auto matrix = [&](std::int64_t i) __attribute__((always_inline)) {
      detail::matrix_product<T> g = all;
      g.a.at += i * m * k, g.b.at += i * k * n, g.c += i * m * n, g.row = i * m;
      return g;
    };
    using panels = typename direct::template panels_of<detail::known_extent<S>(3, 0)>;
    const bool by_rows = m >= n || m >= 96 || (detail::known_extent<S>(3, 0) > 0 && !panels::even);
    const std::int64_t grain = by_rows ? (m >= 96 ? 24 : 12) : panels::wide * direct::width;  // mostly whole tiles
    const std::int64_t pieces = ((by_rows ? m : n) + grain - 1) / grain;
    const index_range mine = s.share(matrices * pieces);
    if (mine.last - mine.first == matrices * pieces) {
      for (std::int64_t i = 0; i < matrices; ++i) run(matrix(i));
      return;
    }
    for (std::int64_t at = mine.first; at < mine.last;) {
      const std::int64_t i = at / pieces, first = at % pieces;
      const std::int64_t last = pieces - first < mine.last - at ? pieces : first + mine.last - at;
      const auto end = [&](std::int64_t extent) { return last * grain < extent ? last * grain : extent; };
      run(by_rows ? matrix(i).part(first * grain, end(m), 0, n) : matrix(i).part(0, m, first * grain, end(n)));
      at += last - first;
    }
  }
}
template <class A, class S, class E = as_is>
void multiply_operands(const S& s, std::byte* const* args, const E& e = {}) {
  dispatch_type<0, float, double>(s, [&]<class T>() { multiply_operands_as<A, T>(s, args, e); });
}

template <>
struct op_kernel<&cards::matmul> {
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    multiply_operands<A>(s, a);
  }
};
using matmul_ops = op_list<&cards::matmul>;

}  // namespace gradus
