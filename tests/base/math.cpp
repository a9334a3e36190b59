#include <gradus/base/math.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <gradus/base/random.hpp>
#include <vector>

namespace m = gradus::portable_math;

namespace {
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double none = std::numeric_limits<double>::quiet_NaN();

// The library's functions in long double are the judge: where that has 64 bits (x86) or 113 they are far better than a
// double; where long double is double, a unit more is granted.
using judge = long double;
constexpr double grant = std::numeric_limits<judge>::digits > 53 ? 0 : 1;

// |got - want| in units in the last place of want.
double ulps(double got, judge want) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want) ? 0 : inf;
  const auto rounded = static_cast<double>(want);
  if (got == rounded)
    return std::isinf(got)
               ? 0
               : static_cast<double>(std::abs(want - got) / std::abs(std::nextafter(rounded, inf) - rounded));
  if (std::isinf(got) || std::isinf(rounded)) return inf;
  int exponent = 0;
  std::frexp(rounded, &exponent);
  return static_cast<double>(std::abs(got - want) / std::ldexp(judge{1}, std::max(exponent - 53, -1074)));
}

struct numbers {
  gradus::random_stream stream{.seed = 5};
  double between(double low, double high) { return low + (high - low) * stream.uniform(); }
};

template <class Got, class Want, class Next>
double worst(Got got, Want want, Next next, int n = 20000) {
  double most = 0;
  for (int i = 0; i < n; ++i) {
    const double x = next(), off = ulps(got(x), want(static_cast<judge>(x)));
    if (off > most) most = off;
    if (off > 1 + grant) {
      INFO("at ", x);
      CHECK(off <= 1 + grant);
      break;
    }
  }
  return most;
}
bool same(double a, double b) { return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b); }
}  // namespace

TEST_CASE("exp, log, log2 agree with the library to a unit in the last place") {
  numbers r;
  const auto exp = [](double x) { return m::exp(x); };
  const auto exp_long = [](judge x) { return std::exp(x); };
  CHECK(worst(exp, exp_long, [&] { return r.between(-1, 1); }) < 0.8 + grant);
  CHECK(worst(exp, exp_long, [&] { return r.between(-745, 709); }) < 0.8 + grant);
  CHECK(worst(exp, exp_long, [&] { return r.between(-1e-9, 1e-9); }) < 0.8 + grant);
  const auto log = [](double x) { return m::log(x); };
  const auto log_long = [](judge x) { return std::log(x); };
  CHECK(worst(log, log_long, [&] { return r.between(0.5, 2); }) < 0.8 + grant);
  CHECK(worst(log, log_long, [&] { return std::ldexp(r.between(1, 2), static_cast<int>(r.between(-1074, 1023))); }) <
        0.8 + grant);
  CHECK(worst(log, log_long, [&] { return 1 + r.between(-1e-7, 1e-7); }) < 0.8 + grant);
  const auto log2 = [](double x) { return m::log2(x); };
  const auto log2_long = [](judge x) { return std::log2(x); };
  CHECK(worst(log2, log2_long, [&] { return r.between(0.5, 2); }) < 0.8 + grant);
  CHECK(worst(log2, log2_long, [&] { return std::exp(r.between(-700, 700)); }) < 0.8 + grant);
}

TEST_CASE("pow agrees with the library to a unit in the last place, wherever it is finite") {
  numbers r;
  double most = 0;
  for (int i = 0; i < 60000; ++i) {
    const double x = i % 3 == 0   ? std::exp(r.between(-700, 700))
                     : i % 3 == 1 ? r.between(0.5, 1.5)
                                  : 1 - std::exp(r.between(-30, -1));
    const double limit = 744 / std::abs(std::log(x)),
                 y = r.between(-1, 1) * (i % 2 == 0 ? limit : std::min(limit, 3.0));
    const double off = ulps(m::pow(x, y), std::pow(static_cast<judge>(x), static_cast<judge>(y)));
    if (off > most) most = off;
    if (off > 1 + grant) {
      INFO(x, "^", y);
      REQUIRE(off <= 1 + grant);
    }
  }
  CHECK(most < 0.9 + grant);
  for (double x : {0.0, 0.1, 0.5, 0.96, 0.999, 1.0, 1.5, 10.0})
    for (double y : {0.0, 0.125, 0.3, 0.5, 1.0, 2.7, 100.0, 1234.5678, 1e6 + 0.25, -1.0, -2.5}) {
      INFO(x, "^", y);
      CHECK(ulps(m::pow(x, y), std::pow(static_cast<judge>(x), static_cast<judge>(y))) < 0.9 + grant);
    }
}

TEST_CASE("cos_pi, sin_pi and cos agree with the library") {
  numbers r;
  const judge pi = 3.14159265358979323846264338327950288L;
  const auto cos_pi = [](double x) { return m::cos_pi(x); };
  const auto sin_pi = [](double x) { return m::sin_pi(x); };
  // Near its zeros the judge's own pi x is too coarse; so the argument is reduced first, which is exact.
  const auto sin_long = [pi](judge x) {
    const judge n = std::floor(2 * x + 0.5L), t = (x - n / 2) * pi;
    switch (static_cast<long long>(n) & 3) {
    case 0: return std::sin(t);
    case 1: return std::cos(t);
    case 2: return -std::sin(t);
    default: return -std::cos(t);
    }
  };
  const auto cos_long = [pi](judge x) {
    const judge n = std::floor(2 * x + 0.5L), t = (x - n / 2) * pi;
    switch (static_cast<long long>(n) & 3) {
    case 0: return std::cos(t);
    case 1: return -std::sin(t);
    case 2: return -std::cos(t);
    default: return std::sin(t);
    }
  };
  // A judge with a double's bits rounds pi and pi x before its own function does: a unit more again.
  for (double scale : {1.0, 100.0, 1e9}) {
    CHECK(worst(cos_pi, cos_long, [&] { return r.between(-scale, scale); }) < 0.8 + 2 * grant);
    CHECK(worst(sin_pi, sin_long, [&] { return r.between(-scale, scale); }) < 0.8 + 2 * grant);
  }
  const auto cos = [](double x) { return m::cos(x); };
  CHECK(worst(
            cos, [](judge x) { return std::cos(x); }, [&] { return r.between(-30, 30); }) < 0.8 + grant);
  for (int i = 0; i < 20000; ++i) {
    const double x = r.between(-0x1p20, 0x1p20);
    CHECK(std::abs(m::cos(x) - std::cos(x)) < 3e-16);
  }
  CHECK(std::isnan(m::cos(2e6)));
}

TEST_CASE("what is a double comes out exactly") {
  static_assert(m::pow(2, 10) == 1024 && m::pow(0.5, 3) == 0.125 && m::exp(0) == 1 && m::log(1) == 0);
  static_assert(m::cos_pi(0) == 1 && m::cos_pi(0.5) == 0 && m::cos_pi(1) == -1 && m::cos_pi(1.5) == 0);
  static_assert(m::sin_pi(0.5) == 1 && m::sin_pi(1) == 0 && m::sin_pi(-0.5) == -1);
  static_assert(m::floor(-0.5) == -1 && m::floor(2.5) == 2 && m::ceil(2.25) == 3 && m::floor(1e300) == 1e300);
  for (int n = -1074; n < 1024; ++n) {
    CHECK(m::log2(std::ldexp(1.0, n)) == n);
    CHECK(m::pow(2, n) == std::ldexp(1.0, n));
  }
  double ten = 1;
  for (int n = 0; n <= 22; ++n, ten *= 10) CHECK(m::pow(10, n) == ten);
  numbers r;
  for (int i = 0; i < 20000; ++i) {
    const double x = std::floor(r.between(1, 94906265));  // whose square is a double
    CHECK(m::pow(x, 2) == x * x);
    CHECK(m::pow(x * x, 0.5) == x);
    CHECK(m::pow(x, 1) == x);
  }
}

TEST_CASE("the compiler's square root has the bits of the machine's") {
  static_assert(m::sqrt(2.0) == 1.4142135623730951);
  const auto same = [](double x) {
    const double expected = std::sqrt(x), found = m::detail::root_by_digits(x);
    CAPTURE(x);
    CHECK(
        (std::bit_cast<std::uint64_t>(expected) == std::bit_cast<std::uint64_t>(found) || (x != x && found != found)));
  };
  for (const double x :
       {0.0, -0.0, 1.0, 4.0, 0x1p-1074, 0x1p-1022, 0x1.fffffffffffffp-1023, 0x1.fffffffffffffp1023, inf, std::nan("")})
    same(x);
  CHECK(std::isnan(m::detail::root_by_digits(-1)));
  CHECK(std::isnan(m::detail::root_by_digits(-inf)));
  gradus::random_stream words{.seed = 11};
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t w = std::uint64_t{words.word()} << 32 | words.word();
    const double x = std::bit_cast<double>(w & 0x7fffffffffffffffu);
    same(x);
    const double near = 1 + static_cast<double>(w >> 12) * 0x1p-52;  // both parities of the exponent
    same(near), same(2 * near);
    if (x < 0x1p500 && x > 0x1p-500) same(x * x);
  }
}

TEST_CASE("edges are C's") {
  const double tiny = std::numeric_limits<double>::denorm_min(), huge = std::numeric_limits<double>::max();
  const double values[] = {0.0,        -0.0,          1.0,    -1.0,  0.5,    -0.5,  2.0,  -2.0,  3.0,  -3.0,
                           1e300,      -1e300,        tiny,   -tiny, huge,   -huge, inf,  -inf,  none, 0x1p53,
                           0x1p53 - 1, -(0x1p53 - 1), 1e-300, 745.2, -745.2, 710,   -746, 709.78};
  for (double x : values) {
    INFO("x = ", x);
    CHECK(ulps(m::exp(x), std::exp(static_cast<judge>(x))) <= 0.8 + grant);
    CHECK((x != 0 && std::isfinite(x) ? ulps(m::log(x), std::log(static_cast<judge>(x))) < 0.8 + grant
                                      : same(m::log(x), std::log(x))));
    CHECK((x != 0 && std::isfinite(x) ? ulps(m::log2(x), std::log2(static_cast<judge>(x))) < 0.8 + grant
                                      : same(m::log2(x), std::log2(x))));
    CHECK(same(m::floor(x), std::floor(x)));
    CHECK(same(m::ceil(x), std::ceil(x)));
    for (double y : values) {
      INFO("y = ", y);
      const double want = std::pow(x, y), got = m::pow(x, y);
      CHECK(
          (same(got, want) || (std::isfinite(want) && want != 0 && std::abs(got - want) <= 2.3e-16 * std::abs(want))));
    }
  }
  CHECK(m::exp(-745.13) == tiny);
  CHECK(std::isnan(m::cos_pi(inf)));
  CHECK(std::isnan(m::sin_pi(none)));
  CHECK(m::cos_pi(0x1p53) == 1);
  CHECK(m::cos_pi(0x1p53 - 1) == -1);
  CHECK(m::cos_pi(0x1p51 + 0.5) == 0);
  CHECK(m::cos_pi(0x1p51 + 1) == -1);
  CHECK(m::sin_pi(0x1p51 + 0.5) == 1);
}

TEST_CASE("a product that meets a sum is rounded first") {
  volatile double a = 1 + 0x1p-30;
  const double x = a;
  CHECK(m::product(x, x) - (1 + 0x1p-29) == 0);  // fused, the rest 2^-60 would show
  volatile float b = 1 + 0x1p-14f;
  const float y = b;
  CHECK(m::product(y, y) - (1 + 0x1p-13f) == 0);
}

// Bits, not values: what one machine computed, all must.
TEST_CASE("the bits are the same everywhere") {
  numbers r;
  std::uint64_t h = 14695981039346656037u;
  const auto take = [&h](double x) { h = (h ^ std::bit_cast<std::uint64_t>(x)) * 1099511628211u; };
  for (int i = 0; i < 2000; ++i) {
    const double x = m::product(r.stream.uniform(), 20.0), y = m::product(r.stream.uniform(), 30.0) - 15;
    take(m::exp(y)), take(m::log(x)), take(m::log2(x)), take(m::pow(x, y)), take(m::cos_pi(y)), take(m::sin_pi(y)),
        take(m::cos(y));
  }
  CHECK(h == 17931976046105081151u);
}

TEST_CASE("a double becomes the float that the conversion gives") {
  const auto agrees = [](double x) {
    const float got = m::to_float(x), want = static_cast<float>(x);
    return std::isnan(want) ? std::isnan(got) : std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(want);
  };
  gradus::random_stream stream{.seed = 17};
  const auto word = [&] { return static_cast<std::uint64_t>(stream.word()) << 32 | stream.word(); };
  int wrong = 0;
  for (int i = 0; i < 200000; ++i) {
    const std::uint64_t bits = word(), sign = bits & 1ull << 63;
    wrong += !agrees(std::bit_cast<double>(bits));
    // exponents of floats, their subnormals and a little beyond; halves of a last place, and one beside them
    const std::uint64_t exponent = 1023 - 152 + stream.below(282), digits = word() & 0xfffffe0000000ull;
    for (const std::uint64_t low : {0x0ull, 0x10000000ull, 0x10000001ull, 0x0fffffffull, 0x1fffffffull})
      wrong += !agrees(std::bit_cast<double>(sign | exponent << 52 | digits | low));
  }
  CHECK(wrong == 0);
  for (const double x : {0.0, -0.0, inf, -inf, std::nan(""), 0x1p-149, 0x1p-150, 0x1.8p-150, 0x1.ffffffp127, 5e-324})
    CHECK(agrees(x));
}
