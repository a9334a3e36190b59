#include <doctest/doctest.h>
#include <gradus/cpu/initialize.hpp>

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
