// These kernels normalize rows. Each row is read from the first-level cache as often as is needed: for its mean, for
// its variance, and for its numbers. The gradients compute mean and variance again rather than read them.
//
// Arithmetic: mean = sum / n; variance = (sum of d^2) / n with d = x - mean. Both sums are trees, as every row sum is
// (squares and products are added by fma). x^ = d * (1 / sqrt(variance + epsilon)), and the forward result is fma(x^,
// gamma, beta). The gradients of gamma and beta are chains down the columns; dgamma is added up by fma.
#pragma once
#include "../base/build.hpp"

#include <array>
#include <bit>

#include "../ops/layer_norm.hpp"
#include "kernel.hpp"
#include "sums.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

template <class T>
struct row_statistics {
  T mean, factor;
};
// Returns the sum over a row, where f(accumulator, position, count) adds the `count` numbers from `position` on to the
// accumulator, a pack.
template <class A, class T, class F>
GRADUS_INLINE T sum_over(std::size_t n, F f) {
  using N = pack<T, A>;
  return gradus::reduce<N>(
      n, T(0),
      [&](sum_block<N> acc, std::size_t i, std::size_t k) __attribute__((always_inline)) {
        for (std::size_t j = 0; j < acc.packs && j * N::width < k; ++j) {
          const std::size_t left = k - j * N::width;
          acc.at[j] = f(acc.at[j], i + j * N::width, left < N::width ? left : N::width);
        }
        return acc;
      },
      plus{});
}
template <class N, class T>
GRADUS_INLINE N read_some(const T* p, std::size_t n, T rest = T(0)) {
  return n == N::width ? N::load(p) : N::load_partial(p, n, rest);
}
template <class N, class T>
GRADUS_INLINE void write_some(N x, T* p, std::size_t n) {
  if (n == N::width)
    x.store(p);
  else
    x.store_partial(p, n);
}
// Calls f(position, count) over a row, one register at a time.
template <class N, class F>
GRADUS_INLINE void over_row(std::size_t n, F f) {
  std::size_t j = 0;
  for (; j + N::width <= n; j += N::width) f(j, N::width);
  if (j < n) f(j, n - j);
}

template <class A, class T>
GRADUS_INLINE row_statistics<T> statistics_of(const T* x, std::size_t n, T epsilon) {
  using N = pack<T, A>;
  const T count = static_cast<T>(n), mean = sum<A>(x, n) / count;
  const N middle(mean);
  const T squares = sum_over<A, T>(
      n, [&](N acc, std::size_t i, std::size_t k) __attribute__((always_inline)) {
        const N d = read_some<N>(x + i, k, mean) - middle;  // lanes past the end are 0
        return fma(d, d, acc);
      });
  return {mean, (lane<T, A>(T(1)) / sqrt(lane<T, A>(squares / count) + lane<T, A>(epsilon))).v};
}
template <class T, class S>
T layer_norm_epsilon(const S& s) {
  return static_cast<T>(std::bit_cast<double>(std::array<int, 2>{s.raw(2), s.raw(3)}));
}

}  // namespace detail

template <>
struct op_kernel<&cards::layer_norm> {
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      using N = detail::pack<T, A>;
      const auto n = static_cast<std::size_t>(s.dim(1));
      const T epsilon = detail::layer_norm_epsilon<T>(s);
      const bool scales = s.raw(4) != 0, centers = s.raw(5) != 0;
      const T *gamma = scales ? at<const T>(a, 2) : nullptr, *beta = centers ? at<const T>(a, scales ? 3 : 2) : nullptr;
      const index_range mine = s.share(s.dim(0));
      for (std::int64_t row = mine.first; row < mine.last; ++row) {
        const T* x = at<const T>(a, 1) + row * s.dim(1);
        T* y = at<T>(a, 0) + row * s.dim(1);
        const auto stats = detail::statistics_of<A>(x, n, epsilon);
        const N mean(stats.mean), factor(stats.factor);
        const auto sweep = [&]<bool Scales, bool Centers>() __attribute__((always_inline)) {
          detail::over_row<N>(
              n, [&](std::size_t j, std::size_t k) __attribute__((always_inline)) {
                N v = (detail::read_some<N>(x + j, k) - mean) * factor;
                if constexpr (Scales && Centers)
                  v = fma(v, detail::read_some<N>(gamma + j, k), detail::read_some<N>(beta + j, k));
                else if constexpr (Scales)
                  v = v * detail::read_some<N>(gamma + j, k);
                else if constexpr (Centers)
                  v = v + detail::read_some<N>(beta + j, k);
                detail::write_some(v, y + j, k);
              });
        };
        if (scales)
          centers ? sweep.template operator()<true, true>() : sweep.template operator()<true, false>();
        else
          centers ? sweep.template operator()<false, true>() : sweep.template operator()<false, false>();
      }
    });
  }
};

// Computes dx = factor (g - mean(g) - x^ mean(g x^)) with g = dy gamma.
template <>
struct op_kernel<&cards::layer_norm_grad> {
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      if (s.raw(4) != 0)
        rows<A, T, true>(s, a);
      else
        rows<A, T, false>(s, a);
    });
  }

private:
  template <class A, class T, bool Scales, class S>
  static void rows(const S& s, std::byte* const* a) {
    using N = detail::pack<T, A>;
    const auto n = static_cast<std::size_t>(s.dim(1));
    const T epsilon = detail::layer_norm_epsilon<T>(s), count = static_cast<T>(n);
    const index_range mine = s.share(s.dim(0));
    for (std::int64_t row = mine.first; row < mine.last; ++row) {
      const T *x = at<const T>(a, 1) + row * s.dim(1), *dy = at<const T>(a, 2) + row * s.dim(1);
      const auto stats = detail::statistics_of<A>(x, n, epsilon);
      const N mean(stats.mean), factor(stats.factor);
      const auto g = [&](std::size_t j, std::size_t k) __attribute__((always_inline)) {
        const N d = detail::read_some<N>(dy + j, k);
        if constexpr (Scales)
          return d * detail::read_some<N>(at<const T>(a, 3) + j, k);
        else
          return d;
      };
      const auto normal = [&](std::size_t j, std::size_t k) __attribute__((always_inline)) {
        return (detail::read_some<N>(x + j, k) - mean) * factor;
      };
      const N mean_g(
          detail::sum_over<A, T>(
              n, [&](N acc, std::size_t j, std::size_t k) __attribute__((always_inline)) { return acc + g(j, k); }) /
          count);
      const N mean_gx(detail::sum_over<A, T>(
                          n, [&](N acc, std::size_t j, std::size_t k)
                                 __attribute__((always_inline)) { return fma(g(j, k), normal(j, k), acc); }) /
                      count);
      T* dx = at<T>(a, 0) + row * s.dim(1);
      detail::over_row<N>(
          n, [&](std::size_t j, std::size_t k) __attribute__((always_inline)) {
            detail::write_some(((g(j, k) - mean_g) - normal(j, k) * mean_gx) * factor, dx + j, k);
          });
    }
  }
};

// Computes dgamma = sum of dy x^ and dbeta = sum of dy, down the rows.
template <>
struct op_kernel<&cards::layer_norm_grads> {
  static constexpr bool divides = true;
  template <class A, class S>
  static void run(const S& s, std::byte* const* a) {
    dispatch_type<0, float, double>(s, [&]<class T>() {
      using N = detail::pack<T, A>;
      const std::int64_t n = s.dim(1);
      const T epsilon = detail::layer_norm_epsilon<T>(s);
      const index_range mine = s.share(n, 64);
      const auto width = static_cast<std::size_t>(mine.last - mine.first);
      T *dgamma = at<T>(a, 0) + mine.first, *dbeta = dgamma + n;
      for (std::size_t j = 0; j < width; ++j) dgamma[j] = dbeta[j] = T(0);
      if (width == 0) return;
      for (std::int64_t row = 0; row < s.dim(0); ++row) {
        const T* x = at<const T>(a, 1) + row * n;
        const auto stats = detail::statistics_of<A>(x, static_cast<std::size_t>(n), epsilon);
        const N mean(stats.mean), factor(stats.factor);
        x += mine.first;
        const T* dy = at<const T>(a, 2) + row * n + mine.first;
        detail::over_row<N>(
            width, [&](std::size_t j, std::size_t k) __attribute__((always_inline)) {
              const N d = detail::read_some<N>(dy + j, k), v = (detail::read_some<N>(x + j, k) - mean) * factor;
              detail::write_some(fma(d, v, detail::read_some<N>(dgamma + j, k)), dgamma + j, k);
              detail::write_some(detail::read_some<N>(dbeta + j, k) + d, dbeta + j, k);
            });
      }
    });
  }
};
using layer_norm_ops = op_list<&cards::layer_norm, &cards::layer_norm_grad, &cards::layer_norm_grads>;

}  // namespace gradus
