// compiled with: -O3 -march=native
#include <gradus/cpu/vector_products.hpp>

#include <doctest/doctest.h>

#include <gradus/base/random.hpp>
#include <gradus/cpu/matmul.hpp>

#include "../sanitized.hpp"

#include <cstring>
#include <vector>

using namespace gradus;

namespace {
template <class T>
std::vector<T> numbers(std::int64_t n, random_stream& r) {
  std::vector<T> v(static_cast<std::size_t>(n));
  for (T& x : v) x = static_cast<T>(r.below(20001)) / T(7000) - T(1.4);
  return v;
}
// The sum of x[p] y[p], p < k, as docs/arithmetic.md has it: sixteen lanes, or one chain.
template <class T>
T tree_of(std::int64_t k, auto x, auto y) {
  using one = detail::lane<T, fast>;
  one total(T(0));
  for (std::int64_t p0 = 0; p0 < k; p0 += 4096) {
    one lanes[16];
    for (one& l : lanes) l = one(T(0));
    const std::int64_t end = (std::min(k - p0, std::int64_t{4096}) + 15) / 16 * 16;
    for (std::int64_t p = 0; p < end; ++p)
      lanes[p % 16] = fma(one(p0 + p < k ? x(p0 + p) : T(0)), one(p0 + p < k ? y(p0 + p) : T(0)), lanes[p % 16]);
    for (int half = 8; half > 0; half /= 2)
      for (int l = 0; l < half; ++l) lanes[l] = lanes[l] + lanes[l + half];
    total = p0 == 0 ? lanes[0] : total + lanes[0];
  }
  return total.v;
}
template <class T>
T chain_of(std::int64_t k, auto x, auto y) {
  detail::lane<T, fast> sum(T(0));
  for (std::int64_t p = 0; p < k; ++p) sum = fma(detail::lane<T, fast>(x(p)), detail::lane<T, fast>(y(p)), sum);
  return sum.v;
}
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// A row or a column, by each function and as a product; the matrix has some numbers more in each row.
template <class T>
void check(std::int64_t k, std::int64_t n, random_stream& r) {
  using vectors = detail::vector_products<T, fast>;
  if constexpr (vectors::possible) {
    const std::int64_t step = 3;
    const auto x = numbers<T>(k * step, r), across = numbers<T>(k * (n + 5), r), along = numbers<T>(n * (k + 5), r);
    const auto size = static_cast<std::size_t>(n);
    std::vector<T> got(size + 1, T(-77)), want(size + 1, T(-77));
    const auto every = [&](auto f) {
      for (std::int64_t q = 0; q < n; ++q) want[static_cast<std::size_t>(q)] = f(q);
    };
    const auto of_x = [&](std::int64_t p) { return x[static_cast<std::size_t>(p * step)]; };
    const auto down = [&](std::int64_t q) {
      return [&, q](std::int64_t p) { return across[static_cast<std::size_t>(p * (n + 5) + q)]; };
    };
    vectors::chains(got.data(), n, x.data(), step, across.data(), n + 5, k);
    every([&](std::int64_t q) { return chain_of<T>(k, of_x, down(q)); });
    CHECK(same_bits(got, want));
    if (n <= vectors::most_trees) {
      vectors::trees_across(got.data(), n, x.data(), step, across.data(), n + 5, k);
      every([&](std::int64_t q) { return tree_of<T>(k, of_x, down(q)); });
      CHECK(same_bits(got, want));
    }
    if (n <= vectors::width) {
      vectors::trees_along(got.data(), n, x.data(), along.data(), k + 5, k);
      every([&](std::int64_t q) {
        return tree_of<T>(
            k, [&](std::int64_t p) { return x[static_cast<std::size_t>(p)]; },
            [&](std::int64_t p) { return along[static_cast<std::size_t>(q * (k + 5) + p)]; });
      });
      CHECK(same_bits(got, want));
    }
  }
}
// The product of [m, k] and [k, 1], or of [1, k] and [k, m], a matrix of either order.
template <class T>
void check_product(std::int64_t m, std::int64_t k, bool column, bool turned, random_stream& r) {
  const auto matrix = numbers<T>(m * k, r), x = numbers<T>(k, r);
  std::vector<T> got(static_cast<std::size_t>(m), T(-77)), want = got;
  const bool along = column != turned;  // whether the numbers of a sum are adjacent
  for (std::int64_t i = 0; i < m; ++i) {
    const auto a = [&](std::int64_t p) { return matrix[static_cast<std::size_t>(along ? i * k + p : p * m + i)]; };
    const auto b = [&](std::int64_t p) { return x[static_cast<std::size_t>(p)]; };
    const bool tree = k >= 8 && (column || m <= 16);
    want[static_cast<std::size_t>(i)] = tree ? tree_of<T>(k, b, a) : chain_of<T>(k, b, a);
  }
  const auto bytes = [](const std::vector<T>& v) {
    return const_cast<std::byte*>(reinterpret_cast<const std::byte*>(v.data()));
  };
  std::byte* args[] = {bytes(got), bytes(column ? matrix : x), bytes(column ? x : matrix)};
  const int rows = column ? static_cast<int>(m) : 1, columns = column ? 1 : static_cast<int>(m);
  const detail::signature what{&cards::matmul,
                               {dtype_of<T>, dtype_of<T>, dtype_of<T>},
                               {1, rows, static_cast<int>(k), columns, column && turned, !column && turned},
                               {}};
  op_kernel<&cards::matmul>::run<fast>(detail::dynamic{1, 1, 0, 1, what}, args);
  CHECK(same_bits(got, want));
}
}  // namespace

TEST_CASE("chains and trees of a matrix and a vector have the bits of the page, whatever the extents") {
  random_stream r{5, 0};
  for (const std::int64_t n : {1, 3, 7, 8, 15, 16, 17, 40, 64, 77, 127, 129, 256, 300})
    for (const std::int64_t k : {1, 2, 5, 15, 16, 17, 31, 33, 64, 100, 131}) {
      if (is_sanitized && n * k > 4000) continue;
      check<float>(k, n, r), check<double>(k, n, r);
    }
}

TEST_CASE("sums of more than one run of 4096 terms") {
  random_stream r{6, 0};
  for (const std::int64_t k : {4095, 4096, 4097, 8200}) check<float>(k, 9, r), check<double>(k, 3, r);
}

TEST_CASE("negative zeros end as the page has it: the padded last block adds +0") {
  using vectors = detail::vector_products<float, fast>;
  if constexpr (vectors::possible) {
    // A product that underflows to -0 leaves -0 in a lane that starts from +0 only where the machine flushes; where it
    // does not, these are zeros of either sign.
    for (const std::int64_t k : {8, 16, 17, 40}) {
      const std::vector<float> x(static_cast<std::size_t>(k), -0.0f), y(static_cast<std::size_t>(k * 8), 1.0f);
      std::vector<float> got(8, 1.0f), want(8, 0.0f);
      vectors::trees_across(got.data(), 8, x.data(), 1, y.data(), 8, k);
      CHECK(same_bits(got, want));
      vectors::trees_along(got.data(), std::min(vectors::width, std::int64_t{8}), x.data(), y.data(), k, k);
      CHECK(same_bits(got, want));
    }
  }
}

TEST_CASE("products of a single row or column, in both orders, by the kernel") {
  random_stream r{8, 0};
  for (const std::int64_t m : {1, 2, 15, 16, 17, 33, 130, 300})
    for (const std::int64_t k : {7, 8, 20, 64, 99})
      for (const bool column : {false, true})
        for (const bool turned : {false, true}) {
          check_product<float>(m, k, column, turned, r);
          if (m < 100) check_product<double>(m, k, column, turned, r);
        }
}
