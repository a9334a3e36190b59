#include <gradus/cpu/shared_products.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

using namespace gradus;

namespace {
// Small whole numbers, whose sums are exact.
template <class T>
bool is_exact(std::int64_t m, std::int64_t n, std::int64_t k) {
  const auto number = [](std::int64_t i) { return static_cast<T>((i * 7 + 3) % 11 - 5); };
  std::vector<T> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)),
      c(static_cast<std::size_t>(m * n));
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = number(static_cast<std::int64_t>(i));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = number(static_cast<std::int64_t>(i) + 5);
  const detail::matrix_product<T> g{{a.data(), k, false}, {b.data(), n, false}, c.data(), n, m, n, k};
  detail::direct_product<T, fast>{g}.template run<0, 0, true>(as_is{});
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      T sum = 0;
      for (std::int64_t p = 0; p < k; ++p)
        sum += a[static_cast<std::size_t>(i * k + p)] * b[static_cast<std::size_t>(p * n + j)];
      if (c[static_cast<std::size_t>(i * n + j)] != sum) return false;
    }
  return true;
}
}  // namespace

TEST_CASE("products whose code the library holds: every height of tiles, parts of registers, and what is packed") {
  for (std::int64_t m = 1; m <= 15; ++m)
    for (const std::int64_t n : {1, 5, 8, 16, 17, 40, 64, 131}) {
      CAPTURE(m);
      CAPTURE(n);
      CHECK(is_exact<float>(m, n, 19));
      CHECK(is_exact<double>(m, n, 19));
    }
  CHECK(is_exact<float>(130, 70, 300));
  CHECK(is_exact<double>(130, 70, 300));
}
