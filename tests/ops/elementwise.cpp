#include <gradus/ops/elementwise.hpp>
#include <gradus/ops/model.hpp>

#include <functional>
#include <string>
#include <vector>

#include "both_ways.hpp"
#include "compute.hpp"
#include "refusal.hpp"

using namespace gradus;
using ops_test::compute;
using ops_test::near;
using refusal_test::check;

static_assert([] {
  graph g;
  const value a = g.placeholder("a", {batch, 3}), b = g.placeholder("b", {3}), c = g.placeholder("c", {batch, 1});
  const value i = g.placeholder("i", {batch, 3}, int32), t = g.placeholder("t", {3}, boolean);
  return (a + b).dims() == shape{batch, 3} && (c * b).dims() == shape{batch, 3} && (2.0 / a).dims() == a.dims() &&
         less(a, b).type() == boolean && logical_not(t).type() == boolean && (i - i).type() == int32 &&
         cast(i, float64).type() == float64 && cast(a, float32).id == a.id &&
         select(t, a, c).dims() == shape{batch, 3} && g.refusal.empty();
}());

TEST_CASE("what elementwise ops refuse") {
  check<[](graph& g) {
    (void)(g.placeholder("a", {batch, 3}) + g.placeholder("b", {2}));
  }>("Add: shapes [batch, 3] and [2] do not broadcast (a[batch, 3], b[2])");
  check<[](graph& g) {
    (void)(g.placeholder("a", {batch, 1}) - g.placeholder("b", {batch}));
  }>("Sub: the result would be [batch, batch], and at most one extent may be batch; reshape an operand (a[batch, 1], "
     "b[batch])");
  check<[](graph& g) { (void)(g.placeholder("a", {3}) * g.placeholder("b", {3}, float64)); }>(
      "Mul: operands must have one dtype, got float32 and float64; use cast (a[3], b[3])");
  check<[](graph& g) { exp(g.placeholder("a", {3}, int32)); }>(
      "Exp: takes float32 or float64, got int32; use cast (a[3])");
  check<[](graph& g) { cast(g.placeholder("a", {3}), int16); }>(
      "Cast: int16 stands in files only; cast to int32, uint8 or float32 (a[3])");
  check<[](graph& g) { neg(g.placeholder("a", {3}, boolean)); }>("Neg: takes numbers, got bool; use cast (a[3])");
  check<[](graph& g) { logical_not(g.placeholder("a", {3})); }>("LogicalNot: takes bool, got float32 (a[3])");
  check<[](graph& g) { select(g.placeholder("a", {3}), g.placeholder("b", {3}), g.placeholder("c", {3})); }>(
      "Select: the condition must be bool, got float32 (a[3], b[3], c[3])");
}

namespace {
struct unary {
  const char* name;
  value (*op)(value);
  double (*reference)(double);
  double low, high;
};
const unary unaries[] = {
    {"neg", neg, [](double x) { return -x; }, -3, 3},
    {"exp", exp, [](double x) { return std::exp(x); }, -20, 20},
    {"log", log, [](double x) { return std::log(x); }, 0.001, 100},
    {"log1p", log1p, [](double x) { return std::log1p(x); }, -0.9, 10},
    {"sqrt", sqrt, [](double x) { return std::sqrt(x); }, 0, 10},
    {"rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, 0.1, 10},
    {"square", square, [](double x) { return x * x; }, -3, 3},
    {"abs", abs, [](double x) { return std::fabs(x); }, -3, 3},
    {"sign", sign, [](double x) { return double(x > 0) - double(x < 0); }, -3, 3},
    {"floor", floor, [](double x) { return std::floor(x); }, -9, 9},
    {"tanh", tanh, [](double x) { return std::tanh(x); }, -6, 6},
    {"sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -20, 20},
    {"relu", relu, [](double x) { return x > 0 ? x : 0; }, -3, 3},
    {"elu", elu, [](double x) { return x > 0 ? x : std::expm1(x); }, -5, 3},
    {"gelu", gelu,
     [](double x) {
       return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
     },
     -5, 5},
    {"softplus", softplus, [](double x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); }, -30, 30},
    {"erf", erf, [](double x) { return std::erf(x); }, -4, 4},
    {"leaky_relu", [](value x) { return leaky_relu(x, 0.1); }, [](double x) { return x > 0 ? x : 0.1 * x; }, -3, 3},
};
struct binary {
  const char* name;
  value (*op)(value, value);
  double (*reference)(double, double);
};
const binary binaries[] = {
    {"add", add, [](double a, double b) { return a + b; }},
    {"subtract", subtract, [](double a, double b) { return a - b; }},
    {"multiply", multiply, [](double a, double b) { return a * b; }},
    {"divide", divide, [](double a, double b) { return a / b; }},
    {"pow", pow, [](double a, double b) { return std::pow(a, b); }},
    {"maximum", maximum, [](double a, double b) { return a > b ? a : b; }},
    {"minimum", minimum, [](double a, double b) { return a < b ? a : b; }},
    {"squared_difference", squared_difference, [](double a, double b) { return (a - b) * (a - b); }},
    {"less", [](value a, value b) { return cast(less(a, b), a.type()); },
     [](double a, double b) { return double(a < b); }},
    {"greater", [](value a, value b) { return cast(greater(a, b), a.type()); },
     [](double a, double b) { return double(a > b); }},
    {"less_equal", [](value a, value b) { return cast(less_equal(a, b), a.type()); },
     [](double a, double b) { return double(a <= b); }},
    {"greater_equal", [](value a, value b) { return cast(greater_equal(a, b), a.type()); },
     [](double a, double b) { return double(a >= b); }},
    {"equal", [](value a, value b) { return cast(equal(a, b), a.type()); },
     [](double a, double b) { return double(a == b); }},
    {"not_equal", [](value a, value b) { return cast(not_equal(a, b), a.type()); },
     [](double a, double b) { return double(a != b); }},
};
template <class T>
void check_values(double tolerance) {
  ops_test::draw random;
  for (const unary& u : unaries) {
    INFO(std::string(u.name));
    auto x = random.between<T>(u.low, u.high, 101);
    x[7] = static_cast<T>(u.low < 0 ? 0 : u.low);
    graph g;
    const value v = g.placeholder("x", {batch}, dtype_of<T>);
    const auto y = compute<T>(g, u.op(v), {{v, x}});
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(near(y[i], u.reference(x[i]), tolerance));
  }
  for (const binary& b : binaries) {
    INFO(std::string(b.name));
    // a [n, 1, 3], b [2, 1] and back: broadcast on both sides
    auto p = random.between<T>(0.1, 3, 15), q = random.between<T>(0.1, 3, 2);
    p[4] = q[1];
    graph g;
    const value v = g.placeholder("a", {batch, 1, 3}, dtype_of<T>), w = g.placeholder("b", {2, 1}, dtype_of<T>);
    const auto y = compute<T>(g, b.op(v, w), {{v, p}, {w, q}}), z = compute<T>(g, b.op(w, v), {{v, p}, {w, q}});
    REQUIRE(y.size() == 30);
    for (std::size_t i = 0; i < 5; ++i)
      for (std::size_t j = 0; j < 2; ++j)
        for (std::size_t k = 0; k < 3; ++k) {
          CHECK(near(y[(i * 2 + j) * 3 + k], b.reference(p[i * 3 + k], q[j]), tolerance));
          CHECK(near(z[(i * 2 + j) * 3 + k], b.reference(q[j], p[i * 3 + k]), tolerance));
        }
  }
}
}  // namespace

TEST_CASE("values agree with the standard library") {
  check_values<double>(2e-15);
  check_values<float>(5e-7);
}

TEST_CASE("integers, booleans, casts, choices") {
  graph g;
  const value i = g.placeholder("i", {batch}, int32), f = g.placeholder("f", {batch});
  const std::vector<std::int32_t> n{-7, 0, 3, 2000000000};
  const std::vector<float> x{-1.75f, 0.0f, 2.5f, 255.9f};
  CHECK(compute<std::int32_t>(g, i + i * g.constant(2, int32), {{i, std::vector<std::int32_t>{-7, 0, 3, 5}}}) ==
        std::vector<std::int32_t>{-21, 0, 9, 15});
  CHECK(compute<std::int64_t>(g, cast(i, int64) * g.constant(4, int64), {{i, n}}) ==
        std::vector<std::int64_t>{-28, 0, 12, 8000000000});
  CHECK(compute<std::int32_t>(g, cast(f, int32), {{f, x}}) == std::vector<std::int32_t>{-1, 0, 2, 255});
  CHECK(compute<float>(g, cast(cast(f, boolean), float32), {{f, x}}) == std::vector<float>{1, 0, 1, 1});
  // What a cast loses stays lost, whatever is computed next.
  const value d = g.placeholder("d", {batch}, float64);
  CHECK(compute<double>(g, cast(cast(d, float32), float64) * 1.0, {{d, std::vector<double>{0.1}}}) ==
        std::vector<double>{static_cast<double>(0.1f)});
  CHECK(compute<float>(g, cast(cast(f, int32), float32) * 1.0, {{f, x}}) == std::vector<float>{-1, 0, 2, 255});
  const value some = logical_or(logical_and(greater(f, 0.0), less(f, 100.0)), equal(f, g.constant(-1.75)));
  CHECK(compute<bool>(g, some, {{f, x}}) == std::vector<bool>{true, false, true, false});
  CHECK(compute<bool>(g, logical_not(some), {{f, x}}) == std::vector<bool>{false, true, false, true});
  CHECK(compute<float>(g, select(some, f, g.constant(9)), {{f, x}}) == std::vector<float>{-1.75f, 9, 2.5f, 9});
  CHECK(compute<std::int32_t>(g, select(greater(i, g.constant(0, int32)), i, neg(i)), {{i, n}}) ==
        std::vector<std::int32_t>{7, 0, 3, 2000000000});
}

TEST_CASE(
    "a number that a tensor of whole numbers cannot hold is refused, and so is their quotient by a fraction's type") {
  graph g;
  const value n = g.placeholder("n", {2}, int32), pixels = g.placeholder("pixels", {2}, uint8),
              wide = g.placeholder("wide", {2}, int64), x = g.placeholder("x", {2});
  const auto refuses = [](auto build) {
    try {
      build();
    } catch (const invalid_argument& e) {
      return std::string(e.what()).find("cast") != std::string::npos;
    }
    return false;
  };
  CHECK(refuses([&] { return n * 0.5; }));
  CHECK(refuses([&] { return less(n, 2.5); }));
  CHECK(refuses([&] { return less(n, 3e9); }));
  CHECK(refuses([&] { return n + 0x1p31; }));
  CHECK(refuses([&] { return wide + 0x1p63; }));
  CHECK(refuses([&] { return maximum(pixels, -1.0); }));
  CHECK(refuses([&] { return pixels + 256; }));
  CHECK(refuses([&] { return n - std::numeric_limits<double>::quiet_NaN(); }));
  CHECK(refuses([&] { return pixels / 255.0; }));
  CHECK(refuses([&] { return 1.0f / wide; }));
  CHECK(refuses([&] { return g.constant({1, 2.5}, {2}, int32); }));
  for (const value kept : {n * 2.0, n + -0x1p31, wide + -0x1p63, pixels + 255, pixels / 2, 7 / n, n - 1.0})
    CHECK(kept.dims() == shape{2});
  CHECK((x / 255.0).type() == float32);
  CHECK((1 / x).type() == float32);
  CHECK(g.constant(0.5, boolean).type() == boolean);
}

namespace {
// Equality of bools alone, in a sweep with others of its type, in one of float64, broadcast, and in front of a sum.
constexpr auto equality_of_bools = [](graph& g) {
  const value a = g.placeholder("a", {batch, 2}, boolean), b = g.placeholder("b", {batch, 2}, boolean);
  const value one = g.placeholder("one", {2}, boolean), x = g.placeholder("x", {batch, 2});
  const value same = equal(a, b), other = not_equal(a, one);
  const value both = logical_and(same, not_equal(equal(a, one), g.constant(0, boolean)));
  return model_spec{.predictions = {{"same", same},
                                    {"other", other},
                                    {"both", both},
                                    {"chosen", select(equal(b, one), x, x * 2.0)},
                                    {"doubles", select(equal(a, b), cast(x, float64), g.constant(-1, float64))},
                                    {"many", reduce_sum(cast(not_equal(a, b), float32))}}};
};
}  // namespace

TEST_CASE("bools are equal or not: compiled, interpreted, fused") {
  const std::vector<std::uint8_t> a{0, 1, 1, 0, 1, 1}, b{0, 0, 1, 1, 1, 0}, one{1, 0}, x{1, 2, 3, 4, 5, 6};
  const auto got = ops_test::both_ways<equality_of_bools>(3, {{"a", a}, {"b", b}, {"one", one}, {"x", x}});
  using ops_test::number_at;
  float many = 0;
  for (std::size_t i = 0; i < 6; ++i) {
    CAPTURE(i);
    const bool same = a[i] == b[i], like_one = a[i] == one[i % 2], other_like_one = b[i] == one[i % 2];
    const auto number = static_cast<float>(x[i]);
    CHECK(number_at<std::uint8_t>(got, 0, i) == same);
    CHECK(number_at<std::uint8_t>(got, 1, i) == !like_one);
    CHECK(number_at<std::uint8_t>(got, 2, i) == (same && like_one));
    CHECK(number_at<float>(got, 3, i) == (other_like_one ? number : 2 * number));
    CHECK(number_at<double>(got, 4, i) == (same ? double(number) : -1));
    many += same ? 0.f : 1.f;
  }
  CHECK(number_at<float>(got, 5, 0) == many);
  // they have no order, and 16 bits stay what they were
  check<[](graph& g) { greater(g.placeholder("a", {3}, boolean), g.placeholder("b", {3}, boolean)); }>(
      "Greater: takes numbers, got bool; use cast (a[3], b[3])");
  check<[](graph& g) { equal(g.placeholder("a", {3}, bfloat16), g.placeholder("b", {3}, bfloat16)); }>(
      "Equal: bfloat16 is stored and not computed with; cast to float32, and back (a[3], b[3])");
  check<[](graph& g) { not_equal(g.placeholder("a", {3}, boolean), g.placeholder("b", {3})); }>(
      "NotEqual: operands must have one dtype, got bool and float32; use cast (a[3], b[3])");
}

TEST_CASE("a number beside a tensor: second, and first where the op is an operator") {
  graph g;
  const value x = g.placeholder("x", {4}), n = g.placeholder("n", {4}, int32);
  const std::vector<float> numbers{-1, 0.5f, 2, 3};
  const std::vector<std::int32_t> whole{-7, 0, 2, 9};
  const auto of_x = [&](value y) { return compute<float>(g, cast(y, float32), {{x, numbers}, {n, whole}}); };
  using list = std::vector<float>;
  CHECK(of_x(add(x, 1)) == list{0, 1.5f, 3, 4});
  CHECK(of_x(add(1.0, x)) == list{0, 1.5f, 3, 4});
  CHECK(of_x(subtract(x, 0.5)) == list{-1.5f, 0, 1.5f, 2.5f});
  CHECK(of_x(subtract(0.5, x)) == list{1.5f, 0, -1.5f, -2.5f});
  CHECK(of_x(multiply(x, 2.f)) == list{-2, 1, 4, 6});
  CHECK(of_x(multiply(2, x)) == list{-2, 1, 4, 6});
  CHECK(of_x(divide(x, 2.0)) == list{-0.5f, 0.25f, 1, 1.5f});
  CHECK(of_x(divide(1, x)) == list{-1, 2, 0.5f, 1 / 3.f});
  CHECK(of_x(divide(n, 2)) == list{-3, 0, 1, 4});
  CHECK(of_x(squared_difference(x, 1)) == list{4, 0.25f, 1, 4});
  CHECK(of_x(greater_equal(x, 2)) == list{0, 0, 1, 1});
  CHECK(of_x(less_equal(x, 0.5)) == list{1, 1, 0, 0});
  CHECK(of_x(equal(x, 0.5)) == list{0, 1, 0, 0});
  CHECK(of_x(not_equal(n, 2)) == list{1, 1, 0, 1});
  const auto refused = [&](auto build) { CHECK_THROWS_AS(build(), invalid_argument); };
  refused([&] { add(n, 0.5); });
  refused([&] { subtract(0.5, n); });
  refused([&] { multiply(n, 0.5); });
  refused([&] { divide(n, 2.0); });  // would be 3 for 7, as whole numbers
  refused([&] { divide(1.0, n); });
  refused([&] { squared_difference(n, 0.5); });
  refused([&] { greater_equal(n, 2.5); });
  refused([&] { less_equal(n, 2.5); });
  refused([&] { equal(n, 2.5); });
  refused([&] { not_equal(n, 3e9); });
}

TEST_CASE("a number beside a tensor keeps its value, or is refused") {
  graph g;
  const value ids = g.placeholder("ids", {3}, int64), flags = g.placeholder("flags", {3}, boolean);
  constexpr std::int64_t big = (std::int64_t{1} << 53) + 1;
  const auto refused = [](auto make) {
    try {
      make();
    } catch (const error& e) {
      return std::string(e.what());
    }
    return std::string("(nothing was refused)");
  };
  for (const auto& make : std::vector<std::function<value()>>{
           [&] { return equal(ids, big); }, [&] { return not_equal(ids, big); }, [&] { return less(ids, big); },
           [&] { return greater_equal(ids, big); }, [&] { return ids + big; }, [&] { return big - ids; },
           [&] { return multiply(ids, big); }, [&] { return maximum(ids, big); }, [&] { return ids / big; },
           [&] { return squared_difference(ids, big); }})
    CHECK(refused(make).find("this whole number is beyond +-2^53") != std::string::npos);
  CHECK(refused([&] { equal(ids, std::int64_t{1} << 53); }) == "(nothing was refused)");
  CHECK(refused([&] { equal(ids, std::uint64_t{1} << 63); }) != "(nothing was refused)");
  for (const double n : {2.0, 0.5, -1.0}) CHECK(refused([&] { equal(flags, n); }).find("a bool is 0 or 1") == 7);
  CHECK(refused([&] { not_equal(flags, 2); }).find("a bool is 0 or 1") != std::string::npos);
  for (const bool b : {false, true})
    CHECK(refused([&] { equal(flags, b), not_equal(flags, b ? 1 : 0), equal(flags, b ? 1.0F : 0.0F); }) ==
          "(nothing was refused)");
  enum kinds { none, some };
  CHECK(refused([&] { equal(ids, some), add(short{2}, ids), ids * 2U, ids - 2UL; }) == "(nothing was refused)");
}
