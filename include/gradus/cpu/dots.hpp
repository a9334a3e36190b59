// These are matrix products of so few elements that chains over k would leave the machine waiting. Their elements are
// trees of `dot` instead.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <utility>

#include "sums.hpp"
#include "tile.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

// Returns whether the elements of [m, k] x [k, n] are trees. The extents are those of the whole product, not of a part.
constexpr bool sums_are_dots(std::int64_t m, std::int64_t k, std::int64_t n) {
  return k >= 8 && (n == 1 || (m == 1 && n <= 16));
}

// Returns the sums over k of x[p * step] y[p * stride + q], for the first `count` places q; each is the tree of `dot`.
template <class N, class T, int... C>
GRADUS_INLINE N dots(const T* x, std::int64_t step, const T* y, std::int64_t stride, std::int64_t k, std::size_t count,
                     std::integer_sequence<int, C...>) {
  static_assert(sizeof...(C) == sum_block<N>::lanes);
  constexpr auto run = static_cast<std::int64_t>(reduction_chunk);
  N total(T(0));
  for (std::int64_t p0 = 0; p0 < k; p0 += run) {
    const std::int64_t p1 = k - p0 < run ? k : p0 + run;
    N chain[sizeof...(C)];
    for (N& c : chain) c = N(T(0));
    const auto added = [&](N to, std::int64_t p) __attribute__((always_inline)) {
      const T* from = y + p * stride;
      return fma(N(x[p * step]), !reads_parts<N> || count == N::width ? N::load(from) : N::load_partial(from, count),
                 to);
    };
    std::int64_t p = p0;
    for (; p + 16 <= p1; p += 16) ((chain[C] = added(chain[C], p + C)), ...);
    if (p < p1) ((chain[C] = p + C < p1 ? added(chain[C], p + C) : chain[C] + N(T(0))), ...);  // padded with zeros
    const auto join = [&](int half) __attribute__((always_inline)) {
      ((C < half ? void(chain[C] = chain[C] + chain[(C + half) % 16]) : void()), ...);
    };
    join(8), join(4), join(2), join(1);
    total = p0 == 0 ? chain[0] : total + chain[0];
  }
  return total;
}

}  // namespace detail

}  // namespace gradus
