#include <gradus/ops/matmul.hpp>

#include "refusal.hpp"

#include "compute.hpp"

using namespace gradus;
using ops_test::compute;
using refusal_test::check;

static_assert([] {
  graph g;
  const value x = g.placeholder("x", {batch, 3}), w = g.placeholder("w", {3, 5}), t = g.placeholder("t", {batch, 7, 3});
  return matmul(x, w).dims() == shape{batch, 5} && matmul(t, w).dims() == shape{batch, 7, 5} &&
         matmul(t, t, {.transpose_b = true}).dims() == shape{batch, 7, 7} &&
         matmul(t, t, {.transpose_a = true}).dims() == shape{batch, 3, 3} &&
         matmul(x, x, {.transpose_a = true}).dims() == shape{3, 3} && g.refusal.empty();
}());

namespace {
template <class T>
void check_products(double tolerance) {
  ops_test::draw random{8};
  const auto extent = [&] { return 1 + static_cast<int>(random.below(4) == 0 ? random.below(70) : random.below(12)); };
  for (int round = 0; round < 60; ++round) {
    const int m = extent(), k = extent(), n = extent(), lead = 1 + static_cast<int>(random.below(3));
    const bool ta = random.below(2) == 0, tb = random.below(2) == 0, many = random.below(3) == 0;
    const bool shared = many && !ta && random.below(2) == 0;  // one matrix on the right
    const auto size = [&](int a, int b, bool repeated) {
      return static_cast<std::size_t>(a * b * (repeated ? lead : 1));
    };
    const auto a = random.between<T>(-1, 1, size(m, k, many)),
               b = random.between<T>(-1, 1, size(k, n, many && !shared));
    graph g;
    const auto dims = [&](int p, int q, bool repeated) { return repeated ? shape{batch, p, q} : shape{p, q}; };
    const value va = g.placeholder("a", ta ? dims(k, m, many) : dims(m, k, many), dtype_of<T>);
    const value vb = g.placeholder("b", tb ? dims(n, k, many && !shared) : dims(k, n, many && !shared), dtype_of<T>);
    const auto y = compute<T>(g, matmul(va, vb, {.transpose_a = ta, .transpose_b = tb}), {{va, a}, {vb, b}});
    REQUIRE(y.size() == size(m, n, many));
    bool same = true;
    for (int l = 0; l < (many ? lead : 1); ++l)
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
          double sum = 0;
          for (int c = 0; c < k; ++c)
            sum += static_cast<double>(a[static_cast<std::size_t>(l * m * k + (ta ? c * m + i : i * k + c))]) *
                   static_cast<double>(
                       b[static_cast<std::size_t>((shared ? 0 : l * k * n) + (tb ? j * k + c : c * n + j))]);
          same = same &&
                 std::fabs(static_cast<double>(y[static_cast<std::size_t>((l * m + i) * n + j)]) - sum) <= tolerance;
        }
    INFO(m, " x ", k, " x ", n, ", ", lead, " ", ta, tb, many, shared);
    CHECK(same);
  }
}
}  // namespace

TEST_CASE("products with every transposition, of one and of many, against plain loops") {
  check_products<double>(1e-13);
  check_products<float>(2e-5);
}

TEST_CASE("what products refuse") {
  check<[](graph& g) {
    matmul(g.placeholder("x", {batch, 3}), g.variable("h/kernel", {4, 5}));
  }>("MatMul: inner extents differ: 3 and 4 (x[batch, 3], h/kernel[4, 5])");
  check<[](graph& g) {
    const value x = g.placeholder("x", {batch, 3});
    matmul(x, x, {.transpose_b = true});
  }>("MatMul: the result would be [batch, batch], and at most one extent may be batch; reshape an operand (x[batch, "
     "3], "
     "x[batch, 3])");
  check<[](graph& g) {
    matmul(g.placeholder("x", {batch}), g.variable("w", {4, 5}));
  }>("MatMul: operands must be matrices (x[batch], w[4, 5])");
  check<[](graph& g) {
    matmul(g.placeholder("x", {batch, 2, 3}), g.placeholder("y", {4, 3, 2}));
  }>("MatMul: leading extents differ (x[batch, 2, 3], y[4, 3, 2])");
  check<[](graph& g) {
    matmul(g.placeholder("x", {batch, 2, 3}), g.variable("w", {2, 5}), {.transpose_a = true});
  }>("MatMul: a transposed operand 0 of rank > 2 needs an operand 1 of its rank (x[batch, 2, 3], w[2, 5])");
}
