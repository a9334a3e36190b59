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
  // These are the rows of the matrix that are added at a time, for chains and for trees, and the registers of each: 256
  // bytes of two rows, or 64 of four or eight.
  static constexpr bool has_wide = sizeof(T) * N::width == 64;
  static constexpr int rows = has_wide ? 2 : 4, tree_rows = has_wide ? 2 : 8, registers = has_wide ? 4 : 2;

  // Computes to[q] = to[q] + x[0] y[q] + x[step] y[stride + q] + ... of Rows rows, q < n, from 0 where `first`. The
  // rows that come next lie `ahead` further. Numbers behind the last whole register are added in a register at `rest`,
  // because a part of one is slow to read back.
  template <int Rows, bool Next = false>
  [[gnu::noinline]] static void add_rows(T* to, T* rest, std::int64_t n, const T* x, std::int64_t step, const T* y,
                                         std::int64_t stride, std::int64_t ahead, bool first) {
    N by[std::size_t{Rows}];
    const T* row[std::size_t{Rows}];
    for (int r = 0; r < Rows; ++r) by[r] = N(x[r * step]), row[r] = y + r * stride;
    std::int64_t q = 0;
    for (; q + registers * width <= n; q += registers * width) {
      N sums[std::size_t{registers}];
      for (int i = 0; i < registers; ++i) sums[i] = first ? N(T(0)) : N::load(to + q + i * width);
      for (int r = 0; r < Rows; ++r) {
        if constexpr (Next && !has_wide) __builtin_prefetch(row[r] + q + ahead);
        for (int i = 0; i < registers; ++i) sums[i] = fma(by[r], N::load(row[r] + q + i * width), sums[i]);
      }
      for (int i = 0; i < registers; ++i) sums[i].store(to + q + i * width);
    }
    for (; q + width <= n; q += width) {
      N sum = first ? N(T(0)) : N::load(to + q);
      for (int r = 0; r < Rows; ++r) sum = fma(by[r], N::load(row[r] + q), sum);
      sum.store(to + q);
    }
    if (q < n) {
      const auto some = static_cast<std::size_t>(n - q);
      N sum = first ? N(T(0)) : N::load(rest);
      for (int r = 0; r < Rows; ++r) sum = fma(by[r], load_first<N>(row[r] + q, some), sum);
      sum.store(rest);
    }
  }

  // Returns whether the chains of a single row are better computed along the rows of the matrix than in registers.
  static bool fits_chains(const matrix_product<T>& g) {
    return g.m == 1 && !g.b.transposed && g.n > (has_wide ? 4 : 24) * width && g.n % (8 * width) != 0;
  }
  // Computes chains of at most most_terms terms, of `results` rows of x at a time: the rows of x and of the result lie
  // `row` and `to_row` apart.
  static constexpr std::int64_t most_terms = 3, results = has_wide ? 4 : 2;
  static void few_terms(T* to, std::int64_t to_row, std::int64_t n, const T* x, std::int64_t row, std::int64_t step,
                        const T* y, std::int64_t stride, std::int64_t k) {
    switch (k) {
    case 1: return terms<1>(to, to_row, n, x, row, step, y, stride);
    case 2: return terms<2>(to, to_row, n, x, row, step, y, stride);
    default: return terms<3>(to, to_row, n, x, row, step, y, stride);
    }
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

  // Computes all the trees of a column, or of a row of op(b) transposed: put(sum, row, column).
  template <class Put>
  static void trees(const matrix_product<T>& g, const Put& put) {
    const bool column = g.n == 1 && (g.b.transposed || g.b.stride == 1),
               along = column ? !g.a.transposed : g.b.transposed;
    const matrix_operand<T>& y = column ? g.a : g.b;
    const T* const x = column ? g.b.at : g.a.at;
    const std::int64_t sums = column ? g.m : g.n, parts = (sums + most_trees - 1) / most_trees;
    const std::int64_t most = along ? width : ((sums + parts - 1) / parts + width - 1) / width * width;
    alignas(64) T some[static_cast<std::size_t>(most_trees)];
    for (std::int64_t i = 0; i < sums; i += most) {
      const std::int64_t count = sums - i < most ? sums - i : most;
      if (along)
        trees_along(some, count, x, y.at + i * y.stride, y.stride, g.k);
      else
        trees_across(some, count, x, 1, y.at + i, y.stride, g.k);
      for (std::int64_t r = 0; r < count; ++r) put(some[r], column ? i + r : 0, column ? 0 : i + r);
    }
  }

private:
  template <int Terms>
  [[gnu::noinline]] static void terms(T* to, std::int64_t to_row, std::int64_t n, const T* x, std::int64_t row,
                                      std::int64_t step, const T* y, std::int64_t stride) {
    N by[std::size_t{results}][std::size_t{Terms}];
    for (std::int64_t h = 0; h < results; ++h)
      for (int p = 0; p < Terms; ++p) by[h][p] = N(x[h * row + p * step]);
    const auto some = [&]<int Registers>(std::int64_t q, auto load, auto store) __attribute__((always_inline)) {
      N sums[std::size_t{results}][std::size_t{Registers}];
      for (auto& of_row : sums)
        for (N& sum : of_row) sum = N(T(0));
      for (int p = 0; p < Terms; ++p)
        for (int i = 0; i < Registers; ++i) {
          const N from = load(y + p * stride + q + i * width);
          for (std::int64_t h = 0; h < results; ++h) sums[h][i] = fma(by[h][p], from, sums[h][i]);
        }
      for (std::int64_t h = 0; h < results; ++h)
        for (int i = 0; i < Registers; ++i) store(sums[h][i], to + h * to_row + q + i * width);
    };
    const auto load = [](const T* from) __attribute__((always_inline)) { return N::load(from); };
    const auto store = [](N sum, T * at) __attribute__((always_inline)) { sum.store(at); };
    std::int64_t q = 0;
    for (; q + 2 * width <= n; q += 2 * width) some.template operator()<2>(q, load, store);
    if (q + width <= n) some.template operator()<1>(q, load, store), q += width;
    if (const auto rest = static_cast<std::size_t>(n - q); rest > 0)
      some.template operator()<1>(
          q, [&](const T* from) __attribute__((always_inline)) { return N::load_partial(from, rest); },
          [&](N sum, T * at) __attribute__((always_inline)) { sum.store_partial(at, rest); });
  }
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
  alignas(64) T rest[N::width];
  std::int64_t p = 0;
  for (; p + rows <= k; p += rows)
    add_rows<rows, true>(to, rest, n, x + p * step, step, y + p * stride, stride, rows * stride, p == 0);
  for (; p < k; ++p) add_rows<1>(to, rest, n, x + p * step, step, y + p * stride, stride, 0, p == 0);
  if (const std::int64_t whole = n / width * width; whole < n)
    N::load(rest).store_partial(to + whole, static_cast<std::size_t>(n - whole));
}

template <class T, class A>
void vector_products<T, A>::trees_across(T* to, std::int64_t n, const T* x, std::int64_t step, const T* y,
                                         std::int64_t stride, std::int64_t k) {
  constexpr auto run = static_cast<std::int64_t>(reduction_chunk);
  alignas(64) T lane[std::size_t{block}][static_cast<std::size_t>(most_trees)];
  for (std::int64_t p0 = 0; p0 < k; p0 += run) {
    const std::int64_t p1 = k - p0 < run ? k : p0 + run;
    std::int64_t p = p0;
    const auto add = [&]<int Rows>(std::int64_t c) {
      add_rows<Rows, (Rows > 2)>(lane[c], lane[c] + n / width * width, n, x + (p + c) * step, block * step,
                                 y + (p + c) * stride, block * stride, stride, p == p0);
    };
    for (; p1 - p > (has_wide ? 4 : tree_rows) * block; p += tree_rows * block)
      for (std::int64_t c = 0; c < block; ++c) add.template operator()<tree_rows>(c);
    for (; p < p1; p += 4 * block)
      for (std::int64_t c = 0; c < block && c < p1 - p; ++c) switch ((p1 - p - c + block - 1) / block) {
        case 1: add.template operator()<1>(c); break;
        case 2: add.template operator()<2>(c); break;
        case 3: add.template operator()<3>(c); break;
        default: add.template operator()<4>(c);
        }
    const std::int64_t rest = (p1 - p0) % block;
    for (std::int64_t q = 0; q < n; q += width) {
      N sum[std::size_t{block}];
      for (int c = 0; c < block; ++c) {
        sum[c] = N::load(lane[c] + q);
        // The last block is padded with zeros.
        if (rest > 0 && c >= rest) sum[c] = p1 - p0 < block ? N(T(0)) : sum[c] + N(T(0));
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
