// A tensor of a graph as numbers, run by an interpreted session; and operands to draw.
#pragma once
#include <gradus/cpu/device.hpp>
#include <gradus/run/session.hpp>

#include <cmath>
#include <vector>

namespace ops_test {
using namespace gradus;

template <class T>
std::vector<T> compute(graph& g, value y, std::initializer_list<feed> feeds = {}) {
  session s{g};
  s.initialize(3);
  const const_tensor_view v = s.run(y, feeds);
  REQUIRE(v.type == dtype_of<T>);
  const auto numbers = v.as<T>();
  return {numbers.begin(), numbers.end()};
}
struct draw {
  std::uint32_t state = 1;
  std::uint32_t below(std::uint32_t n) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
  }
  template <class T>
  std::vector<T> between(double low, double high, std::size_t n) {
    std::vector<T> v(n);
    for (auto& x : v) x = static_cast<T>(low + (high - low) * below(100001) / 100000.0);
    return v;
  }
};
// Equal, or near relative to the larger of 1 and the expected; NaN and infinities are equal to themselves.
inline bool near(double got, double want, double tolerance) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  return std::fabs(got - want) <= tolerance * std::fmax(1, std::fabs(want));
}
}  // namespace ops_test
