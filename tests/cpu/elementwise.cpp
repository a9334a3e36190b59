#include <doctest/doctest.h>
#include <gradus/cpu/device.hpp>
#include <gradus/cpu/elementwise.hpp>
#include <gradus/run/session.hpp>

#include <cmath>
#include <limits>
#include <vector>

namespace {
using namespace gradus;

std::vector<float> reals(std::size_t n, double low = -3, double high = 3) {
  random_stream r{n};
  std::vector<float> v(n);
  for (auto& x : v) x = static_cast<float>(low + (high - low) * r.uniform());
  return v;
}
}  // namespace

TEST_CASE("formulas agree with <cmath>, at every length around a register") {
  for (int n : {1, 3, 8, 15, 16, 17, 127, 128, 129, 300}) {
    CAPTURE(n);
    const auto a = reals(static_cast<std::size_t>(n)), b = reals(static_cast<std::size_t>(n), 0.1, 2);
    graph g;
    const value x = g.placeholder("a", {n}), y = g.placeholder("b", {n});
    const value all[] = {
        x + y,    x - y,        x * y,      x / y,   pow(y, x), maximum(x, y), minimum(x, y), squared_difference(x, y),
        exp(x),   log(y),       log1p(y),   sqrt(y), rsqrt(y),  square(x),     abs(x),        sign(x),
        floor(x), tanh(x),      sigmoid(x), relu(x), elu(x),    gelu(x),       softplus(x),   erf(x),
        -x,       leaky_relu(x)};
    const auto want = [](int k, double p, double q) {
      switch (k) {
      case 0: return p + q;
      case 1: return p - q;
      case 2: return p * q;
      case 3: return p / q;
      case 4: return std::pow(q, p);
      case 5: return std::max(p, q);
      case 6: return std::min(p, q);
      case 7: return (p - q) * (p - q);
      case 8: return std::exp(p);
      case 9: return std::log(q);
      case 10: return std::log1p(q);
      case 11: return std::sqrt(q);
      case 12: return 1 / std::sqrt(q);
      case 13: return p * p;
      case 14: return std::abs(p);
      case 15: return p > 0 ? 1. : p < 0 ? -1. : 0.;
      case 16: return std::floor(p);
      case 17: return std::tanh(p);
      case 18: return 1 / (1 + std::exp(-p));
      case 19: return std::max(p, 0.);
      case 20: return p > 0 ? p : std::expm1(p);
      case 21: return 0.5 * p * (1 + std::tanh(std::sqrt(2 / 3.14159265358979) * (p + 0.044715 * p * p * p)));
      case 22: return std::log1p(std::exp(p));
      case 23: return std::erf(p);
      case 24: return -p;
      default: return p > 0 ? p : 0.2 * p;
      }
    };
    session s{g};
    for (int k = 0; k < 26; ++k) {
      CAPTURE(k);
      const auto got = s.run(all[k], {{"a", a}, {"b", b}}).as<float>();
      double worst = 0;
      for (std::size_t i = 0; i < a.size(); ++i) {
        const double w = want(k, static_cast<double>(a[i]), static_cast<double>(b[i]));
        worst = std::max(worst, std::abs(static_cast<double>(got[i]) - w) / (std::abs(w) + 1e-2));
      }
      CHECK(worst < 2e-5);
    }
  }
}

TEST_CASE("what is not a number goes through every function, so that a loss shows it") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (int n : {1, 7, 16, 33}) {
    std::vector<float> a(static_cast<std::size_t>(n), 0.5f);
    for (std::size_t i = 0; i < a.size(); i += 3) a[i] = static_cast<float>(i % 2 == 0 ? nan : -nan);
    graph g;
    const value x = g.placeholder("a", {n});
    const value all[] = {exp(x),  log(x),      log1p(x), sqrt(x), rsqrt(x),      square(x),  abs(x),
                         sign(x), floor(x),    tanh(x),  erf(x),  sigmoid(x),    relu(x),    elu(x),
                         gelu(x), softplus(x), -x,       x + 1.0, leaky_relu(x), pow(x, 2.0)};
    session s{g};
    for (std::size_t k = 0; k < std::size(all); ++k) {
      CAPTURE(k);
      const auto got = s.run(all[k], {{"a", a}}).as<float>();
      for (std::size_t i = 0; i < a.size(); ++i) CHECK(std::isnan(got[i]) == std::isnan(a[i]));
    }
  }
}

TEST_CASE("a zero is +0 behind relu and elu, whatever its sign was") {
  const std::vector<float> a(19, -0.0f);
  graph g;
  const value x = g.placeholder("a", {19});
  session s{g};
  for (const value y : {relu(x), elu(x)})
    for (const float v : s.run(y, {{"a", a}}).as<float>()) {
      CHECK(v == 0);
      CHECK(!std::signbit(v));
    }
}

TEST_CASE("comparisons and selection, NaN included") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> a{1, 2, 3, nan, nan}, b{2, 2, 2, 2, nan};
  graph g;
  const value x = g.placeholder("a", {5}), y = g.placeholder("b", {5});
  const value ops[] = {less(x, y), less_equal(x, y), greater(x, y), greater_equal(x, y), equal(x, y), not_equal(x, y)};
  const bool want[6][5] = {{1, 0, 0, 0, 0}, {1, 1, 0, 0, 0}, {0, 0, 1, 0, 0},
                           {0, 1, 1, 0, 0}, {0, 1, 0, 0, 0}, {1, 0, 1, 1, 1}};
  session s{g};
  for (int k = 0; k < 6; ++k) {
    const auto got = s.run(ops[k], {{"a", a}, {"b", b}}).as<bool>();
    for (std::size_t i = 0; i < 5; ++i) CHECK(got[i] == want[k][i]);
  }
  const value picked = select(logical_and(greater(x, 1.5), logical_not(equal(y, y))), x, y);
  session t{g};
  CHECK(t.run(picked, {{"a", a}, {"b", b}}).as<float>()[0] == 2.f);
}

TEST_CASE("broadcasting as NumPy, through every pattern of three axes") {
  const auto a = reals(2 * 3 * 4);
  for (int mask = 0; mask < 8; ++mask) {
    CAPTURE(mask);
    const int d[3] = {mask & 1 ? 2 : 1, mask & 2 ? 3 : 1, mask & 4 ? 4 : 1};
    const auto b = reals(static_cast<std::size_t>(d[0] * d[1] * d[2]));
    graph g;
    const value x = g.placeholder("a", {2, 3, 4}), y = g.placeholder("b", {d[0], d[1], d[2]});
    const value z = x * y + y;
    session s{g};
    const auto got = s.run(z, {{"a", a}, {"b", b}}).as<float>();
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 3; ++j)
        for (int k = 0; k < 4; ++k) {
          const float p = a[static_cast<std::size_t>((i * 3 + j) * 4 + k)];
          const float q = b[static_cast<std::size_t>(((d[0] == 1 ? 0 : i) * d[1] + (d[1] == 1 ? 0 : j)) * d[2] +
                                                     (d[2] == 1 ? 0 : k))];
          const float product = (detail::lane<float, fast>(p) * detail::lane<float, fast>(q)).v;  // rounded on its own
          CHECK(got[static_cast<std::size_t>((i * 3 + j) * 4 + k)] == product + q);
        }
  }
}

TEST_CASE("casts round toward zero, saturate, and take NaN to zero") {
  const std::vector<float> x{-1.9f, 1.9f, 3e9f, -3e9f, std::numeric_limits<float>::quiet_NaN(), 0, 255.9f, 300};
  graph g;
  const value in = g.placeholder("x", {8});
  const value i = cast(in, int32), u = cast(in, uint8), t = cast(in, boolean), back = cast(cast(in, int32), float32);
  session s{g};
  const auto r = s.run({i, u, t, back}, {{"x", x}});
  const std::int32_t ints[] = {-1, 1, 2147483647, -2147483647 - 1, 0, 0, 255, 300};
  const std::uint8_t bytes[] = {0, 1, 255, 0, 0, 0, 255, 255};
  for (std::size_t k = 0; k < 8; ++k) {
    CHECK(r[0].as<std::int32_t>()[k] == ints[k]);
    CHECK(r[1].as<std::uint8_t>()[k] == bytes[k]);
    CHECK(r[2].as<bool>()[k] == (x[k] != 0));
  }
  CHECK(r[3].as<float>()[0] == -1.f);
}

TEST_CASE("integers wrap, and divide without trapping") {
  constexpr auto most = std::numeric_limits<std::int32_t>::max(), least = std::numeric_limits<std::int32_t>::min();
  const std::vector<std::int32_t> a{most, least, least, 7, -7}, b{1, 1, -1, 0, 2};
  graph g;
  const value x = g.placeholder("a", {5}, int32), y = g.placeholder("b", {5}, int32);
  const value sum = x + y, quotient = x / y, product = x * y, size = abs(x);
  session s{g};
  const auto r = s.run({sum, quotient, product, size}, {{"a", a}, {"b", b}});
  CHECK(r[0].as<std::int32_t>()[0] == least);
  CHECK(r[1].as<std::int32_t>()[2] == least);
  CHECK(r[1].as<std::int32_t>()[3] == 0);
  CHECK(r[1].as<std::int32_t>()[4] == -3);
  CHECK(r[2].as<std::int32_t>()[0] == most);
  CHECK(r[3].as<std::int32_t>()[4] == 7);
}

namespace {
// One loop over everything and nested ones, operands that move along some, types that differ from the computed one.
template <class Add>
void expressions(Add add) {
  for (int rows : {1, 2, 3, 64, 130}) {
    for (int columns : {1, 5, 128, 300}) {
      graph g;
      const value x = g.placeholder("x", {batch, columns}), row = g.placeholder("row", {columns}),
                  column = g.placeholder("column", {batch, 1}), n = g.placeholder("n", {batch, columns}, int32);
      g.add_output(output::fetch, "a", tanh(x) * 0.5);
      g.add_output(output::fetch, "b", x * row + column);
      g.add_output(output::fetch, "c", cast(n, float32) * x);
      g.add_output(output::fetch, "d", n + n);
      g.add_output(output::fetch, "e", greater(x, column));
      add(g, rows, columns);
    }
  }
}
}  // namespace

TEST_CASE("an expression in parts has the bits of the whole") {
  expressions([](const graph& g, std::int64_t rows, int columns) {
    CAPTURE(rows);
    CAPTURE(columns);
    const interpreted_graph<cpu<fast>, ops<>> ready(g, build_options{mode::predict, gating::none, false, false});
    step_machine m;
    m.connect(
        ready.get(), [](int) -> std::byte* { return nullptr; }, [](int) -> std::byte* { return nullptr; });
    m.bind(rows);
    const runnable& r = m.what();
    for (int i = 0; i < r.graph.view.size; ++i) {
      if (r.at(i).op != &placeholder_card) continue;
      const tensor_view v = m.view(i);
      const auto values = reals(v.size());
      for (std::size_t k = 0; k < v.size(); ++k)
        if (v.type == int32)
          v.mutable_as<std::int32_t>()[k] = static_cast<std::int32_t>(values[k] * 100);
        else
          v.mutable_as<float>()[k] = values[k];
    }
    for (std::size_t c = 0; c < m.call_count(); ++c) {
      const bound_call& call = m.bound(c);
      REQUIRE(r.divides[r.program.calls[c].signature]);
      const tensor_view y = m.view(call.node);
      call.run(call.args, call.size, call.what);
      const std::vector<std::byte> whole(y.bytes().begin(), y.bytes().end());
      for (int parts : {2, 3, 4, 7, 16}) {
        std::memset(y.mutable_data(), 0xA5, y.size_bytes());
        for (int part = parts - 1; part >= 0; --part) {
          call_size size = call.size;
          size.part = part, size.parts = parts;
          call.run(call.args, size, call.what);
        }
        CHECK(std::equal(whole.begin(), whole.end(), y.bytes().begin()));
      }
    }
  });
}
