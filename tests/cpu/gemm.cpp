#include <doctest/doctest.h>
#include <gradus/base/random.hpp>
#include <gradus/cpu/gemm.hpp>

#include <cstring>
#include <limits>
#include <vector>

namespace {
using namespace gradus;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
template <class T>
std::vector<T> numbers(std::int64_t n, std::uint64_t seed) {
  random_stream r{seed};
  std::vector<T> v(at(n));
  for (auto& x : v) x = static_cast<T>(2 * r.uniform() - 1);
  return v;
}
// docs/arithmetic.md: one chain of fused multiply-adds over k, in order.
template <class A, class T>
T chain(matrix_operand<T> a, matrix_operand<T> b, std::int64_t i, std::int64_t j, std::int64_t k, T start, bool minus) {
  detail::lane<T, A> sum = start;
  for (std::int64_t p = 0; p < k; ++p) {
    const T x = a.at[a.transposed ? p * a.stride + i : i * a.stride + p];
    const T y = b.at[b.transposed ? j * b.stride + p : p * b.stride + j];
    sum = fma(detail::lane<T, A>(minus ? -x : x), detail::lane<T, A>(y), sum);
  }
  return sum.v;
}
// Every bit, also of what lies around c.
template <class A, class T>
void check(std::int64_t m, std::int64_t n, std::int64_t k, bool ta, bool tb, product_into into, std::int64_t more = 0) {
  CAPTURE(m);
  CAPTURE(n);
  CAPTURE(k);
  CAPTURE(ta);
  CAPTURE(tb);
  const std::int64_t sa = (ta ? m : k) + more, sb = (tb ? k : n) + more, sc = n + more;
  const auto a = numbers<T>((ta ? k : m) * sa, 1), b = numbers<T>((tb ? n : k) * sb, 2);
  auto c = numbers<T>(m * sc, 3);
  auto want = c;
  const matrix_operand<T> x{a.data(), sa, ta}, y{b.data(), sb, tb};
  const bool fresh = into == product_into::overwrite;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      T& w = want[at(i * sc + j)];
      w = chain<A, T>(x, y, i, j, k, fresh ? T(0) : w, into == product_into::subtract);
    }
  multiply<A, T>(x, y, c.data(), sc, m, n, k, into);
  CHECK((c.empty() || std::memcmp(c.data(), want.data(), c.size() * sizeof(T)) == 0));
}
}  // namespace

TEST_CASE_TEMPLATE("gemm: every element is one chain over k, whatever block and tile", T, float, double) {
  for (std::int64_t m : {1, 2, 5, 6, 7, 8, 9, 16, 25})
    for (std::int64_t n : {1, 3, 8, 15, 16, 17, 24, 47, 48, 49, 70})
      for (std::int64_t k : {1, 2, 15, 16, 33})
        for (int t = 0; t < 4; ++t)
          if ((m + n + k + t) % 3 == 0) check<fast, T>(m, n, k, t & 1, t & 2, product_into::overwrite);
}
TEST_CASE_TEMPLATE("gemm: more than one block each way", T, float, double) {
  using blocks = detail::packed_product<T, fast>;
  for (int t = 0; t < 4; ++t) {
    check<fast, T>(blocks::block_rows + 3, blocks::columns + 1, blocks::depth + 1, t & 1, t & 2,
                   product_into::overwrite);
    check<fast, T>(blocks::rows + 1, blocks::columns * 2 + 1, blocks::depth * 3 - 1, t & 1, t & 2,
                   product_into::overwrite);
  }
}
TEST_CASE_TEMPLATE("gemm: adds, subtracts, strides, no fma, nothing", T, float, double) {
  for (auto into : {product_into::overwrite, product_into::add, product_into::subtract})
    for (std::int64_t k : {0, 1, 40, 600}) {
      check<fast, T>(17, 50, k, false, true, into, 5);
      check<fast, T>(9, 48, k, true, false, into, 1);
      check<portable, T>(16, 49, k, false, false, into);
    }
  check<fast, T>(0, 5, 3, false, false, product_into::overwrite);
  check<fast, T>(5, 0, 3, false, false, product_into::overwrite);
}
TEST_CASE_TEMPLATE("gemm: a symmetric product is the whole one", T, float, double) {
  for (std::int64_t n : {1, 7, 8, 31, 64, 100, 230})
    for (bool transposed : {false, true}) {
      const std::int64_t k = 77, stride = transposed ? n : k;
      const auto a = numbers<T>(n * k, 4);
      std::vector<T> half(at(n * n), T(9)), whole(half);
      const matrix_operand<T> x{a.data(), stride, transposed}, y{a.data(), stride, !transposed};
      multiply<fast, T>(x, y, half.data(), n, n, n, k, product_into::symmetric);
      multiply<fast, T>(x, y, whole.data(), n, n, n, k);
      CHECK(std::memcmp(half.data(), whole.data(), half.size() * sizeof(T)) == 0);
    }
}
// Every place of the result, once, with its row and column.
struct marked {
  template <class N>
  N operator()(N sums, std::int64_t row, std::int64_t column, std::size_t count) const {
    float add[16] = {};
    for (std::size_t i = 0; i < count; ++i)
      add[i] = static_cast<float>(1000 * row + column + static_cast<std::int64_t>(i));
    return max(sums, N(0.0f)) + N::load(add);
  }
};
TEST_CASE("gemm: an epilogue sees the finished sums of every place") {
  for (auto into : {product_into::overwrite, product_into::add, product_into::subtract})
    for (std::int64_t n : {5, 16, 47, 101})
      for (std::int64_t k : {0, 3, 700}) {
        const std::int64_t m = 213, stride = n + 3;
        const auto a = numbers<float>(m * k, 1), b = numbers<float>(k * n, 2), before = numbers<float>(m * stride, 3);
        std::vector<float> plain(before), got(before);
        multiply<fast, float>({a.data(), k}, {b.data(), n}, plain.data(), stride, m, n, k, into);
        multiply<fast, float>({a.data(), k}, {b.data(), n}, got.data(), stride, m, n, k, into, marked{});
        bool same = true;
        for (std::int64_t i = 0; i < m; ++i)
          for (std::int64_t j = 0; j < stride; ++j) {
            const float x = plain[at(i * stride + j)];
            const float want = j < n ? (x > 0 ? x : 0) + static_cast<float>(1000 * i + j) : before[at(i * stride + j)];
            same = same && got[at(i * stride + j)] == want;
          }
        CHECK(same);
      }
  const auto a = numbers<float>(9, 1);
  std::vector<float> c(9);
  CHECK_THROWS_AS((multiply<fast, float>({a.data(), 3}, {a.data(), 3, true}, c.data(), 3, 3, 3, 3,
                                         product_into::symmetric, marked{})),
                  invalid_argument);
}
TEST_CASE("gemm: NaN and infinity stay in their rows and columns") {
  std::vector<float> a(64, 1.0f), b(64, 1.0f), c(64);
  a[3 * 8 + 2] = std::numeric_limits<float>::quiet_NaN();
  b[5] = std::numeric_limits<float>::infinity();
  multiply<fast, float>({a.data(), 8}, {b.data(), 8}, c.data(), 8, 8, 8, 8);
  for (std::size_t i = 0; i < 8; ++i)
    for (std::size_t j = 0; j < 8; ++j) {
      const float x = c[i * 8 + j];
      CHECK((i == 3 ? x != x : j == 5 ? x > 1e30f : x == 8.0f));
    }
}
