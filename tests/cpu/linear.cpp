#include <doctest/doctest.h>
#include <gradus/base/random.hpp>
#include <gradus/cpu/linear.hpp>

#include <cmath>
#include <cstring>
#include <vector>

namespace {
using namespace gradus;

template <class T>
std::vector<T> numbers(std::size_t n, std::uint64_t seed) {
  random_stream r{seed};
  std::vector<T> v(n);
  for (auto& x : v) x = static_cast<T>(2 * r.uniform() - 1);
  return v;
}
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}
struct weighted {
  template <class N>
  void operator()(N& theta, N g, N& m) const {
    m = N(0.9f) * m + g;
    theta = theta - N(0.1f) * m / (sqrt(abs(g)) + N(0.5f));
  }
};
}  // namespace

TEST_CASE_TEMPLATE("map: every place as a lane computes it, and no place beyond", T, float, double) {
  for (int size : {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 100}) {
    const auto n = static_cast<std::size_t>(size);
    const auto g = numbers<T>(n + 3, 1);
    auto theta = numbers<T>(n + 3, 2), m = numbers<T>(n + 3, 3);
    auto want_theta = theta, want_m = m;
    for (std::size_t i = 0; i < n; ++i) {
      detail::lane<T, fast> x = want_theta[i], y = want_m[i];
      weighted{}(x, detail::lane<T, fast>(g[i]), y);
      want_theta[i] = x.v, want_m[i] = y.v;
    }
    linear<fast>::map(n, weighted{}, theta.data(), g.data(), m.data());
    CHECK(same(theta, want_theta));
    CHECK(same(m, want_m));
  }
}
TEST_CASE_TEMPLATE("reduce: the tree of sum and dot; padding does not count", T, float, double) {
  using math = linear<fast>;
  for (int size : {0, 1, 5, 15, 16, 17, 40, 4095, 4096, 4097, 9000}) {
    const auto n = static_cast<std::size_t>(size);
    CAPTURE(n);
    const auto x = numbers<T>(n, 4), y = numbers<T>(n, 5);
    CHECK(math::reduce(
              n, [](auto a) { return a; }, x.data()) == sum<fast>(x.data(), n));
    const T ones = math::reduce(
        n, [](auto a) { return a * decltype(a)(T(0)) + decltype(a)(T(1)); }, x.data());
    CHECK(ones == static_cast<T>(n));
    std::vector<T> products(n);
    for (std::size_t i = 0; i < n; ++i) products[i] = x[i] * y[i];
    CHECK(math::reduce(
              n, [](auto a, auto b) { return a * b; }, x.data(), y.data()) == sum<fast>(products.data(), n));
    CHECK(math::dot(x.data(), y.data(), n) == dot<fast>(x.data(), y.data(), n));
    CHECK(math::sum_of_squares(x.data(), n) == sum_of_squares<fast>(x.data(), n));
  }
}
TEST_CASE_TEMPLATE("matmul and gram of dense matrices", T, float, double) {
  const std::int64_t m = 5, n = 7, k = 3;
  const auto a = numbers<T>(15, 6), b = numbers<T>(21, 7);
  const auto transposed = [](const std::vector<T>& x, std::size_t rows, std::size_t columns) {
    std::vector<T> y(x.size());
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j) y[j * rows + i] = x[i * columns + j];
    return y;
  };
  std::vector<T> c(35), d(35), e(25), f(25);
  linear<fast>::matmul(a.data(), false, b.data(), false, c.data(), m, n, k);
  CHECK(std::abs(c[8] - (a[3] * b[1] + a[4] * b[8] + a[5] * b[15])) < T(1e-6));
  const auto at = transposed(a, 5, 3), bt = transposed(b, 3, 7);
  linear<fast>::matmul(at.data(), true, bt.data(), true, d.data(), m, n, k);
  CHECK(same(c, d));
  linear<fast>::gram(a.data(), false, e.data(), m, k);
  linear<fast>::gram(at.data(), true, f.data(), m, k);
  CHECK(same(e, f));
  linear<fast>::matmul(a.data(), false, a.data(), true, f.data(), m, m, k);
  CHECK(same(e, f));
}
TEST_CASE_TEMPLATE("rotate_rows: one rotation after the other", T, float, double) {
  using N = detail::lane<T, portable>;
  for (int size : {1, 5, 16, 33, 64, 71}) {
    const auto n = static_cast<std::size_t>(size);
    const std::size_t stride = n + 2;
    auto x = numbers<T>(6 * stride, 8);
    auto want = x;
    const std::vector<T> c{T(0.6), T(0.8), T(-0.28)}, s{T(0.8), T(-0.6), T(0.96)};
    for (std::size_t k = 4, i = 0; i < 3; ++i, --k)  // rows 5 and 4, 4 and 3, 3 and 2
      for (std::size_t j = 0; j < n; ++j) {
        T &p = want[(k + 1) * stride + j], &q = want[k * stride + j];
        const N old = p;
        p = fma(N(c[i]), old, N(s[i]) * N(q)).v;
        q = fma(N(c[i]), N(q), -(N(s[i]) * old)).v;
      }
    linear<portable>::rotate_rows(x.data(), static_cast<std::int64_t>(stride), static_cast<std::int64_t>(n), 2, 5,
                                  c.data(), s.data());
    CHECK(same(x, want));
  }
}
