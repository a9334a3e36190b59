#include <gradus/tensor/squares.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

using namespace gradus;

TEST_CASE("a long sum keeps its digits") {
  // 0.1^2, a million times: in order, doubles lose five digits of it
  const std::vector<double> x(1000003, 0.1);
  const double exact = static_cast<double>(1000003 * (static_cast<long double>(0.1) * 0.1));
  CHECK(std::abs(sum_of_squares_tree(x.data(), x.size()) / exact - 1) < 1e-15);
  CHECK(sum_of_squares_tree(x.data(), 0) == 0);
  const std::vector<float> large(1000, 1e30f);  // squares that no float holds
  CHECK(sum_of_squares_tree(large.data(), large.size()) == doctest::Approx(1e63).epsilon(1e-6));
}

TEST_CASE("a sum is cut at multiples of 128, which belongs to its bits") {
  std::vector<double> x(700);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::exp(static_cast<double>(i % 37) - 18) * (i % 2 == 0 ? 1.1 : 1);
  const auto of = [&](std::size_t from, std::size_t to) { return sum_of_squares_tree(x.data() + from, to - from); };
  CHECK(of(0, 300) == of(0, 256) + of(256, 300));
  CHECK(of(0, 700) == of(0, 384) + of(384, 700));
  CHECK(of(384, 700) == of(384, 640) + of(640, 700));
  for (const std::size_t n : {1u, 3u, 250u, 255u, 256u}) {  // four sums side by side, what is left over in the first
    double lane[4] = {};
    for (std::size_t i = 0; i < n; ++i) lane[i < n / 4 * 4 ? i % 4 : 0] += x[i] * x[i];
    CHECK(of(0, n) == (lane[0] + lane[1]) + (lane[2] + lane[3]));
  }
}

TEST_CASE("groups of every choice of axes hold the elements that plain indices say") {
  const extents dims{3, 2, 5, 1, 70};
  std::vector<double> x(static_cast<std::size_t>(count(dims)));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<double>(i));
  for (unsigned mask = 0; mask < 32; ++mask) {
    CAPTURE(mask);
    const auto key = [&](std::size_t element) {  // the coordinates that are kept
      std::size_t rest = element, k = 0;
      for (int i = dims.rank; i-- > 0; rest /= static_cast<std::size_t>(dims[i]))
        if ((mask >> i & 1) == 0) k = k * 100 + rest % static_cast<std::size_t>(dims[i]);
      return k;
    };
    std::map<std::size_t, long double> want;  // sums that round less than those under test
    for (std::size_t i = 0; i < x.size(); ++i) want[key(i)] += static_cast<long double>(x[i]) * x[i];
    const squares groups(dims, mask);
    std::vector<int> visits(x.size());
    std::size_t seen = 0;
    double worst = 0;
    groups.strips([&](std::size_t first, std::size_t n) {
      double sums[squares::strip];
      REQUIRE(n <= squares::strip);
      groups.sum(x.data(), first, n, sums);
      seen += n;
      groups.elements(first, n, [&](std::size_t at, std::size_t group) {
        ++visits[at];
        const auto expected = static_cast<double>(want[key(at)]);
        worst = std::max(worst, std::abs(sums[group] - expected) / (1 + expected));
      });
    });
    CHECK(worst < 1e-14);
    CHECK(seen == want.size());
    CHECK(visits == std::vector<int>(x.size(), 1));
  }
}

TEST_CASE("a scalar is one group, nothing is none") {
  const double x = -3;
  int strips = 0;
  const squares scalar({}, 0);
  scalar.strips([&](std::size_t first, std::size_t n) {
    double sum = 0;
    scalar.sum(&x, first, n, &sum);
    CHECK(sum == 9);
    ++strips;
  });
  CHECK(strips == 1);
  squares({4, 0}, 1).strips([&](std::size_t, std::size_t) { ++strips; });
  CHECK(strips == 1);
}
