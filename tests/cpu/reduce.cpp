#include <doctest/doctest.h>
#include <gradus/cpu/device.hpp>
#include <gradus/cpu/reduce.hpp>
#include <gradus/run/session.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace {
using namespace gradus;

std::vector<float> numbers(std::size_t n) {
  random_stream r{n + 1};
  std::vector<float> v(n);
  for (auto& x : v) x = static_cast<float>(2 * r.uniform() - 1);
  return v;
}
// The tree of docs/arithmetic.md, written out: sixteen lanes, halves, 4096 places at a time.
float tree(const float* x, std::size_t n) {
  float total = 0;
  for (std::size_t from = 0; from < n; from += 4096) {
    const std::size_t to = n - from < 4096 ? n : from + 4096;
    float lanes[16] = {};
    for (std::size_t i = from; i < to; ++i) lanes[(i - from) % 16] = lanes[(i - from) % 16] + x[i];
    for (std::size_t half = 8; half >= 1; half /= 2)
      for (std::size_t j = 0; j < half; ++j) lanes[j] = lanes[j] + lanes[j + half];
    total = from == 0 ? lanes[0] : total + lanes[0];
  }
  return total;
}
template <class Op>
std::vector<float> reduced(const shape& dims, const std::vector<float>& x, Op op) {
  graph g;
  const value in = g.placeholder("x", dims);
  const value out = op(in);
  session s{g};
  const auto r = s.run(out, {{"x", x}}).template as<float>();
  return {r.begin(), r.end()};
}
}  // namespace

TEST_CASE("a sum is the tree that its length fixes") {
  for (int n : {1, 2, 15, 16, 17, 31, 100, 1000, 4095, 4096, 4097, 10000}) {
    const auto x = numbers(static_cast<std::size_t>(n));
    CAPTURE(n);
    CHECK(reduced({n}, x, [](value v) { return reduce_sum(v); })[0] == tree(x.data(), x.size()));
    CHECK(reduced({n}, x, [](value v) { return reduce_mean(v); })[0] ==
          tree(x.data(), x.size()) / static_cast<float>(n));
  }
}

TEST_CASE("rows are trees, columns are chains in order") {
  const int n = 37, m = 45;
  const auto x = numbers(37 * 45);
  const auto rows = reduced({n, m}, x, [](value v) { return reduce_sum(v, {1}); });
  const auto columns = reduced({n, m}, x, [](value v) { return reduce_sum(v, {0}); });
  for (std::size_t i = 0; i < 37; ++i) CHECK(rows[i] == tree(x.data() + i * 45, 45));
  for (std::size_t j = 0; j < 45; ++j) {
    float sum = 0;
    for (std::size_t i = 0; i < 37; ++i) sum = sum + x[i * 45 + j];
    CHECK(columns[j] == sum);
  }
}

TEST_CASE("at most 16 columns of 256 rows or more are trees") {
  for (int n : {255, 256, 300, 4099})
    for (int m : {1, 6, 16, 17}) {
      CAPTURE(n);
      CAPTURE(m);
      const auto rows = static_cast<std::size_t>(n), columns = static_cast<std::size_t>(m);
      const auto x = numbers(2 * rows * columns);
      const auto got = reduced({2, n, m}, x, [](value v) { return reduce_sum(v, {1}); });
      for (std::size_t k = 0; k < 2 * columns; ++k) {
        std::vector<float> column(rows);
        float chain = 0;
        for (std::size_t i = 0; i < rows; ++i) column[i] = x[(k / columns * rows + i) * columns + k % columns];
        for (float v : column) chain = chain + v;
        REQUIRE(got[k] == (n >= 256 && m <= 16 ? tree(column.data(), rows) : chain));
      }
    }
}

TEST_CASE("any axes, kept or not") {
  const auto x = numbers(2 * 3 * 4 * 5);
  const auto at = [&](int a, int b, int c, int d) {
    return x[static_cast<std::size_t>(((a * 3 + b) * 4 + c) * 5 + d)];
  };
  const auto middle = reduced({batch, 3, 4, 5}, x, [](value v) { return reduce_sum(v, {1, 3}); });
  const auto outer = reduced({batch, 3, 4, 5}, x, [](value v) { return reduce_max(v, {0, 2}, true); });
  const auto inner = reduced({batch, 3, 4, 5}, x, [](value v) { return reduce_min(v, {1, 2}); });
  for (int a = 0; a < 2; ++a)
    for (int c = 0; c < 4; ++c) {
      double sum = 0;
      for (int b = 0; b < 3; ++b)
        for (int d = 0; d < 5; ++d) sum += static_cast<double>(at(a, b, c, d));
      CHECK(middle[static_cast<std::size_t>(a * 4 + c)] == doctest::Approx(sum).epsilon(1e-5));
    }
  for (int b = 0; b < 3; ++b)
    for (int d = 0; d < 5; ++d) {
      float most = -9;
      for (int a = 0; a < 2; ++a)
        for (int c = 0; c < 4; ++c) most = std::max(most, at(a, b, c, d));
      CHECK(outer[static_cast<std::size_t>(b * 5 + d)] == most);
    }
  for (int a = 0; a < 2; ++a)
    for (int d = 0; d < 5; ++d) {
      float least = 9;
      for (int b = 0; b < 3; ++b)
        for (int c = 0; c < 4; ++c) least = std::min(least, at(a, b, c, d));
      CHECK(inner[static_cast<std::size_t>(a * 5 + d)] == least);
    }
}

TEST_CASE("the largest and the smallest integer of each row") {
  random_stream r{4, 0};
  for (const int n : {1, 2, 7, 16, 50, 67}) {
    std::vector<std::int32_t> x(static_cast<std::size_t>(3 * n));
    for (auto& v : x) v = static_cast<std::int32_t>(r.below(2001)) - 1000;
    x[0] = std::numeric_limits<std::int32_t>::min(), x.back() = std::numeric_limits<std::int32_t>::max();
    graph g;
    const value in = g.placeholder("x", {batch, n}, int32);
    const value most = reduce_max(in, {1}), least = reduce_min(in, {1});
    session s{g};
    const auto results = s.run({most, least}, {{"x", x}});
    for (std::size_t row = 0; row < 3; ++row) {
      const auto begin = x.begin() + static_cast<std::ptrdiff_t>(row) * n, end = begin + n;
      CHECK(results[0].as<std::int32_t>()[row] == *std::max_element(begin, end));
      CHECK(results[1].as<std::int32_t>()[row] == *std::min_element(begin, end));
    }
  }
}

TEST_CASE("of nothing: sum 0, mean NaN, max -inf") {
  CHECK(reduced({batch}, {}, [](value v) { return reduce_sum(v); })[0] == 0.f);
  CHECK(std::isnan(reduced({batch}, {}, [](value v) { return reduce_mean(v); })[0]));
  CHECK(reduced({batch}, {}, [](value v) { return reduce_max(v); })[0] == -std::numeric_limits<float>::infinity());
}

TEST_CASE("argmax gives the first of equals; integers are summed as integers") {
  graph g;
  const value x = g.placeholder("x", {batch, 4}), n = g.placeholder("n", {batch}, int32);
  const value best = argmax(x), down = argmax(x, 0), total = reduce_sum(n), how_many = size_of(n);
  session s{g};
  const auto r = s.run({best, down, total, how_many}, {{"x", std::vector<float>{1, 5, 5, 2, 7, 0, 7, 7}},
                                                       {"n", std::vector<std::int32_t>{1 << 24, 1}}});
  CHECK(r[0].as<std::int64_t>()[0] == 1);
  CHECK(r[0].as<std::int64_t>()[1] == 0);
  CHECK(r[1].as<std::int64_t>()[0] == 1);
  CHECK(r[1].as<std::int64_t>()[1] == 0);
  CHECK(r[2].as<std::int32_t>()[0] == (1 << 24) + 1);
  CHECK(r[3].as<float>()[0] == 2.f);
}

TEST_CASE("argmax of nothing is refused, as in TensorFlow; of no rows it is nothing") {
  graph g;
  const value x = g.placeholder("x", {batch, 3});
  const value down = argmax(x, 0), across = argmax(x);
  session s{g};
  const std::vector<float> none;
  const auto refused = [&] {
    try {
      s.run(down, {{"x", none}});
      return std::string();
    } catch (const invalid_argument& e) {
      return std::string(e.what());
    }
  };
  CHECK(refused().find("ArgMax: the axis that it searches has 0 elements; feed at least one") != std::string::npos);
  CHECK(s.run(across, {{"x", none}}).as<std::int64_t>().empty());
  CHECK(s.run(down, {{"x", std::vector<float>{1, 5, 2, 3, 4, 2}}}).as<std::int64_t>()[0] == 1);  // the session goes on
}
