#include <doctest/doctest.h>
#include <gradus/cpu/device.hpp>
#include <gradus/cpu/matmul.hpp>
#include <gradus/run/session.hpp>

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
// docs/arithmetic.md: one chain of fused multiply-adds over k, in order.
template <class T>
T chain(const std::vector<T>& a, const std::vector<T>& b, int i, int j, int m, int k, int n, bool ta, bool tb) {
  lane<T, fast> sum(T(0));
  for (int p = 0; p < k; ++p) {
    const T x = a[static_cast<std::size_t>(ta ? p * m + i : i * k + p)];
    const T y = b[static_cast<std::size_t>(tb ? j * k + p : p * n + j)];
    sum = fma(lane<T, fast>(x), lane<T, fast>(y), sum);
  }
  return sum.v;
}
template <class T>
void check(int m, int k, int n, bool ta, bool tb) {
  CAPTURE(m);
  CAPTURE(k);
  CAPTURE(n);
  CAPTURE(ta);
  CAPTURE(tb);
  const auto size = [](int x, int y) { return static_cast<std::size_t>(x) * static_cast<std::size_t>(y); };
  const auto a = numbers<T>(size(m, k), 1), b = numbers<T>(size(k, n), 2);
  graph g;
  const value x = g.placeholder("a", ta ? shape{k, m} : shape{m, k}, dtype_of<T>);
  const value y = g.placeholder("b", tb ? shape{n, k} : shape{k, n}, dtype_of<T>);
  const value z = matmul(x, y, {.transpose_a = ta, .transpose_b = tb});
  session s{g};
  const auto got = s.run(z, {{"a", a}, {"b", b}}).template as<T>();
  bool same = true;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      const T want = chain(a, b, i, j, m, k, n, ta, tb);
      same = same && std::memcmp(&want, &got[static_cast<std::size_t>(i * n + j)], sizeof(T)) == 0;
    }
  CHECK(same);
}
}  // namespace

TEST_CASE("every element is one chain over k, whatever the tile") {
  for (int m : {1, 2, 3, 4, 5, 8, 9, 17})
    for (int n : {1, 2, 7, 8, 15, 16, 17, 31, 33, 64, 65, 130})
      for (int k : {1, 2, 16, 127, 128, 129, 300})
        if ((m + n + k) % 3 == 0 || m * n < 40)  // a third of the grid, and all small ones
          for (int t = 0; t < 4; ++t) {
            check<float>(m, k, n, (t & 1) != 0, (t & 2) != 0);
            if (k < 130) check<double>(m, k, n, (t & 1) != 0, (t & 2) != 0);
          }
}

TEST_CASE("an empty sum is zero, and no rows are no work") {
  check<float>(3, 0, 5, false, false);
  graph g;
  const value x = g.placeholder("x", {batch, 4});
  const value y = matmul(x, g.variable("w", {4, 3}));
  session s{g};
  s.initialize(1);
  CHECK(s.run(y, {{"x", std::vector<float>{}}}).size() == 0);
}

TEST_CASE("leading extents are a batch of matrices, or rows of one") {
  const auto a = numbers<float>(2 * 3 * 4 * 5, 3), b = numbers<float>(2 * 3 * 5 * 2, 4), w = numbers<float>(5 * 2, 5);
  graph g;
  const value x = g.placeholder("a", {batch, 3, 4, 5}), y = g.placeholder("b", {batch, 3, 5, 2}),
              z = g.placeholder("w", {5, 2});
  const value many = matmul(x, y), one = matmul(x, z);
  session s{g};
  const auto r = s.run({many, one}, {{"a", a}, {"b", b}, {"w", w}});
  CHECK(r[0].dims == extents{2, 3, 4, 2});
  for (std::size_t q = 0; q < 6; ++q)
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t j = 0; j < 2; ++j) {
        lane<float, fast> each(0.f), shared(0.f);
        for (std::size_t p = 0; p < 5; ++p) {
          each = fma(lane<float, fast>(a[q * 20 + i * 5 + p]), lane<float, fast>(b[q * 10 + p * 2 + j]), each);
          shared = fma(lane<float, fast>(a[q * 20 + i * 5 + p]), lane<float, fast>(w[p * 2 + j]), shared);
        }
        CHECK(r[0].as<float>()[q * 8 + i * 2 + j] == each.v);
        CHECK(r[1].as<float>()[q * 8 + i * 2 + j] == shared.v);
      }
}
