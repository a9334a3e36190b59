// These are the formulas of ops/precision.hpp on numbers. They give the bits of base/half.hpp's conversion there and
// back.
#pragma once
#include "../ops/precision.hpp"
#include "elementwise.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

constexpr double power_of_two(int n) { return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + n) << 52); }

// Returns x rounded to `Mantissa` bits after the point and to the exponents that `Exponent` bits hold.
template <int Exponent, int Mantissa, number N>
GRADUS_INLINE N reduce_precision(N x) {
  using T = typename N::value_type;
  using word = typename N::word;
  using words = typename N::words;
  constexpr int own = is_double<N> ? 52 : 23, drop = own - Mantissa, bias = (1 << (Exponent - 1)) - 1;
  const words odd = (x.bits() >> drop) & words(word{1});
  const words up = x.bits() + words((word{1} << (drop - 1)) - 1) + odd;  // a carry goes into the exponent
  N y = N::from(up & words(static_cast<word>(~((word{1} << drop) - 1))));
  if constexpr (is_double<N> || Exponent < 8) {
    constexpr T infinite = std::numeric_limits<T>::infinity(), normal = static_cast<T>(power_of_two(1 - bias));
    constexpr T largest = static_cast<T>((2 - power_of_two(-Mantissa)) * power_of_two(bias));
    constexpr T last_place = static_cast<T>(power_of_two(1 - bias - Mantissa + own));  // ulp = the subnormals' step
    const N a = abs(x), step(last_place);
    y = select(a < N(normal), copysign((a + step) - step, x), y);
    y = select(abs(y) > N(largest), copysign(N(infinite), x), y);
  }
  return select(x != x, x, y);
}

}  // namespace detail

template <>
struct formula<&cards::reduce_precision_bfloat16> {
  template <class N>
  static GRADUS_INLINE N at(N x) {
    return detail::reduce_precision<8, 7>(x);
  }
};
template <>
struct formula<&cards::reduce_precision_float16> {
  template <class N>
  static GRADUS_INLINE N at(N x) {
    return detail::reduce_precision<5, 10>(x);
  }
};

using precision_ops = op_list<&cards::reduce_precision_bfloat16, &cards::reduce_precision_float16>;

}  // namespace gradus
