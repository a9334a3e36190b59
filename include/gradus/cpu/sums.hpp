// This header has sums and maxima with one order everywhere, which depends on how many numbers there are, not on the
// machine's registers. docs/arithmetic.md describes the tree.
#pragma once
#include "../base/build.hpp"

#include <cstddef>
#include <limits>
#include <utility>

#include "number.hpp"

namespace gradus::inline GRADUS_BUILD {

// This holds the sixteen lanes that sums run on, however many numbers a register holds: lane j adds up x[j], x[j + 16],
// ... and the lanes are then added in halves: j and j + 8, j and j + 4, j and j + 2, 0 and 1.
template <class N>
struct sum_block {
  static constexpr std::size_t lanes = 16, packs = lanes / N::width;
  static_assert(lanes % N::width == 0, "gradus: a register holds more than 16 numbers; give sum_block more lanes");
  using T = typename N::value_type;

  N at[packs];

  static GRADUS_INLINE sum_block fill(T x) {
    sum_block b;
    for (std::size_t i = 0; i < packs; ++i) b.at[i] = N(x);
    return b;
  }
  static GRADUS_INLINE sum_block load(const T* p) {
    sum_block b;
    for (std::size_t i = 0; i < packs; ++i) b.at[i] = N::load(p + i * N::width);
    return b;
  }
  static GRADUS_INLINE sum_block load_partial(const T* p, std::size_t n, T rest = T(0)) {
    sum_block b;
    for (std::size_t i = 0; i < packs; ++i)
      b.at[i] = i * N::width < n ? N::load_partial(p + i * N::width, n - i * N::width, rest) : N(rest);
    return b;
  }
  // Returns the tree over the lanes with any operation on two numbers.
  template <class Operation>
  GRADUS_INLINE T fold(Operation op) const {
    N half[packs];
    for (std::size_t i = 0; i < packs; ++i) half[i] = at[i];
    std::size_t left = packs;
    for (; left > 1; left /= 2)
      for (std::size_t i = 0; i < left / 2; ++i) half[i] = op(half[i], half[i + left / 2]);
#if GRADUS_SIMD && GRADUS_SHUFFLES
    if constexpr (N::width > 1) return halve<N::width / 2>(half[0], op).first();
#endif
    alignas(64) T last[N::width];
    half[0].store(last);
    using one = detail::lane<T, typename N::policy>;
    for (std::size_t n = N::width / 2; n >= 1; n /= 2)
      for (std::size_t i = 0; i < n; ++i) last[i] = op(one(last[i]), one(last[i + n])).v;
    return last[0];
  }

private:
#if GRADUS_SIMD && GRADUS_SHUFFLES
  template <std::size_t Left, class Operation>
  static GRADUS_INLINE N halve(N x, Operation op) {
    const N y = op(x, N(typename N::batch(simd::rotated<Left>(x.raw(), std::make_index_sequence<N::width>{}))));
    if constexpr (Left > 1)
      return halve<Left / 2>(y, op);
    else
      return y;
  }
#endif
};

// `reduce` goes over n elements: `step(accumulator, position, count)` adds 16 elements (or fewer at the end) into a
// block, and the blocks of 4096 elements each are combined in order. So the tree depends on n alone.
inline constexpr std::size_t reduction_chunk = 4096;

template <class N, class Step, class Operation>
GRADUS_INLINE typename N::value_type reduce(std::size_t n, typename N::value_type zero, Step step, Operation op) {
  using one = detail::lane<typename N::value_type, typename N::policy>;
  one total(zero);
  std::size_t i = 0;
  do {
    auto acc = sum_block<N>::fill(zero);
    const std::size_t end = n - i < reduction_chunk ? n : i + reduction_chunk;
    for (; i + 16 <= end; i += 16) acc = step(acc, i, std::size_t{16});
    if (i < end) acc = step(acc, i, end - i);
    i = end;
    const one part(acc.fold(op));
    total = i <= reduction_chunk ? part : op(total, part);
  } while (i < n);
  return total.v;
}

namespace detail {
template <class N, class T>
GRADUS_INLINE sum_block<N> sixteen(const T* x, std::size_t n, T rest = T(0)) {
  return n == 16 ? sum_block<N>::load(x) : sum_block<N>::load_partial(x, n, rest);
}
struct plus {
  GRADUS_INLINE auto operator()(auto a, auto b) const { return a + b; }
};
struct larger {
  GRADUS_INLINE auto operator()(auto a, auto b) const { return max(a, b); }
};
}  // namespace detail

template <class A, class T, class N = detail::pack<T, A>>
T sum(const T* x, std::size_t n) {
  return reduce<N>(
      n, T(0),
      [x](sum_block<N> acc, std::size_t i, std::size_t k) {
        const auto b = detail::sixteen<N>(x + i, k);
        for (std::size_t j = 0; j < acc.packs; ++j) acc.at[j] = acc.at[j] + b.at[j];
        return acc;
      },
      detail::plus{});
}
template <class A, class T, class N = detail::pack<T, A>>
T dot(const T* x, const T* y, std::size_t n) {
  return reduce<N>(
      n, T(0),
      [x, y](sum_block<N> acc, std::size_t i, std::size_t k) {
        const auto b = detail::sixteen<N>(x + i, k), c = detail::sixteen<N>(y + i, k);
        for (std::size_t j = 0; j < acc.packs; ++j) acc.at[j] = fma(b.at[j], c.at[j], acc.at[j]);
        return acc;
      },
      detail::plus{});
}
template <class A, class T, class N = detail::pack<T, A>>
T sum_of_squares(const T* x, std::size_t n) {
  return dot<A, T, N>(x, x, n);
}
// Returns the maximum, -inf for no numbers. A NaN is passed over or kept depending on its position; the position alone
// decides.
template <class A, class T, class N = detail::pack<T, A>>
T maximum(const T* x, std::size_t n) {
  constexpr T least = -std::numeric_limits<T>::infinity();
  return reduce<N>(
      n, least,
      [x](sum_block<N> acc, std::size_t i, std::size_t k) {
        const auto b = detail::sixteen<N>(x + i, k, least);
        for (std::size_t j = 0; j < acc.packs; ++j) acc.at[j] = max(acc.at[j], b.at[j]);
        return acc;
      },
      detail::larger{});
}

}  // namespace gradus
