// This is the linear algebra for rules that step a whole matrix (update/rule.hpp), which they are given as `Math`. A
// rule knows it only as static functions on memory, so the same rule runs on any device that has them:
//
//   typename Math::template number<T>                a T with the rounding of this arithmetic (a lane)
//   Math::matmul(a, ta, b, tb, c, m, n, k)           c = op(a) op(b), dense row-major; op(a) is [m, k], op(b) [k, n]
//   Math::gram(a, ta, c, m, k)                       c = op(a) op(a)^T, [m, m], at about half the cost
//   Math::block_product(a, sa, ta, b, sb, tb, c, sc, m, n, k)    matmul with strides (numbers from row to row)
//   Math::block_subtract(...)                        c = c - op(a) op(b)
//   Math::sum_of_squares(x, n), Math::dot(x, y, n)
//   Math::rotate_rows(x, stride, n, low, high, c, s)   rotates rows (p, q) = (k + 1, k) for k = high - 1 ... low:
//                               p <- c p + s q, q <- c q - s p, in the first n columns; c and s in the order of use
//   Math::map(n, f, x...)       calls f(numbers...) per element; const arrays are read, the others read and written
//   Math::reduce(n, f, x...)    returns the sum of f(numbers...) over all elements
//
// f is generic in the number type, as a rule's step is: [&](auto g, auto& m) { ... }. Settings enter f as T and are
// converted by N(setting). Sums are the trees of docs/arithmetic.md and matrix products are its chains, so the bits
// depend on the shapes alone.
#pragma once
#include "../base/build.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "gemm.hpp"
#include "sums.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

template <class N, class T>
GRADUS_INLINE void store_first(const N& x, T* to, std::size_t n) {
  if constexpr (!std::is_const_v<T>) {
    if (n == N::width)
      x.store(to);
    else
      x.store_partial(to, n);
  }
}
// Calls f on the n <= N::width numbers at each pointer, and stores what may have changed.
template <class N, class F, class... T>
GRADUS_INLINE void map_place(F& f, std::size_t n, T*... at) {
  const auto run = [&](auto... x) {
    f(x...);
    (store_first(x, at, n), ...);
  };
  if (n == N::width)
    run(N::load(at)...);
  else
    run(N::load_partial(at, n)...);
}

}  // namespace detail

template <class A>
struct linear {
  template <class T>
  using number = detail::lane<T, A>;

  template <class T>
  static void matmul(const T* a, bool ta, const T* b, bool tb, T* c, std::int64_t m, std::int64_t n, std::int64_t k) {
    block_product(a, ta ? m : k, ta, b, tb ? k : n, tb, c, n, m, n, k);
  }
  template <class T>
  static void gram(const T* a, bool ta, T* c, std::int64_t m, std::int64_t k) {
    const std::int64_t stride = ta ? m : k;
    multiply<A, T>({a, stride, ta}, {a, stride, !ta}, c, m, m, m, k, product_into::symmetric);
  }
  template <class T>
  static void block_product(const T* a, std::int64_t sa, bool ta, const T* b, std::int64_t sb, bool tb, T* c,
                            std::int64_t sc, std::int64_t m, std::int64_t n, std::int64_t k) {
    multiply<A, T>({a, sa, ta}, {b, sb, tb}, c, sc, m, n, k);
  }
  template <class T>
  static void block_subtract(const T* a, std::int64_t sa, bool ta, const T* b, std::int64_t sb, bool tb, T* c,
                             std::int64_t sc, std::int64_t m, std::int64_t n, std::int64_t k) {
    multiply<A, T>({a, sa, ta}, {b, sb, tb}, c, sc, m, n, k, product_into::subtract);
  }

  template <class T>
  static T sum_of_squares(const T* x, std::size_t n) {
    return gradus::sum_of_squares<A>(x, n);
  }
  template <class T>
  static T dot(const T* x, const T* y, std::size_t n) {
    return gradus::dot<A>(x, y, n);
  }

  template <class T>
  static void rotate_rows(T* x, std::int64_t stride, std::int64_t n, std::int64_t low, std::int64_t high, const T* c,
                          const T* s) {
    using N = detail::pack<T, A>;
    constexpr auto width = static_cast<std::int64_t>(N::width);
    std::int64_t j = 0;
    for (; j + 4 * width <= n; j += 4 * width) {
      T* row = x + high * stride + j;
      N p[4];
      for (int i = 0; i < 4; ++i) p[i] = N::load(row + i * width);
      for (std::int64_t k = 0; k < high - low; ++k, row -= stride) {
        const N cosine(c[k]), sine(s[k]);
        for (int i = 0; i < 4; ++i) {
          const N q = N::load(row - stride + i * width);
          fma(cosine, p[i], sine * q).store(row + i * width);
          p[i] = fma(cosine, q, -(sine * p[i]));
        }
      }
      for (int i = 0; i < 4; ++i) p[i].store(row + i * width);
    }
    for (; j < n; j += width) {
      const auto left = static_cast<std::size_t>(n - j < width ? n - j : width);
      T* row = x + high * stride + j;
      N p = N::load_partial(row, left);
      for (std::int64_t k = 0; k < high - low; ++k, row -= stride) {
        const N q = N::load_partial(row - stride, left);
        fma(N(c[k]), p, N(s[k]) * q).store_partial(row, left);
        p = fma(N(c[k]), q, -(N(s[k]) * p));
      }
      p.store_partial(row, left);
    }
  }

  template <class F, class First, class... Rest>
  static void map(std::size_t n, F f, First* x, Rest*... rest) {
    using N = detail::pack<std::remove_const_t<First>, A>;
    std::size_t i = 0;
    for (; i + N::width <= n; i += N::width) detail::map_place<N>(f, N::width, x + i, rest + i...);
    if (i < n) detail::map_place<N>(f, n - i, x + i, rest + i...);
  }

  template <class F, class First, class... Rest>
  static auto reduce(std::size_t n, F f, const First* x, const Rest*... rest) {
    using N = detail::pack<First, A>;
    return gradus::reduce<N>(
        n, First(0),
        [&](sum_block<N> acc, std::size_t i, std::size_t k) {
          for (std::size_t j = 0; j < acc.packs; ++j) {
            const std::size_t at = j * N::width, left = k < at ? 0 : k - at;
            if (left >= N::width) {
              acc.at[j] = acc.at[j] + f(N::load(x + i + at), N::load(rest + i + at)...);
            } else if (left > 0) {  // f of the padding need not be 0
              alignas(64) First part[N::width];
              f(N::load_partial(x + i + at, left), N::load_partial(rest + i + at, left)...).store(part);
              acc.at[j] = acc.at[j] + N::load_partial(part, left);
            } else {
              acc.at[j] = acc.at[j] + N(First(0));  // turns -0 into 0, as adding a padded block does
            }
          }
          return acc;
        },
        detail::plus{});
  }
};

}  // namespace gradus
