#include <gradus/cpu/direct_product.hpp>

#include <doctest/doctest.h>
#include <gradus/base/random.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

// What a whole product gives, whichever way it is taken, is in matmul.cpp; here each way is called by its name.
namespace {
using namespace gradus;

// So many numbers in [-1, 1).
std::vector<float> numbers(std::int64_t n, std::uint64_t seed) {
  random_stream r{seed};
  std::vector<float> v(static_cast<std::size_t>(n));
  for (auto& x : v) x = static_cast<float>(2 * r.uniform() - 1);
  return v;
}

struct product {
  std::int64_t m, k, n;
  bool ta, tb;
  std::vector<float> a = numbers(m * k, 1), b = numbers(k * n, 2),
                     c = std::vector<float>(static_cast<std::size_t>(m * n), -7);

  detail::matrix_product<float> work() {
    return {{a.data(), ta ? m : k, ta}, {b.data(), tb ? k : n, tb}, c.data(), n, m, n, k};
  }
  // In doubles, and how far float32 may be from it.
  bool is_near() const {
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t p = 0; p < k; ++p)
          sum += double{a[static_cast<std::size_t>(ta ? p * m + i : i * k + p)]} *
                 double{b[static_cast<std::size_t>(tb ? j * k + p : p * n + j)]};
        const double found = c[static_cast<std::size_t>(i * n + j)];
        if (!(std::abs(found - sum) <= 1e-6 * static_cast<double>(k + 1))) return false;
      }
    return true;
  }
};
struct biased {  // adds what says where it was called
  template <class N>
  N operator()(N sums, std::int64_t i, std::int64_t j, std::size_t count) const {
    std::vector<float> place(N::width);
    for (std::size_t q = 0; q < count; ++q) place[q] = static_cast<float>(1000 * i + j) + static_cast<float>(q);
    return sums + N::load_partial(place.data(), count);
  }
};
using direct = detail::direct_product<float, fast>;
}  // namespace

TEST_CASE("tiles give the product of operands in place and of packed ones, at drawn shapes") {
  random_stream r{11};
  for (int trial = 0; trial < 200; ++trial) {
    const auto extent = [&](int most) { return 1 + static_cast<std::int64_t>(r.uniform() * most); };
    product p{extent(120), extent(300), extent(70), r.uniform() < .5, r.uniform() < .5};
    CAPTURE(p.m);
    CAPTURE(p.k);
    CAPTURE(p.n);
    direct{p.work()}.run<0, 0, false>(as_is{});
    CHECK(p.is_near());
  }
}

TEST_CASE("where packing both operands pays, the bits are those of tiles, and the epilogue sees every place once") {
  random_stream r{13};
  int paid = 0;
  for (int trial = 0; trial < 6; ++trial) {
    const auto extent = [&](int least, int most) {
      return least + static_cast<std::int64_t>(r.uniform() * (most - least + 1));
    };
    const std::int64_t m = trial == 0 ? 48 : extent(48, 120), n = trial == 1 ? 96 : extent(96, 330),
                       k = (std::int64_t{1} << 23) / (m * n) + 1 + extent(0, 20);
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(k);
    if (k < 96) continue;
    product p{m, k, n, r.uniform() < .5, r.uniform() < .5};
    direct{p.work()}.run<0, 0, true>(biased{});
    product tiles = p;
    std::fill(tiles.c.begin(), tiles.c.end(), -7.0f);
    direct{tiles.work()}.run<0, 0, false>(biased{});
    CHECK(p.c == tiles.c);
    paid += direct::packed::pays(m, n, k) ? 1 : 0;
  }
  if (detail::pack<float, fast>::width > 1 && detail::tile_registers == 2) CHECK(paid >= 4);
}

TEST_CASE("few terms and many columns, packed in runs of whole registers") {
  for (const std::int64_t k : {1, 2, 3})
    for (const std::int64_t n : {681, 1361, 2721, 2731, 5470})
      for (const bool turned : {false, true}) {
        product p{5, k, n, false, turned};
        CAPTURE(k);
        CAPTURE(n);
        direct{p.work()}.run<0, 0, false>(as_is{});
        CHECK(p.is_near());
      }
}

TEST_CASE("a share of a row's columns that is a single one has the numbers of the whole row") {
  for (const std::int64_t n : {3, 5, 9, 17})
    for (const std::int64_t k : {1, 7, 20, 64, 131}) {
      product whole{1, k, n, false, false}, part{1, k, n, false, false};
      direct{whole.work()}.run_all_dots(as_is{});
      CHECK(whole.is_near());
      for (std::int64_t j = 0; j < n; ++j) direct{part.work().part(0, 1, j, j + 1)}.run_all_dots(as_is{});
      CHECK(part.c == whole.c);
      direct{part.work().part(0, 1, n - 1, n)}.run_dots<true>(as_is{});
      CHECK(part.c == whole.c);
    }
}

TEST_CASE("dots give a column, and a row of few, of either order of each operand") {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      for (const std::int64_t k : {8, 15, 16, 17, 100, 5000})
        for (const std::int64_t long_side : {1, 2, 7, 9, 16}) {
          product column{long_side, k, 1, ta, tb};
          direct{column.work()}.run_dots<true, 1>(as_is{});
          CHECK(column.is_near());
          product row{1, k, long_side, ta, tb};
          direct{row.work()}.run_dots<false>(as_is{});
          CHECK(row.is_near());
        }
}

TEST_CASE("a small product is taken or refused, and what was refused is untouched") {
  int taken = 0;
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      for (std::int64_t m = 1; m <= 6; ++m)
        for (std::int64_t k = 1; k <= 6; ++k)
          for (std::int64_t n = 1; n <= 6; ++n) {
            product p{m, k, n, ta, tb};
            const bool did = direct{p.work()}.run_small(as_is{});
            if (did)
              CHECK(p.is_near());
            else
              CHECK(p.c == std::vector<float>(p.c.size(), -7.0f));
            taken += did ? 1 : 0;
            if (n == 1) CHECK(did);
          }
  CHECK(taken > 4 * 36);  // every column, and more
}

TEST_CASE("no sum of nothing is left as it was: a product over k = 0 is zero") {
  product p{3, 0, 5, false, false};
  direct{p.work()}.run<0, 0, false>(as_is{});
  CHECK(p.c == std::vector<float>(15, 0.0f));
}
