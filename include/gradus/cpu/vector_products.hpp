// These are products of a matrix and a vector, which is a product of a single row or a single column. The matrix is
// read once, in the order in which it lies in memory, and with several of its rows at a time, so that a sum in memory
// is read and written once for all of them.
//
// An element is one chain of fused multiply-adds over k in order, or the tree of `dot` (cpu/dots.hpp), as everywhere.
#pragma once
#include "../base/build.hpp"

#include "dots.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

template <class T, class A>
struct vector_products {
  using N = pack<T, A>;
  static constexpr auto width = static_cast<std::int64_t>(N::width);
#if GRADUS_SIMD && GRADUS_SHUFFLES
  static constexpr bool possible = N::width > 1;
#else
  static constexpr bool possible = false;
#endif
  // These are the rows of the matrix that are added at a time, and the registers of each: 256 bytes of two rows, or 64
  // of four.
  static constexpr bool has_wide = sizeof(T) * N::width == 64;
  static constexpr int rows = has_wide ? 2 : 4, registers = has_wide ? 4 : 2;

  // Computes to[q] = to[q] + x[0] y[q] + x[step] y[stride + q] + ... of Rows rows, q < n, from 0 where `first`. The
  // rows that come next lie `ahead` further.
  template <int Rows>
  [[gnu::noinline]] static void add_rows(T* to, std::int64_t n, const T* x, std::int64_t step, const T* y,
                                         std::int64_t stride, std::int64_t ahead, bool first) {
    N by[std::size_t{Rows}];
    const T* row[std::size_t{Rows}];
    for (int r = 0; r < Rows; ++r) by[r] = N(x[r * step]), row[r] = y + r * stride;
    std::int64_t q = 0;
    for (; q + registers * width <= n; q += registers * width) {
      N sums[std::size_t{registers}];
      for (int i = 0; i < registers; ++i) sums[i] = first ? N(T(0)) : N::load(to + q + i * width);
      for (int r = 0; r < Rows; ++r) {
        if constexpr (!has_wide) __builtin_prefetch(row[r] + q + ahead);
        for (int i = 0; i < registers; ++i) sums[i] = fma(by[r], N::load(row[r] + q + i * width), sums[i]);
      }
      for (int i = 0; i < registers; ++i) sums[i].store(to + q + i * width);
    }
    for (; q < n; q += width) {
      const auto some = static_cast<std::size_t>(n - q < width ? n - q : width);
      N sum = first ? N(T(0)) : N::load_partial(to + q, some);
      for (int r = 0; r < Rows; ++r) sum = fma(by[r], N::load_partial(row[r] + q, some), sum);
      sum.store_partial(to + q, some);
    }
  }

  // Returns whether the chains of a single row are better computed along the rows of the matrix than in registers.
  static bool fits_chains(const matrix_product<T>& g) {
    return g.m == 1 && !g.b.transposed && g.n > 4 * width && g.n % (8 * width) != 0;
  }
  // Computes chains: to[q] = the sum over p < k of x[p * step] y[p * stride + q], q < n; k is at least 1.
  [[gnu::noinline]] static void chains(T* to, std::int64_t n, const T* x, std::int64_t step, const T* y,
                                       std::int64_t stride, std::int64_t k);

  // Computes trees of the same sums, for n of at most most_trees.
  static constexpr std::int64_t most_trees = 1024 / static_cast<std::int64_t>(sizeof(T));
  [[gnu::noinline]] static void trees_across(T* to, std::int64_t n, const T* x, std::int64_t step, const T* y,
                                             std::int64_t stride, std::int64_t k);

  // Computes trees of rows that lie along k: to[q] = the sum over p < k of x[p] y[q * stride + p], q < n. There are at
  // most as many as a register holds.
  [[gnu::noinline]] static void trees_along(T* to, std::int64_t n, const T* x, const T* y, std::int64_t stride,
                                            std::int64_t k);

private:
  static constexpr int block = sum_block<N>::lanes, together = has_wide ? 8 : 4;
#if GRADUS_SIMD && GRADUS_SHUFFLES
  // Returns the sums of halves of runs of 2 * Half lanes, those of a before those of b.
  template <int Half>
  static GRADUS_INLINE N folded(N a, N b) {
    return [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
      constexpr int half = static_cast<int>(N::width) / 2;
      const typename N::reg x = a.raw(), y = b.raw();
      using reg = typename N::reg;
      const reg low = __builtin_shufflevector(x, y, (I / half * 2 * half + I % half / Half * 2 * Half + I % Half)...),
                high = __builtin_shufflevector(x, y,
                                               (I / half * 2 * half + I % half / Half * 2 * Half + I % Half + Half)...);
      return N(typename N::batch(low)) + N(typename N::batch(high));
    }
    (std::make_integer_sequence<int, static_cast<int>(N::width)>{});
  }
  // Returns a register whose lane r is the tree over the lanes of of[r].
  template <int Half = static_cast<int>(N::width) / 2>
  static GRADUS_INLINE N all_folded(N* of) {
    for (int r = 0; r < Half; ++r) of[r] = folded<Half>(of[2 * r], of[2 * r + 1]);
    if constexpr (Half > 1)
      return all_folded<Half / 2>(of);
    else
      return of[0];
  }
#endif
};

template <class T, class A>
void vector_products<T, A>::chains(T* to, std::int64_t n, const T* x, std::int64_t step, const T* y,
                                   std::int64_t stride, std::int64_t k) {
  std::int64_t p = 0;
  for (; p + rows <= k; p += rows)
    add_rows<rows>(to, n, x + p * step, step, y + p * stride, stride, rows * stride, p == 0);
  for (; p < k; ++p) add_rows<1>(to, n, x + p * step, step, y + p * stride, stride, 0, p == 0);
}

template <class T, class A>
void vector_products<T, A>::trees_across(T* to, std::int64_t n, const T* x, std::int64_t step, const T* y,
                                         std::int64_t stride, std::int64_t k) {
  constexpr auto run = static_cast<std::int64_t>(reduction_chunk);
  alignas(64) T lane[std::size_t{block}][static_cast<std::size_t>(most_trees)];
  for (std::int64_t p0 = 0; p0 < k; p0 += run) {
    const std::int64_t p1 = k - p0 < run ? k : p0 + run;
    const auto add = [&]<int Rows>(std::int64_t p, std::int64_t lanes) {
      for (std::int64_t c = 0; c < lanes; ++c)
        add_rows<Rows>(lane[c], n, x + (p + c) * step, block * step, y + (p + c) * stride, block * stride, stride,
                       p == p0);
    };
    std::int64_t p = p0;
    for (; p + rows * block <= p1; p += rows * block) add.template operator()<rows>(p, block);
    for (; p + block <= p1; p += block) add.template operator()<1>(p, block);
    if (p < p1) add.template operator()<1>(p, p1 - p);
    for (std::int64_t q = 0; q < n; q += width) {
      N sum[std::size_t{block}];
      for (int c = 0; c < block; ++c) {
        sum[c] = N::load(lane[c] + q);
        // The last block is padded with zeros.
        if (p < p1 && c >= p1 - p) sum[c] = p == p0 ? N(T(0)) : sum[c] + N(T(0));
      }
      for (int half = block / 2; half > 0; half /= 2)
        for (int c = 0; c < half; ++c) sum[c] = sum[c] + sum[c + half];
      const auto some = static_cast<std::size_t>(n - q < width ? n - q : width);
      (p0 == 0 ? sum[0] : N::load_partial(to + q, some) + sum[0]).store_partial(to + q, some);
    }
  }
}

template <class T, class A>
void vector_products<T, A>::trees_along([[maybe_unused]] T* to, [[maybe_unused]] std::int64_t n,
                                        [[maybe_unused]] const T* x, [[maybe_unused]] const T* y,
                                        [[maybe_unused]] std::int64_t stride, [[maybe_unused]] std::int64_t k) {
#if GRADUS_SIMD && GRADUS_SHUFFLES
  constexpr auto run = static_cast<std::int64_t>(reduction_chunk);
  N total(T(0));
  for (std::int64_t p0 = 0; p0 < k; p0 += run) {
    const std::int64_t p1 = k - p0 < run ? k : p0 + run;
    N sums[N::width];
    for (N& sum : sums) sum = N(T(0));
    for (std::int64_t first = 0; first < n; first += together) {
      const T* row[std::size_t{together}];
      for (std::int64_t r = 0; r < together; ++r) row[r] = y + (first + r < n ? first + r : n - 1) * stride;
      sum_block<N> acc[std::size_t{together}];
      for (auto& sum : acc) sum = sum_block<N>::fill(T(0));
      std::int64_t p = p0;
      const auto add = [&](auto load) __attribute__((always_inline)) {
        const sum_block<N> by = load(x + p);
        for (int r = 0; r < together; ++r) {
          const sum_block<N> some = load(row[r] + p);
          for (std::size_t i = 0; i < by.packs; ++i) acc[r].at[i] = fma(by.at[i], some.at[i], acc[r].at[i]);
        }
      };
      for (; p + block <= p1; p += block)
        add([](const T* from) __attribute__((always_inline)) { return sum_block<N>::load(from); });
      if (p < p1)
        add([&](const T* from) __attribute__((always_inline)) {
          return sum_block<N>::load_partial(from, static_cast<std::size_t>(p1 - p));
        });
      for (int r = 0; r < together; ++r) {
        for (std::size_t left = acc[r].packs / 2; left > 0; left /= 2)
          for (std::size_t i = 0; i < left; ++i) acc[r].at[i] = acc[r].at[i] + acc[r].at[i + left];
        if (first + r < width) sums[first + r] = acc[r].at[0];
      }
    }
    const N part = all_folded(sums);
    total = p0 == 0 ? part : total + part;
  }
  total.store_partial(to, static_cast<std::size_t>(n));
#endif
}

}  // namespace gradus::inline GRADUS_BUILD::detail
