#include <doctest/doctest.h>
#include <gradus/base/random.hpp>
#include <gradus/cpu/linear.hpp>
#include <gradus/update/linear_algebra.hpp>

#include <cmath>
#include <limits>
#include <vector>

namespace {
using namespace gradus;

template <class T>
using array = std::vector<T>;
std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

template <class T>
array<T> random_numbers(std::int64_t n, std::uint64_t seed) {
  random_stream r{seed};
  array<T> v(at(n));
  for (auto& x : v) x = static_cast<T>(2 * r.uniform() - 1);
  return v;
}
// Of the rows of x, as a distance from the unit matrix.
template <class T>
double not_orthonormal(const array<T>& x, std::int64_t rows, std::int64_t n) {
  double worst = 0;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j <= i; ++j) {
      double sum = i == j ? -1 : 0;
      for (std::int64_t p = 0; p < n; ++p) sum += double(x[at(i * n + p)]) * double(x[at(j * n + p)]);
      worst = std::isnan(sum) ? sum : std::max(worst, std::abs(sum));
    }
  return worst;
}
template <class T>
constexpr double eps = std::numeric_limits<T>::epsilon();

template <class T, class Math>
void check_qr(array<T> a, std::int64_t m, std::int64_t n) {
  CAPTURE(m);
  CAPTURE(n);
  const array<T> before = a;
  array<T> q(a.size()), scratch(householder_qr_scratch(m, n));
  householder_qr<Math>(a.data(), m, n, q.data(), scratch.data());
  CHECK(not_orthonormal(q, n, m) < 20 * eps<T> * std::sqrt(double(m)));
  for (std::int64_t j = 0; j < n; ++j) {  // column by column: small ones must be right too
    double norm = 0, off = 0;             // no squares: they leave the range of a double, which may be long double's
    for (std::int64_t i = 0; i < m; ++i) {
      double sum = -double(before[at(j * m + i)]);
      norm = std::hypot(norm, sum);
      for (std::int64_t p = 0; p <= j; ++p) sum += double(q[at(p * m + i)]) * double(a[at(j * m + p)]);
      off = std::max(off, std::abs(sum));
    }
    CAPTURE(j);
    CHECK(off <= 20 * eps<T> * std::sqrt(double(m)) * norm);
  }
}
template <class T, class Math>
array<T> check_eigen(const array<T>& a, std::int64_t n) {
  CAPTURE(n);
  array<T> values(at(n)), vectors(a.size()), scratch(symmetric_eigen_scratch(n));
  CHECK(symmetric_eigen<Math>(a.data(), n, values.data(), vectors.data(), scratch.data()));
  double norm = 0;
  for (T x : a) norm += double(x) * double(x);
  const double unit = 30 * eps<T> * std::sqrt(double(n));
  CHECK(not_orthonormal(vectors, n, n) < unit);
  double worst = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (i > 0) CHECK(values[at(i)] <= values[at(i - 1)]);
    for (std::int64_t r = 0; r < n; ++r) {
      double sum = -double(values[at(i)]) * double(vectors[at(i * n + r)]);
      for (std::int64_t p = 0; p < n; ++p) sum += double(a[at(r * n + p)]) * double(vectors[at(i * n + p)]);
      worst = std::max(worst, std::abs(sum));
    }
  }
  CHECK(worst <= unit * std::sqrt(norm));
  return values;
}
template <class T>
array<T> symmetric(array<T> a, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < i; ++j) a[at(j * n + i)] = a[at(i * n + j)];
  return a;
}
template <class T>
array<T> diagonal(const array<T>& d) {
  const auto n = static_cast<std::int64_t>(d.size());
  array<T> a(at(n * n));
  for (std::int64_t i = 0; i < n; ++i) a[at(i * n + i)] = d[at(i)];
  return a;
}
}  // namespace

TEST_CASE_TEMPLATE("QR: Q is orthonormal and Q R is the matrix", T, float, double) {
  using math = linear<fast>;
  for (std::int64_t n : {1, 2, 3, 5, 31, 32, 33, 64, 70, 100})
    for (std::int64_t more : {0, 1, 17}) check_qr<T, math>(random_numbers<T>((n + more) * n, 5), n + more, n);
  check_qr<T, linear<portable>>(random_numbers<T>(45 * 40, 6), 45, 40);
}
TEST_CASE_TEMPLATE("QR: zero, equal and tiny columns", T, float, double) {
  using math = linear<fast>;
  check_qr<T, math>(array<T>(36), 6, 6);
  check_qr<T, math>(array<T>(36, T(1)), 6, 6);
  auto a = random_numbers<T>(40 * 40, 7);
  for (std::int64_t j = 0; j < 40; ++j)
    for (std::int64_t i = 0; i < 40; ++i) {
      const int power = static_cast<int>(j) * (sizeof(T) == 4 ? 2 : 20);  // squares leave the range on both sides
      a[at(j * 40 + i)] = std::ldexp(a[at(j * 40 + i)], j % 2 == 0 ? power : -power);
    }
  check_qr<T, math>(a, 40, 40);
}

TEST_CASE_TEMPLATE("eigenvectors of random symmetric matrices", T, float, double) {
  for (std::int64_t n : {1, 2, 3, 4, 5, 10, 33, 34, 35, 64, 65, 66, 100, 130})
    check_eigen<T, linear<fast>>(symmetric(random_numbers<T>(n * n, 8), n), n);
  check_eigen<T, linear<portable>>(symmetric(random_numbers<T>(40 * 40, 9), 40), 40);
}
TEST_CASE_TEMPLATE("eigenvalues that are known", T, float, double) {
  using math = linear<fast>;
  const auto near = [](T x, double want, double size) { CHECK(std::abs(double(x) - want) < 40 * eps<T> * size); };
  SUBCASE("second differences: 2 - 2 cos(pi k / (n + 1))") {
    const std::int64_t n = 50;
    array<T> a(at(n * n));
    for (std::int64_t i = 0; i < n; ++i) {
      a[at(i * n + i)] = 2;
      if (i > 0) a[at(i * n + i - 1)] = a[at(i * n - n + i)] = -1;
    }
    const auto values = check_eigen<T, math>(a, n);
    for (std::int64_t i = 0; i < n; ++i)
      near(values[at(i)], 2 - 2 * std::cos(std::acos(-1.0) * double(n - i) / double(n + 1)), 4);
  }
  SUBCASE("a diagonal comes out sorted, its vectors are axes") {
    const auto values = check_eigen<T, math>(diagonal<T>({1, -4, 9, 0, 2.5, 9}), 6);
    CHECK(values == array<T>{9, 9, 2.5, 1, 0, -4});
  }
  SUBCASE("all ones: n and zeros") {
    const auto values = check_eigen<T, math>(array<T>(20 * 20, T(1)), 20);
    near(values[0], 20, 20);
    for (std::size_t i = 1; i < 20; ++i) near(values[i], 0, 20);
  }
  SUBCASE("zero") { CHECK(check_eigen<T, math>(array<T>(9), 3) == array<T>{0, 0, 0}); }
  SUBCASE("graded over many powers, both ways") {
    for (int sign : {1, -1}) {
      array<T> a(12 * 12);
      for (int i = 0; i < 12; ++i)
        for (int j = 0; j < 12; ++j) a[at(i * 12 + j)] = std::ldexp(T(1), sign * (i + j)) * (i == j ? T(3) : T(1));
      check_eigen<T, math>(a, 12);
    }
  }
  SUBCASE("of any size: squares leave the range") {
    for (int power : {-50, 50}) {
      auto a = symmetric(random_numbers<T>(100, 10), 10);
      for (T& x : a) x = std::ldexp(x, sizeof(T) == 4 ? power * 2 : power * 15);
      array<T> values(10), vectors(100), scratch(symmetric_eigen_scratch(10));
      CHECK(symmetric_eigen<math>(a.data(), 10, values.data(), vectors.data(), scratch.data()));
      CHECK(not_orthonormal(vectors, 10, 10) < 100 * eps<T>);
      T trace = 0, sum = 0;
      for (std::size_t i = 0; i < 10; ++i) trace += a[i * 11], sum += values[i];
      CHECK(std::abs(trace - sum) <= 100 * eps<T> * std::abs(values[0] - values[9]));
    }
  }
}
TEST_CASE("low rank: the vectors of the kernel are orthonormal too") {
  const std::int64_t n = 60, rank = 7;
  const auto g = random_numbers<double>(n * rank, 11);
  array<double> a(at(n * n));
  linear<fast>::gram(g.data(), false, a.data(), n, rank);
  const auto values = check_eigen<double, linear<fast>>(a, n);
  for (std::int64_t i = rank; i < n; ++i) CHECK(std::abs(values[at(i)]) < 1e-13);
}
TEST_CASE("NaN and infinity end the search and show") {
  for (double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    auto a = symmetric(random_numbers<double>(25, 12), 5);
    a[11] = bad;
    array<double> values(5), vectors(25), scratch(symmetric_eigen_scratch(5));
    CHECK_FALSE(symmetric_eigen<linear<fast>>(a.data(), 5, values.data(), vectors.data(), scratch.data()));
    CHECK(std::isnan(vectors[0]));
    array<double> q(25), more(householder_qr_scratch(5, 5));
    householder_qr<linear<fast>>(a.data(), 5, 5, q.data(), more.data());  // it ends
  }
}
