#include <gradus/cpu/attention.hpp>

#include <doctest/doctest.h>

#include <gradus/base/random.hpp>

#include "divided.hpp"

#include <algorithm>
#include <cmath>

namespace {
using namespace gradus;

template <class T>
std::vector<T> draw(std::size_t n, std::uint64_t seed, double wide = 1) {
  random_stream r{seed};
  std::vector<T> v(n);
  for (auto& x : v) x = static_cast<T>(wide * (2 * r.uniform() - 1));
  return v;
}
// Plain loops in double, from the formulas.
struct reference {
  std::vector<double> weights, y, dpacked;
};
template <class T>
reference plain(const std::vector<T>& packed, const std::vector<T>& dy, int n, int heads, int time, int each,
                bool causal) {
  const int wide = heads * each;
  const auto z = [](int i) { return static_cast<std::size_t>(i); };
  reference r;
  r.weights.assign(z(n * heads * time * time), 0), r.y.assign(z(n * time * wide), 0),
      r.dpacked.assign(packed.size(), 0);
  const auto at = [&](int s, int t, int which, int h, int k) {
    return z((s * time + t) * 3 * wide + which * wide + h * each + k);
  };
  const double scale = 1 / std::sqrt(static_cast<double>(each));
  for (int s = 0; s < n; ++s)
    for (int h = 0; h < heads; ++h)
      for (int i = 0; i < time; ++i) {
        const int seen = causal ? i + 1 : time;
        double* w = r.weights.data() + ((s * heads + h) * time + i) * time;
        double most = -INFINITY, total = 0;
        for (int j = 0; j < seen; ++j) {
          for (int k = 0; k < each; ++k)
            w[j] += static_cast<double>(packed[at(s, i, 0, h, k)]) * static_cast<double>(packed[at(s, j, 1, h, k)]);
          w[j] *= scale, most = std::max(most, w[j]);
        }
        for (int j = 0; j < seen; ++j) total += w[j] = std::exp(w[j] - most);
        for (int j = 0; j < seen; ++j) w[j] /= total;
        double mean = 0;
        std::vector<double> dw(z(seen));
        for (int j = 0; j < seen; ++j) {
          for (int k = 0; k < each; ++k) {
            const double v = static_cast<double>(packed[at(s, j, 2, h, k)]),
                         d = static_cast<double>(dy[z((s * time + i) * wide + h * each + k)]);
            r.y[z((s * time + i) * wide + h * each + k)] += w[j] * v;
            dw[z(j)] += d * v, r.dpacked[at(s, j, 2, h, k)] += w[j] * d;
          }
          mean += w[j] * dw[z(j)];
        }
        for (int j = 0; j < seen; ++j) {
          const double ds = w[j] * (dw[z(j)] - mean) * scale;
          for (int k = 0; k < each; ++k) {
            r.dpacked[at(s, i, 0, h, k)] += ds * static_cast<double>(packed[at(s, j, 1, h, k)]);
            r.dpacked[at(s, j, 1, h, k)] += ds * static_cast<double>(packed[at(s, i, 0, h, k)]);
          }
        }
      }
  return r;
}
template <class T>
double farthest(const std::vector<T>& got, const std::vector<double>& want) {
  REQUIRE(got.size() == want.size());
  double most = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double e = std::fabs(static_cast<double>(got[i]) - want[i]);
    if (!(e <= most)) most = e;
  }
  return most;
}
template <class T, class A = fast>
void check(int n, int heads, int time, int each, bool causal, double tolerance) {
  CAPTURE(n);
  CAPTURE(heads);
  CAPTURE(time);
  CAPTURE(each);
  CAPTURE(causal);
  const auto z = [](int i) { return static_cast<std::size_t>(i); };
  const int wide = heads * each;
  const auto packed = draw<T>(z(n * time * 3 * wide), 5, 2), dy = draw<T>(z(n * time * wide), 6);
  const auto want = plain(packed, dy, n, heads, time, each, causal);
  const std::vector<int> dims{0, heads, time, each, causal};
  constexpr dtype t = dtype_of<T>;
  bool same = true;
  using namespace divided_test;
  const auto weights =
      same_in_parts<&cards::attention_weights, T, A>(dims, n, want.weights.size(), {t, t}, {packed.data()}, same);
  const auto y = same_in_parts<&cards::attention_mix, T, A>(dims, n, want.y.size(), {t, t, t},
                                                            {weights.data(), packed.data()}, same);
  const auto d = same_in_parts<&cards::attention_grad, T, A>(
      dims, n, packed.size(), {t, t, t, t}, {packed.data(), weights.data(), y.data(), dy.data()}, same);
  CHECK(same);
  CHECK(farthest(weights, want.weights) <= tolerance);
  CHECK(farthest(y, want.y) <= tolerance);
  CHECK(farthest(d, want.dpacked) <= 8 * tolerance);
  if (causal)  // exactly nothing
    for (int i = 0; i < n * heads * time * time; ++i)
      if (i % time > i / time % time) REQUIRE(weights[z(i)] == 0);
}
}  // namespace

TEST_CASE("attention agrees with plain loops, whole and in parts") {
  for (bool causal : {true, false}) {
    for (int time : {1, 2, 8, 9, 16, 17, 63, 64, 65, 130}) check<float>(1, 2, time, 5, causal, 4e-6);
    for (int each : {1, 4, 8, 15, 16, 17, 32, 48, 65, 128}) check<float>(2, 1, 20, each, causal, 8e-6);
    check<float>(2, 4, 64, 32, causal, 4e-6);
    check<float>(0, 4, 16, 8, causal, 0);
    for (int time : {1, 7, 70}) check<double>(2, 2, time, 9, causal, 1e-14);
    check<float, portable>(1, 2, 33, 12, causal, 4e-6);
  }
}

TEST_CASE("large scores neither overflow nor make a weight of nothing") {
  const int time = 3;
  std::vector<float> packed(time * 3);
  for (std::size_t i = 0; i < time; ++i) packed[3 * i] = 1e18f, packed[3 * i + 1] = i == 1 ? 1e18f : -1e18f;
  const auto w = divided_test::as<float>(divided_test::run<&cards::attention_weights>(
      {0, 1, time, 1, 0}, 1, 9 * sizeof(float), {float32, float32}, {packed.data()}, 1));
  CHECK(w == std::vector<float>{0, 1, 0, 0, 1, 0, 0, 1, 0});
}

TEST_CASE("portable results, as numbers: the same for every register, machine and compiler") {
  using namespace divided_test;
  const int heads = 2, time = 70, each = 20, n = 2;
  const auto packed = draw<float>(static_cast<std::size_t>(n * time * 3 * heads * each), 7),
             dy = draw<float>(static_cast<std::size_t>(n * time * heads * each), 8);
  const std::vector<int> dims{0, heads, time, each, 1};
  bool same = true;
  std::uint64_t hash = 14695981039346656037u;
  const auto take = [&](const std::vector<float>& v) {
    for (float x : v) hash = (hash ^ std::bit_cast<std::uint32_t>(x)) * 1099511628211u;
    return v;
  };
  const auto w = take(same_in_parts<&cards::attention_weights, float, portable>(
      dims, n, static_cast<std::size_t>(n * heads * time * time), {float32, float32}, {packed.data()}, same));
  const auto y = take(same_in_parts<&cards::attention_mix, float, portable>(
      dims, n, dy.size(), {float32, float32, float32}, {w.data(), packed.data()}, same));
  take(same_in_parts<&cards::attention_grad, float, portable>(dims, n, packed.size(),
                                                              {float32, float32, float32, float32},
                                                              {packed.data(), w.data(), y.data(), dy.data()}, same));
  CHECK(same);
  CHECK(hash == 4563835887915044447u);
}
