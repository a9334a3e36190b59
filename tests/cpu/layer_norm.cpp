#include <gradus/cpu/layer_norm.hpp>

#include <doctest/doctest.h>

#include <gradus/base/random.hpp>

#include "divided.hpp"

#include <cmath>

namespace {
using namespace gradus;

template <class T>
std::vector<T> draw(std::size_t n, std::uint64_t seed, double low, double high) {
  random_stream r{seed};
  std::vector<T> v(n);
  for (auto& x : v) x = static_cast<T>(low + (high - low) * r.uniform());
  return v;
}
template <class T>
void near(const std::vector<T>& got, const std::vector<double>& want, double tolerance) {
  REQUIRE(got.size() == want.size());
  double most = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double e = std::fabs(static_cast<double>(got[i]) - want[i]);
    if (!(e <= most)) most = e;
  }
  CHECK(most <= tolerance);
}
// Forward and backward in plain loops, from the formula.
template <class T, class A = fast>
void check(std::size_t rows, std::size_t n, bool scales, bool centers, double tolerance) {
  CAPTURE(rows);
  CAPTURE(n);
  CAPTURE(scales);
  CAPTURE(centers);
  const double epsilon = 1e-3;
  const auto x = draw<T>(rows * n, 1, -3, 5), dy = draw<T>(rows * n, 2, -1, 1), gamma = draw<T>(n, 3, 0.5, 2),
             beta = draw<T>(n, 4, -1, 1);
  std::vector<double> y(rows * n), dx(rows * n), dp(2 * n);
  for (std::size_t r = 0; r < rows; ++r) {
    const auto at = [&](const std::vector<T>& v, std::size_t j) { return static_cast<double>(v[r * n + j]); };
    const auto by = [&](std::size_t j) { return scales ? static_cast<double>(gamma[j]) : 1; };
    const double count = static_cast<double>(n);
    double mean = 0, variance = 0, g = 0, gx = 0;
    for (std::size_t j = 0; j < n; ++j) mean += at(x, j) / count;
    for (std::size_t j = 0; j < n; ++j) variance += (at(x, j) - mean) * (at(x, j) - mean) / count;
    const double factor = 1 / std::sqrt(variance + epsilon);
    const auto normal = [&](std::size_t j) { return (at(x, j) - mean) * factor; };
    for (std::size_t j = 0; j < n; ++j) {
      y[r * n + j] = normal(j) * by(j) + (centers ? static_cast<double>(beta[j]) : 0);
      g += at(dy, j) * by(j) / count, gx += at(dy, j) * by(j) * normal(j) / count;
      dp[j] += at(dy, j) * normal(j), dp[n + j] += at(dy, j);
    }
    for (std::size_t j = 0; j < n; ++j) dx[r * n + j] = factor * (at(dy, j) * by(j) - g - normal(j) * gx);
  }
  const auto words = std::bit_cast<std::array<int, 2>>(epsilon);
  const std::vector<int> dims{0, static_cast<int>(n), words[0], words[1], scales, centers};
  const auto many = static_cast<std::int64_t>(rows);
  constexpr dtype t = dtype_of<T>;
  std::vector<const void*> operands{x.data()};
  if (scales) operands.push_back(gamma.data());
  if (centers) operands.push_back(beta.data());
  bool same = true;
  using namespace divided_test;
  near(same_in_parts<&cards::layer_norm, T, A>(dims, many, rows * n, {t, t, t, t}, operands, same), y, tolerance);
  operands = {x.data(), dy.data()};
  near(same_in_parts<&cards::layer_norm_grads, T, A>(dims, many, 2 * n, {t, t, t}, operands, same), dp,
       static_cast<double>(rows + 1) * tolerance);
  if (scales) operands.push_back(gamma.data());
  near(same_in_parts<&cards::layer_norm_grad, T, A>(dims, many, rows * n, {t, t, t, t}, operands, same), dx,
       40 * tolerance);  // a row of one: dx is 0, from numbers of about 1 / sqrt(epsilon)
  CHECK(same);
}
}  // namespace

TEST_CASE("layer_norm and its gradients agree with plain loops, whole and in parts") {
  for (std::size_t n : {1u, 2u, 7u, 8u, 15u, 16u, 17u, 31u, 33u, 64u, 100u, 128u, 200u})
    check<float>(5, n, true, true, 3e-6);
  check<float>(3, 5000, true, true, 6e-6);
  for (bool scales : {false, true})
    for (bool centers : {false, true}) check<double>(9, 21, scales, centers, 1e-14);
  check<float, portable>(4, 37, true, true, 3e-6);
  check<float>(0, 8, true, true, 0);
}
