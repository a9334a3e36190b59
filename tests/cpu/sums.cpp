// compiled with: -O3 -march=native
#include <gradus/cpu/sums.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gradus/base/random.hpp>
#include <vector>

using namespace gradus;

namespace {
template <class T>
std::vector<T> random_numbers(std::size_t n, std::uint64_t seed) {
  std::vector<T> x(n);
  random_stream r{seed, 0};
  for (auto& v : x) v = static_cast<T>(std::ldexp(2 * r.uniform() - 1, static_cast<int>(r.below(30)) - 15));
  return x;
}
// Equal bits, or NaN both.
template <class T>
bool same(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0 || (std::isnan(a) && std::isnan(b));
}
// The tree of docs/arithmetic.md, as plainly as it can be written.
template <class T>
T plain_sum(const std::vector<T>& x) {
  T total = 0;
  for (std::size_t begin = 0; begin < x.size(); begin += 4096) {
    T at[16] = {};
    for (std::size_t i = begin; i < std::min(x.size(), begin + 4096); ++i) at[i % 16] += x[i];
    for (std::size_t half : {8u, 4u, 2u, 1u})
      for (std::size_t j = 0; j < half; ++j) at[j] += at[j + half];
    total = begin == 0 ? at[0] : total + at[0];
  }
  return total;
}
}  // namespace

TEST_CASE("sums are the tree that docs/arithmetic.md draws, at every width") {
  const auto check = []<class T>(T) {
    for (std::size_t n : {0u, 1u, 2u, 15u, 16u, 17u, 100u, 4095u, 4096u, 4097u, 4113u, 20000u}) {
      const auto x = random_numbers<T>(n, n), y = random_numbers<T>(n, n + 1);
      std::vector<T> products(n);
      for (std::size_t i = 0; i < n; ++i) products[i] = x[i] * y[i];
      INFO(n);
      CHECK(same(sum<fast>(x.data(), n), plain_sum(x)));
      CHECK(same(sum<fast, T, detail::lane<T, fast>>(x.data(), n), plain_sum(x)));
      CHECK(same(dot<portable>(x.data(), y.data(), n), plain_sum(products)));
      CHECK(same(dot<portable, T, detail::lane<T, portable>>(x.data(), y.data(), n), plain_sum(products)));
      CHECK(same(dot<fast>(x.data(), y.data(), n), dot<fast, T, detail::lane<T, fast>>(x.data(), y.data(), n)));
      CHECK(same(sum_of_squares<fast>(x.data(), n), sum_of_squares<fast, T, detail::lane<T, fast>>(x.data(), n)));
      T largest = -std::numeric_limits<T>::infinity();
      for (const T v : x) largest = std::max(largest, v);
      CHECK(maximum<fast>(x.data(), n) == largest);
      CHECK(maximum<portable, T, detail::lane<T, portable>>(x.data(), n) == largest);
    }
  };
  check(0.0f);
  check(0.0);
}
