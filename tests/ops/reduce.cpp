#include <gradus/ops/reduce.hpp>

#include "refusal.hpp"

#include "compute.hpp"

using namespace gradus;
using ops_test::compute;
using refusal_test::check;

static_assert([] {
  graph g;
  const value x = g.placeholder("x", {batch, 4, 6});
  return reduce_sum(x).dims().rank == 0 && reduce_mean(x, {0}).dims() == shape{4, 6} &&
         reduce_max(x, {-1}).dims() == shape{batch, 4} && reduce_min(x, {0, 2}, true).dims() == shape{1, 4, 1} &&
         argmax(x).dims() == shape{batch, 4} && argmax(x).type() == int64 && size_of(x, int64).type() == int64 &&
         g.refusal.empty();
}());

TEST_CASE("mean, max, min and argmax over every set of axes, against plain loops") {
  ops_test::draw random{5};
  const auto x = random.between<float>(-2, 2, 3 * 4 * 5);
  graph g;
  const value v = g.placeholder("x", {batch, 4, 5});
  for (unsigned mask = 1; mask < 8; ++mask) {
    CAPTURE(mask);
    const std::size_t q = mask & 2 ? 1 : 4, r = mask & 4 ? 1 : 5, n = (mask & 1 ? 1 : 3) * q * r;
    std::vector<double> sum(n, 0.0), most(n, -9), least(n, 9);
    double many = 0;
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 4; ++j)
        for (std::size_t k = 0; k < 5; ++k) {
          const std::size_t at = ((mask & 1 ? 0 : i) * q + (mask & 2 ? 0 : j)) * r + (mask & 4 ? 0 : k);
          const double e = static_cast<double>(x[(i * 4 + j) * 5 + k]);
          sum[at] += e, most[at] = std::fmax(most[at], e), least[at] = std::fmin(least[at], e), many += at == 0;
        }
    const auto get = [&](const card& op) {
      return compute<float>(g, detail::reduce(op, v, static_cast<int>(mask), false), {{v, x}});
    };
    const auto mean = get(cards::mean), high = get(cards::max), low = get(cards::min);
    REQUIRE(mean.size() == n);
    for (std::size_t i = 0; i < n; ++i) {
      CHECK(ops_test::near(static_cast<double>(mean[i]), sum[i] / many, 1e-6));
      CHECK(static_cast<double>(high[i]) == most[i]);
      CHECK(static_cast<double>(low[i]) == least[i]);
    }
  }
  for (int axis = 0; axis < 3; ++axis) {
    const auto index = compute<std::int64_t>(g, argmax(v, axis), {{v, x}});
    const std::size_t strides[] = {20, 5, 1}, extents[] = {3, 4, 5};
    const std::size_t step = strides[axis], n = extents[axis];
    for (std::size_t at = 0; at < index.size(); ++at) {
      const std::size_t start = at / step * step * n + at % step;
      std::size_t best = 0;
      for (std::size_t k = 1; k < n; ++k)
        if (x[start + k * step] > x[start + best * step]) best = k;
      CHECK(index[at] == static_cast<std::int64_t>(best));
    }
  }
}

TEST_CASE("long sums keep their digits; ties, integers, sizes") {
  graph g;
  const value v = g.placeholder("x", {batch}), i = g.placeholder("i", {batch}, int64);
  // One million tenths in float: a running sum would be off by 1%.
  CHECK(compute<float>(g, reduce_sum(v), {{v, std::vector<float>(1000000, 0.1f)}})[0] ==
        doctest::Approx(100000).epsilon(1e-5));
  CHECK(compute<std::int64_t>(g, argmax(v), {{v, std::vector<float>{1, 5, 5, 2}}}) == std::vector<std::int64_t>{1});
  CHECK(compute<std::int64_t>(g, reduce_sum(i), {{i, std::vector<std::int64_t>{1LL << 40, 5, -2}}}) ==
        std::vector<std::int64_t>{(1LL << 40) + 3});
  CHECK(compute<float>(g, size_of(v), {{v, std::vector<float>(7)}}) == std::vector<float>{7});
  CHECK(compute<float>(g, reduce_sum(v), {{v, std::vector<float>{}}}) == std::vector<float>{0});
}

TEST_CASE("what reductions refuse") {
  check<[](graph& g) { size_of(g.placeholder("x", {300}), uint8); }>(
      "Size: counts in float32, float64, int32 or int64, not in uint8 (x[300])");
  check<[](graph& g) { size_of(g.placeholder("x", {3}), boolean); }>(
      "Size: counts in float32, float64, int32 or int64, not in bool (x[3])");
  check<[](graph& g) { reduce_sum(g.placeholder("x", {batch, 3}), {2}); }>("axis 2 is outside [batch, 3]");
  check<[](graph& g) { reduce_mean(g.placeholder("x", {3}, boolean)); }>(
      "Mean: takes numbers, got bool; use cast (x[3])");
  check<[](graph& g) {
    reduce_mean(g.placeholder("x", {batch, 32, 32}, uint8), {1, 2});
  }>("Mean: takes float32, float64, int32 or int64, got uint8; use cast (x[batch, 32, 32])");
}
