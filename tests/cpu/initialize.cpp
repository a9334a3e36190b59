#include <doctest/doctest.h>
#include <gradus/cpu/initialize.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace {
using namespace gradus;

std::vector<float> drawn(const initializer& init, const shape& dims, std::uint64_t seed = 1, std::uint64_t stream = 2) {
  std::vector<float> v(static_cast<std::size_t>(count(dims)));
  initialize_variable(init, float32, dims, seed, stream, reinterpret_cast<std::byte*>(v.data()));
  return v;
}
struct moments_of {
  double mean = 0, deviation = 0, low = 0, high = 0;
  explicit moments_of(const std::vector<float>& v) {
    for (float x : v)
      mean += static_cast<double>(x), low = std::min(low, static_cast<double>(x)),
                                      high = std::max(high, static_cast<double>(x));
    mean /= static_cast<double>(v.size());
    for (float x : v) deviation += (static_cast<double>(x) - mean) * (static_cast<double>(x) - mean);
    deviation = std::sqrt(deviation / static_cast<double>(v.size()));
  }
};
}  // namespace

TEST_CASE("constants") {
  for (float x : drawn(constant_initializer(0.25f), {3, 4})) CHECK(x == 0.25f);
  for (float x : drawn(zeros, {5})) CHECK(x == 0.f);
  std::vector<std::int64_t> whole(3);
  initialize_variable(ones, int64, {3}, 0, 0, reinterpret_cast<std::byte*>(whole.data()));
  CHECK(whole == std::vector<std::int64_t>{1, 1, 1});
}

// 200 x 500: fan_in 200, fan_out 500; bounds and deviations by the formulas of tf.variance_scaling_initializer.
TEST_CASE("distributions have the moments and bounds of their formulas") {
  const shape dims{200, 500};
  const double n = 100000, slack = 5 / std::sqrt(n);
  SUBCASE("glorot uniform") {
    const moments_of m(drawn(glorot_uniform, dims));
    const double limit = std::sqrt(6.0 / 700);
    CHECK(std::abs(m.mean) < limit * slack);
    CHECK(m.deviation == doctest::Approx(limit / std::sqrt(3.0)).epsilon(0.01));
    CHECK(m.low >= -limit);
    CHECK(m.high <= limit);
    CHECK(m.high > 0.99 * limit);
  }
  SUBCASE("he normal: cut at two deviations, corrected to the variance 2 / fan_in") {
    const moments_of m(drawn(he_normal, dims));
    const double deviation = std::sqrt(2.0 / 200), cut = 2 * deviation / 0.87962566103423978;
    CHECK(m.deviation == doctest::Approx(deviation).epsilon(0.01));
    CHECK(m.high < cut);
    CHECK(m.low > -cut);
    CHECK(m.high > 0.97 * cut);
  }
  SUBCASE("lecun uniform") { CHECK(moments_of(drawn(lecun_uniform, dims)).high <= std::sqrt(3.0 / 200)); }
  SUBCASE("truncated normal keeps its own deviation parameter") {
    const moments_of m(drawn(truncated_normal(1, 0.5f), dims));
    CHECK(m.mean == doctest::Approx(1).epsilon(0.01));
    CHECK(m.deviation == doctest::Approx(0.5 * 0.87962566103423978).epsilon(0.01));
  }
  SUBCASE("normal") {
    const moments_of m(drawn(random_normal(0, 2), dims));
    CHECK(m.deviation == doctest::Approx(2).epsilon(0.01));
    CHECK(m.high > 2 * 3.5);
  }
  SUBCASE("uniform") {
    const moments_of m(drawn(random_uniform(-1, 3), dims));
    CHECK(m.mean == doctest::Approx(1).epsilon(0.02));
    CHECK(m.high < 3);
    CHECK(m.low >= -1);
  }
}

TEST_CASE("untruncated normals keep the variance; fan_out and wider scales") {
  const shape dims{200, 500};
  const moments_of m(drawn(variance_scaling(3, initializer::fan_out, initializer::normal), dims));
  CHECK(m.deviation == doctest::Approx(std::sqrt(3.0 / 500)).epsilon(0.01));
  CHECK(m.high > 3.5 * m.deviation);
  const moments_of cut(drawn(variance_scaling(3, initializer::fan_out, initializer::truncated_normal), dims));
  CHECK(cut.deviation == doctest::Approx(std::sqrt(3.0 / 500)).epsilon(0.01));
  CHECK(cut.high < 2 * stddev_before_truncation(variance_scaling(3, initializer::fan_out), dims));
}

namespace {
// |Q^T Q - gain^2| or |Q Q^T - gain^2| of the shorter side, the worst entry.
template <class T>
double off_orthogonal(const shape& dims, float gain) {
  std::vector<T> v(static_cast<std::size_t>(count(dims)));
  initialize_variable(orthogonal(gain), dtype_of<T>, dims, 5, 6, reinterpret_cast<std::byte*>(v.data()));
  const auto columns = static_cast<std::size_t>(dims.back()), rows = v.size() / columns;
  const bool wide = rows < columns;
  const std::size_t many = wide ? rows : columns, length = wide ? columns : rows;
  double worst = 0;
  for (std::size_t a = 0; a < many; ++a)
    for (std::size_t b = 0; b <= a; ++b) {
      double sum = 0;
      for (std::size_t i = 0; i < length; ++i)
        sum += wide ? static_cast<double>(v[a * columns + i]) * static_cast<double>(v[b * columns + i])
                    : static_cast<double>(v[i * columns + a]) * static_cast<double>(v[i * columns + b]);
      worst = std::max(worst, std::abs(sum - (a == b ? static_cast<double>(gain) * static_cast<double>(gain) : 0)));
    }
  return worst;
}
}  // namespace

TEST_CASE("orthogonal: rows or columns, whichever are fewer, in every shape") {
  for (const shape& dims :
       {shape{100, 100}, shape{150, 70}, shape{70, 150}, shape{3, 3, 4, 20}, shape{2, 1}, shape{1, 2}}) {
    CHECK(off_orthogonal<double>(dims, 1) < 1e-14);
    CHECK(off_orthogonal<float>(dims, 1) < 2e-6);
  }
  CHECK(off_orthogonal<double>({20, 30}, 1.5f) < 1e-14);
  CHECK(off_orthogonal<double>({0, 3}, 1) < 1);
  // as likely as another: the trace of a large one has mean 0 and deviation 1, its entries deviation 1 / sqrt(n)
  const auto q = drawn(orthogonal(), {200, 200});
  double trace = 0;
  for (std::size_t i = 0; i < 200; ++i) trace += static_cast<double>(q[i * 201]);
  CHECK(std::abs(trace) < 4);
  CHECK(moments_of(q).deviation == doctest::Approx(1 / std::sqrt(200.0)).epsilon(1e-4));
  CHECK(std::abs(moments_of(q).mean) < 5.0 / 200 / std::sqrt(200.0));
  CHECK(q == drawn(orthogonal(), {200, 200}));
}

TEST_CASE("identity, of any rank-2 shape and dtype") {
  CHECK(drawn(identity_initializer(2), {2, 3}) == std::vector<float>{2, 0, 0, 0, 2, 0});
  CHECK(drawn(identity_initializer(), {3, 2}) == std::vector<float>{1, 0, 0, 1, 0, 0});
  CHECK(drawn(identity_initializer(), {0, 2}).empty());
  std::vector<std::int32_t> whole(4, 7);
  initialize_variable(identity_initializer(3), int32, {2, 2}, 0, 0, reinterpret_cast<std::byte*>(whole.data()));
  CHECK(whole == std::vector<std::int32_t>{3, 0, 0, 3});
}

TEST_CASE("a kernel of a convolution counts its receptive field") {
  const moments_of m(drawn(glorot_uniform, {5, 5, 32, 64}));  // fans 800 and 1600
  CHECK(m.high <= std::sqrt(6.0 / 2400));
  CHECK(m.high > 0.99 * std::sqrt(6.0 / 2400));
}

TEST_CASE("an element depends on seed, stream and place alone") {
  const auto a = drawn(he_normal, {8, 8});
  CHECK(a == drawn(he_normal, {8, 8}));
  CHECK(a != drawn(he_normal, {8, 8}, 2));
  CHECK(a != drawn(he_normal, {8, 8}, 1, 3));
  const auto longer = drawn(random_normal(0, 1), {100}), shorter = drawn(random_normal(0, 1), {10});
  CHECK(std::vector<float>(longer.begin(), longer.begin() + 10) == shorter);
}
