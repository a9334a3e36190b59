// draws at compile time: shapes of small products
#include <doctest/doctest.h>
#include <gradus/base/random.hpp>
#include <gradus/cpu/matmul.hpp>

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
template <class T, class X, class Y>
T chain(int k, X x, Y y) {
  detail::lane<T, fast> sum(T(0));
  for (int p = 0; p < k; ++p) sum = fma(detail::lane<T, fast>(x(p)), detail::lane<T, fast>(y(p)), sum);
  return sum.v;
}
// The tree of a dot: sixteen chains a run of 4096, each over every sixteenth place, joined in halves.
template <class T, class X, class Y>
T tree(int k, X x, Y y) {
  T total = 0;
  for (int p0 = 0; p0 < k; p0 += 4096) {
    detail::lane<T, fast> sums[16];
    for (auto& s : sums) s = T(0);
    for (int p = p0; p < k && p < p0 + 4096; ++p)
      sums[p % 16] = fma(detail::lane<T, fast>(x(p)), detail::lane<T, fast>(y(p)), sums[p % 16]);
    for (int half = 8; half > 0; half /= 2)
      for (int c = 0; c < half; ++c) sums[c] = sums[c] + sums[c + half];
    total = p0 == 0 ? sums[0].v : total + sums[0].v;
  }
  return total;
}
template <class T>
T element(const T* a, const T* b, int i, int j, int m, int k, int n, bool ta, bool tb) {
  const auto x = [&](int p) { return a[ta ? p * m + i : i * k + p]; };
  const auto y = [&](int p) { return b[tb ? j * k + p : p * n + j]; };
  return k >= 8 && (n == 1 || (m == 1 && n <= 16)) ? tree<T>(k, x, y) : chain<T>(k, x, y);
}
constexpr detail::signature matmul_signature(dtype type, int matrices, int m, int k, int n, bool ta, bool tb) {
  return {&cards::matmul, {type, type, type}, {matrices, m, k, n, ta, tb}, {}};
}
// What a layer and a residual connection do.
template <class T>
struct layer {
  const T *bias, *residual;
  std::int64_t columns;
  template <class N>
  N operator()(N sums, std::int64_t row, std::int64_t column, std::size_t count) const {
    return max(sums + N::load_partial(bias + column, count), N(T(0))) +
           N::load_partial(residual + row * columns + column, count);
  }
};
template <class T>
struct problem {
  int matrices, m, k, n;
  bool ta, tb;
  std::vector<T> a, b, bias, residual, want, want_layer, got;

  problem(int matrices_, int m_, int k_, int n_, bool ta_, bool tb_)
      : matrices(matrices_),
        m(m_),
        k(k_),
        n(n_),
        ta(ta_),
        tb(tb_),
        a(numbers<T>(size(m, k), 1)),
        b(numbers<T>(size(k, n), 2)),
        bias(numbers<T>(static_cast<std::size_t>(n), 3)),
        residual(numbers<T>(size(m, n), 4)),
        want(size(m, n)),
        want_layer(size(m, n)) {
    std::size_t at = 0;
    for (int q = 0; q < matrices; ++q)
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j, ++at) {
          want[at] = element(a.data() + q * m * k, b.data() + q * k * n, i, j, m, k, n, ta, tb);
          const T sum = want[at] + bias[static_cast<std::size_t>(j)];
          want_layer[at] = (sum > 0 ? sum : 0) + residual[at];
        }
  }
  std::size_t size(int x, int y) const { return static_cast<std::size_t>(matrices * x * y); }

  void start() { got.assign(size(m, n) + 1, T(77)); }
  bool same(const std::vector<T>& as) const {
    return (as.empty() || std::memcmp(got.data(), as.data(), as.size() * sizeof(T)) == 0) && got.back() == T(77);
  }
  template <class S, class E>
  void call(const S& s, const E& e) {
    std::byte* args[] = {reinterpret_cast<std::byte*>(got.data()), reinterpret_cast<std::byte*>(a.data()),
                         reinterpret_cast<std::byte*>(b.data())};
    multiply_operands_as<fast, T>(s, args, e);
  }
  bool interpreted(int parts) {
    const detail::signature what = matmul_signature(dtype_of<T>, matrices, m, k, n, ta, tb);
    start();
    for (int part = parts - 1; part >= 0; --part) call(detail::dynamic{0, 1, part, parts, what}, as_is{});
    if (!same(want)) return false;
    start();
    for (int part = 0; part < parts; ++part)
      call(detail::dynamic{0, 1, part, parts, what}, layer<T>{bias.data(), residual.data(), n});
    return same(want_layer);
  }
  template <class S>
  bool compiled(const S& s) {
    start();
    call(s, as_is{});
    if (!same(want)) return false;
    start();
    call(s, layer<T>{bias.data(), residual.data(), n});
    return same(want_layer);
  }
};
template <class T>
void check(int matrices, int m, int k, int n, bool ta, bool tb, int parts = 1) {
  CAPTURE(matrices);
  CAPTURE(m);
  CAPTURE(k);
  CAPTURE(n);
  CAPTURE(ta);
  CAPTURE(tb);
  CAPTURE(parts);
  CHECK(problem<T>(matrices, m, k, n, ta, tb).interpreted(parts));
}
template <class T, int M, int K, int N, int Matrices = 1>
void check_compiled() {
  const auto both = [](auto transposed) {
    constexpr int t = decltype(transposed)::value;
    problem<T> p(Matrices, M, K, N, t & 1, t & 2);
    constexpr auto known = matmul_signature(dtype_of<T>, Matrices, M, K, N, t & 1, t & 2);
    constexpr auto batched = matmul_signature(dtype_of<T>, Matrices, 0, K, N, t & 1, t & 2);  // m: the rows
    CAPTURE(t);
    CHECK(p.compiled(detail::fixed_batch<known, 1, 1>{}));
    CHECK(p.compiled(detail::fixed<batched>{M, M}));
  };
  both(std::integral_constant<int, 0>{}), both(std::integral_constant<int, 1>{});
  both(std::integral_constant<int, 2>{}), both(std::integral_constant<int, 3>{});
}
}  // namespace

TEST_CASE("every element is one chain over k or one dot, whatever the tile, with an epilogue too") {
  for (int m : {1, 2, 3, 4, 5, 8, 9, 17, 49})
    for (int n : {1, 2, 7, 8, 15, 16, 17, 31, 33, 48, 64, 65, 130})
      for (int k : {1, 2, 7, 8, 16, 25, 127, 128, 129, 300})
        if ((m + n + k) % 3 == 0 || m * n < 40)  // a third of the grid, and all small ones
          for (int t = 0; t < 4; ++t) {
            check<float>(1, m, k, n, t & 1, t & 2);
            if (k < 130) check<double>(1, m, k, n, t & 1, t & 2);
          }
}
TEST_CASE("a long dot is a tree of trees") {
  for (int t = 0; t < 4; ++t) {
    check<float>(1, 3, 9000, 1, t & 1, t & 2);
    check<float>(1, 1, 4097, 10, t & 1, t & 2);
  }
}
TEST_CASE("large products are the same chains") {
  for (int t = 0; t < 4; ++t) check<float>(1, 70, 600, 410, t & 1, t & 2, t + 1);
}
TEST_CASE("a batch of matrices; no matrices, rows, columns or sums") {
  for (int t = 0; t < 4; ++t) {
    check<float>(6, 4, 5, 2, t & 1, t & 2);
    check<float>(5, 33, 16, 33, t & 1, t & 2, 3);
    check<float>(1, 3, 0, 5, t & 1, t & 2);
    check<double>(2, 0, 4, 3, t & 1, t & 2, 2);
    check<double>(2, 4, 4, 0, t & 1, t & 2);
    check<double>(0, 4, 4, 3, t & 1, t & 2);
  }
}
TEST_CASE("however many share the work, the bits are the same") {
  for (int parts : {2, 3, 4, 7, 16})
    for (int t = 0; t < 4; ++t) {
      check<float>(1, 130, 20, 40, t & 1, t & 2, parts);
      check<float>(1, 32, 40, 200, t & 1, t & 2, parts);
      check<float>(3, 50, 9, 17, t & 1, t & 2, parts);
      check<float>(1, 100, 60, 1, t & 1, t & 2, parts);
      check<float>(2, 1, 60, 10, t & 1, t & 2, parts);
      check<double>(1, 25, 30, 1, t & 1, t & 2, parts);
    }
}
namespace {
// Gradients of weights: k is the batch.
template <class T, int M, int K, int N>
void check_compiled_gradient(int parts) {
  problem<T> p(1, M, K, N, true, false);
  constexpr auto batched = matmul_signature(dtype_of<T>, 1, M, 0, N, true, false);
  CAPTURE(parts);
  p.start();
  for (int part = 0; part < parts; ++part) p.call(detail::fixed<batched>{K, K, part, parts}, as_is{});
  CHECK(p.same(p.want));
}
#ifndef GRADUS_DRAW
#define GRADUS_DRAW 1
#endif
// One of Most numbers, from 1 on.
template <int Which, int Most>
inline constexpr int drawn = [] {
  std::uint64_t x = GRADUS_DRAW;
  for (int i = 0; i <= Which; ++i) x = (x + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u, x ^= x >> 29;
  return static_cast<int>(x >> 33) % Most + 1;
}();
template <class T, int... Shape>
void check_drawn(std::integer_sequence<int, Shape...>) {
  (check_compiled<T, drawn<3 * Shape, 6>, drawn<3 * Shape + 1, 10>, drawn<3 * Shape + 2, 4>>(), ...);
  (check_compiled_gradient<T, drawn<3 * Shape, 20>, drawn<3 * Shape + 1, 10>, drawn<3 * Shape + 2, 4>>(1), ...);
}
}  // namespace

TEST_CASE("compiled: the same bits, of the whole and of small kernels") {
  check_compiled<float, 1, 8, 16>(), check_compiled<float, 1, 8, 17>(), check_compiled<float, 1, 7, 16>();
  check_compiled<float, 4, 2, 8>(), check_compiled<float, 3, 4, 1>(), check_compiled<float, 3, 9, 1>();
  check_compiled<float, 8, 1, 16>(), check_compiled<double, 2, 3, 4>(), check_compiled<double, 5, 7, 3>();
  check_compiled<float, 32, 20, 10>();
  check_compiled<float, 37, 33, 150>();
  check_compiled<float, 5, 4, 6, 3>();
  constexpr auto tile = matmul_signature(float32, 1, 16, 16, 16, true, false);
  CHECK(problem<float>(1, 16, 16, 16, true, false).compiled(detail::fixed_batch<tile, 1, 1>{}));
  for (int parts : {1, 3})
    check_compiled_gradient<float, 17, 1, 1>(parts), check_compiled_gradient<float, 16, 3, 1>(parts);
  check_compiled<double, 13, 40, 34>();
}
TEST_CASE("compiled: small products of drawn shapes have the bits of the interpreted ones") {
  CAPTURE(GRADUS_DRAW);
  check_drawn<float>(std::make_integer_sequence<int, 8>{});
}
