#include "run_graph.hpp"

#include <gradus/cpu/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

using namespace gradus;
using kernel_test::from_bytes;
using kernel_test::to_bytes;

namespace {
struct drawing {
  std::int64_t seed = 1, step = 0;
  template <class T, class A = fast>
  std::vector<T> operator()(graph& g, value y, std::int64_t batch_size,
                            std::map<int, kernel_test::bytes> feeds = {}) const {
    feeds[g.find("random_seed")] = to_bytes<std::int64_t>({seed});
    feeds[g.find("random_step")] = to_bytes<std::int64_t>({step});
    return from_bytes<T>(kernel_test::run<A>(random_ops{}, g, y, batch_size, feeds));
  }
};
template <class T>
void check_normal(const std::vector<T>& x) {
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0, n = static_cast<double>(x.size());
  for (double v : x) m1 += v, m2 += v * v, m3 += v * v * v, m4 += v * v * v * v;
  CHECK(std::fabs(m1 / n) < 5 / std::sqrt(n));
  CHECK(std::fabs(m2 / n - 1) < 5 * std::sqrt(2 / n));
  CHECK(std::fabs(m3 / n) < 5 * std::sqrt(15 / n));
  CHECK(std::fabs(m4 / n - 3) < 5 * std::sqrt(96 / n));
  // neighbours share a radius; they must not be correlated
  double pairs = 0;
  for (std::size_t i = 0; i + 1 < x.size(); i += 2) pairs += double(x[i]) * double(x[i + 1]);
  CHECK(std::fabs(pairs / (n / 2)) < 5 / std::sqrt(n / 2));
}
}  // namespace

TEST_CASE("an element is a pure function of seed, step, stream and index") {
  graph g;
  const value u = random_uniform(g, {batch, 3}), other = random_uniform(g, {batch, 3});
  const auto base = drawing{}.operator()<float>(g, u, 40);
  CHECK(base == drawing{}.operator()<float>(g, u, 40));
  const auto shorter = drawing{}.operator()<float>(g, u, 7);
  CHECK(std::equal(shorter.begin(), shorter.end(), base.begin()));
  CHECK(drawing{.seed = 2}.operator()<float>(g, u, 40) != base);
  CHECK(drawing{.step = 1}.operator()<float>(g, u, 40) != base);
  CHECK(drawing{.step = std::int64_t{1} << 40}.operator()<float>(g, u, 40) != base);
  CHECK(drawing{}.operator()<float>(g, other, 40) != base);
}

TEST_CASE("the words are Philox's, at the documented places") {
  graph g;
  const value u = random_uniform(g, {10});
  const auto stream = static_cast<std::uint32_t>(
      std::bit_cast<double>(std::array<int, 2>{g.ints[g.nodes[g.edges[g.nodes[u.id].first + 2]].attr],
                                               g.ints[g.nodes[g.edges[g.nodes[u.id].first + 2]].attr + 1]}));
  const std::int64_t step = 0x123456789abcLL;
  const auto x = drawing{.seed = 0x0123456789abcdefLL, .step = step}.operator()<float>(g, u, 1);
  const philox words(0x0123456789abcdefULL);
  for (std::uint32_t i = 0; i < 10; ++i) {
    const auto w =
        words({i / 4, static_cast<std::uint32_t>(step << 8), static_cast<std::uint32_t>(step >> 24), stream});
    CHECK(x[i] == uniform_float(w[i % 4]));
  }
}

TEST_CASE("uniform: range, mean, spread; scaled by its bounds") {
  graph g;
  const value u = random_uniform(g, {20000}), d = random_uniform(g, {20000}, 0, 1, float64);
  const auto check = [](const auto& x) {
    double m = 0, v = 0, n = static_cast<double>(x.size());
    for (double e : x) m += e, v += (e - 0.5) * (e - 0.5);
    CHECK(*std::min_element(x.begin(), x.end()) >= 0);
    CHECK(*std::max_element(x.begin(), x.end()) < 1);
    CHECK(std::fabs(m / n - 0.5) < 5 * std::sqrt(1 / 12.0 / n));
    CHECK(std::fabs(v / n - 1 / 12.0) < 5 * std::sqrt(1 / 180.0 / n));
  };
  check(drawing{}.operator()<float>(g, u, 1));
  check(drawing{}.operator()<double>(g, d, 1));
}

TEST_CASE("normal: four moments, both dtypes, odd counts") {
  graph g;
  const value f = random_normal(g, {20001}), d = random_normal(g, {20001}, 0, 1, float64);
  check_normal(drawing{}.operator()<float>(g, f, 1));
  check_normal(drawing{}.operator()<double>(g, d, 1));
  check_normal(drawing{}.operator()<float, portable>(g, f, 1));
  const auto z = drawing{.seed = 77}.operator()<float>(g, f, 1);
  CHECK(*std::max_element(z.begin(), z.end()) > 3.0f);
  CHECK(std::all_of(z.begin(), z.end(), [](float v) { return std::isfinite(v); }));
}

TEST_CASE("dropout: the rate, the scale, the same mask backward and in float64") {
  graph g(mode::train);
  const value x = g.placeholder("x", {batch, 5}), y = dropout(x, 0.3), other = dropout(x, 0.3);
  const value xd = g.placeholder("xd", {batch, 5}, float64);
  value wide[5] = {xd, g.constant(0.3, float64)};
  for (int i = 2; i < 5; ++i) wide[i] = {&g, g.edges[g.nodes[y.id].first + i]};
  const value yd = g.add(cards::dropout, wide, 5);
  std::map<int, kernel_test::bytes> feeds{{x.id, to_bytes(std::vector<float>(20000, 7.0f))},
                                          {xd.id, to_bytes(std::vector<double>(20000, 7.0))}};
  const drawing now{.seed = 5, .step = 9};
  const auto a = now.operator()<float>(g, y, 4000, feeds);
  double kept = 0;
  for (float v : a) {
    CHECK((v == 0 || std::fabs(v - 10.0f) < 1e-5f));
    kept += v != 0;
  }
  CHECK(std::fabs(kept / 20000 - 0.7) < 5 * std::sqrt(0.21 / 20000));
  CHECK(now.operator()<float>(g, other, 4000, feeds) != a);

  const value dy = g.placeholder("dy", {batch, 5});
  gradient_value contributions[5];
  const char wanted[5] = {1, 0, 0, 0, 0};
  backward b{g, y.id, dy, contributions, wanted};
  cards::dropout.gradient(b);
  feeds[dy.id] = to_bytes(std::vector<float>(20000, 1.0f));
  const auto dx = now.operator()<float>(g, contributions[0].dense, 4000, feeds);
  const auto ad = now.operator()<double>(g, yd, 4000, feeds);
  bool same = true;
  for (std::size_t i = 0; i < a.size(); ++i)
    same = same && (dx[i] != 0) == (a[i] != 0) && (ad[i] != 0) == (a[i] != 0) &&
           (dx[i] == 0 || std::fabs(dx[i] - 1 / 0.7f) < 1e-6f);
  CHECK(same);
}

// A rate just above a draw is that draw when it is rounded to float32: float32 keeps the element, and so must float64.
TEST_CASE("dropout: float64 drops what float32 drops, also where the rate lies between two draws") {
  graph g(mode::train);
  const value u = random_uniform(g, {40});
  const int first = g.nodes[u.id].first;  // its seed, step and stream serve the dropouts too
  const value x = g.placeholder("x", {40}), xd = g.placeholder("xd", {40}, float64);
  const std::map<int, kernel_test::bytes> feeds{{x.id, to_bytes(std::vector<float>(40, 1.0f))},
                                                {xd.id, to_bytes(std::vector<double>(40, 1.0))}};
  const drawing now{.seed = 5, .step = 9};
  const auto drawn = now.operator()<float>(g, u, 1);
  int tried = 0;
  for (std::size_t at = 0; at < drawn.size(); ++at) {
    if (drawn[at] < 0.5f) continue;  // below, a float can hold the difference
    const double rate = static_cast<double>(drawn[at]) + 1e-10;
    const auto dropped = [&](value of) {
      value operands[5] = {of, g.constant(rate, of.type())};
      for (int i = 0; i < 3; ++i) operands[2 + i] = {&g, g.edges[first + i]};
      return g.add(cards::dropout, operands, 5);
    };
    const auto a = now.operator()<float>(g, dropped(x), 1, feeds);
    const auto b = now.operator()<double>(g, dropped(xd), 1, feeds);
    CHECK(a[at] != 0);
    for (std::size_t i = 0; i < a.size(); ++i) CHECK((a[i] != 0) == (b[i] != 0));
    ++tried;
  }
  CHECK(tried > 5);
}
