// compiled with: -O3 -march=native
#include <gradus/cpu/number.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <gradus/base/random.hpp>
#include <vector>

using namespace gradus;

namespace {

template <class T>
std::vector<T> random_numbers(std::size_t n, std::uint64_t seed) {
  std::vector<T> x(n);
  random_stream r{seed, 0};
  for (auto& v : x) v = static_cast<T>(std::ldexp(2 * r.uniform() - 1, static_cast<int>(r.below(30)) - 15));
  return x;
}
template <class T>
std::vector<T> awkward() {
  using limits = std::numeric_limits<T>;
  return {T(0),
          -T(0),
          T(1),
          T(-1),
          T(0.5),
          T(-2.5),
          T(3.5),
          limits::infinity(),
          -limits::infinity(),
          limits::quiet_NaN(),
          limits::max(),
          limits::lowest(),
          limits::min(),
          limits::denorm_min(),
          T(8388609),
          T(-0.75)};
}
// Equal bits, or NaN both.
template <class T>
bool same(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0 || (std::isnan(a) && std::isnan(b));
}

// A formula on lanes and on packs, over pairs of awkward and of random numbers.
template <class T, class A, class F>
void lane_is_pack(F f) {
  using L = detail::lane<T, A>;
  using P = detail::pack<T, A>;
  auto x = random_numbers<T>(512, 1), y = random_numbers<T>(512, 2);
  for (const T a : awkward<T>())
    for (const T b : awkward<T>()) x.push_back(a), y.push_back(b);
  std::vector<T> lanes(x.size()), packs(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) f(L(x[i]), L(y[i])).store(&lanes[i]);
  static_assert(512 % P::width == 0);
  for (std::size_t i = 0; i < x.size(); i += P::width) f(P::load(&x[i]), P::load(&y[i])).store(&packs[i]);
  for (std::size_t i = 0; i < x.size(); ++i) {
    INFO(static_cast<double>(x[i]), " and ", static_cast<double>(y[i]));
    CHECK(same(lanes[i], packs[i]));
  }
}
template <class F>
void lane_is_pack(F f) {
  lane_is_pack<float, fast>(f);
  lane_is_pack<float, portable>(f);
  lane_is_pack<double, fast>(f);
  lane_is_pack<double, portable>(f);
}

}  // namespace

TEST_CASE("lane and pack give the same bits") {
  lane_is_pack([](auto a, auto b) { return a * b + a; });
  lane_is_pack([](auto a, auto b) { return a - b * a; });
  lane_is_pack([](auto a, auto b) { return (a * a - b * b) / (a + b); });
  lane_is_pack([](auto a, auto b) { return fma(a, b, a); });
  lane_is_pack([](auto a, auto b) { return sqrt(abs(a)) - b; });
  lane_is_pack([](auto a, auto b) { return min(a, b); });
  lane_is_pack([](auto a, auto b) { return max(a, b); });
  lane_is_pack([](auto a, auto b) { return select(a < b, a, -b); });
  lane_is_pack([](auto a, auto b) { return select(detail::both(a <= b, a == a), sign(a), copysign(b, a)); });
  lane_is_pack([](auto a, auto b) { return select(detail::either(a > b, a != b), round(a), floor(b)); });
}

TEST_CASE("a product never contracts with a sum") {
  const auto check = []<class T>(T) {
    const auto x = random_numbers<T>(1000, 3), y = random_numbers<T>(1000, 4), z = random_numbers<T>(1000, 5);
    std::vector<T> plain(1000), out(1000);
    for (std::size_t i = 0; i < 1000; ++i) {
      volatile T p = x[i] * y[i];
      plain[i] = p + z[i];
    }
    using L = detail::lane<T, fast>;
    for (std::size_t i = 0; i < 1000; ++i) out[i] = (L(x[i]) * L(y[i]) + L(z[i])).v;
    CHECK(out == plain);
    using P = detail::pack<T, fast>;
    for (std::size_t i = 0; i + P::width <= 1000; i += P::width)
      (P::load(&x[i]) * P::load(&y[i]) + P::load(&z[i])).store(&out[i]);
    CHECK(out == plain);
    for (std::size_t i = 0; i < 1000; ++i)
      out[i] = fma(detail::lane<T, portable>(x[i]), detail::lane<T, portable>(y[i]), detail::lane<T, portable>(z[i])).v;
    CHECK(out == plain);
    if (simd::has_fma<T>) {
      for (std::size_t i = 0; i < 1000; ++i) {
        out[i] = fma(L(x[i]), L(y[i]), L(z[i])).v;
        plain[i] = std::fma(x[i], y[i], z[i]);
      }
      CHECK(out == plain);
    }
  };
  check(0.0f);
  check(0.0);
}

TEST_CASE("min, max, round and floor say what docs/arithmetic.md says") {
  using N = detail::lane<float, fast>;
  const float nan = NAN;
  CHECK(min(N(nan), N(1)).v == 1);
  CHECK(std::isnan(min(N(1), N(nan)).v));
  CHECK(max(N(nan), N(1)).v == 1);
  CHECK(std::isnan(max(N(1), N(nan)).v));
  CHECK(std::signbit(min(N(0.0f), N(-0.0f)).v));
  CHECK(!std::signbit(max(N(-0.0f), N(0.0f)).v));
  for (const float x : awkward<float>()) {
    if (std::isnan(x)) continue;
    CHECK(same(round(N(x)).v, std::nearbyint(x)));
    CHECK(same(floor(N(x)).v, std::floor(x)));
    CHECK(same(abs(N(x)).v, std::abs(x)));
  }
  for (const double x : random_numbers<double>(1000, 6)) {
    using D = detail::lane<double, fast>;
    CHECK(same(round(D(x)).v, std::nearbyint(x)));
    CHECK(same(floor(D(x)).v, std::floor(x)));
  }
}

TEST_CASE_TEMPLATE("a partial pack reads and writes its first places only", T, float, double) {
  using P = detail::pack<T, fast>;
  for (std::size_t n = 0; n <= P::width; ++n) {
    std::vector<T> x(n), all(P::width), y(P::width + 2, T(-1));  // x ends where nothing more may be read
    for (std::size_t i = 0; i < n; ++i) x[i] = T(3) + static_cast<T>(i);
    for (std::size_t i = 0; i < P::width; ++i) all[i] = T(50) + static_cast<T>(i);
    const P p = P::load_partial(x.data(), n, T(7));
    for (std::size_t i = 0; i < P::width; ++i) CHECK(p[i] == (i < n ? x[i] : T(7)));
    P::load(all.data()).store_partial(y.data() + 1, n);
    CHECK(y[0] == -1);
    for (std::size_t i = 0; i <= P::width; ++i) CHECK(y[1 + i] == (i < n ? all[i] : T(-1)));
  }
}

TEST_CASE("lanes work in constant evaluation") {
  static_assert((detail::lane<float, fast>(2) * detail::lane<float, fast>(3) + detail::lane<float, fast>(1)).v == 7);
  static_assert(max(detail::lane<double, portable>(2), detail::lane<double, portable>(3)).v == 3);
  static_assert(number<detail::lane<float, fast>> && number<detail::pack<float, fast>> &&
                number<detail::pack<double, portable>>);
}
