#include <gradus/cpu/precision.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <gradus/base/random.hpp>
#include <limits>
#include <vector>

using namespace gradus;

namespace {

template <const card* Op, class N, class T = typename N::value_type>
std::vector<T> rounded(const std::vector<T>& x) {
  std::vector<T> y(x.size());
  std::size_t i = 0;
  for (; i + N::width <= x.size(); i += N::width) formula<Op>::at(N::load(x.data() + i)).store(y.data() + i);
  if (i < x.size())
    formula<Op>::at(N::load_partial(x.data() + i, x.size() - i)).store_partial(y.data() + i, x.size() - i);
  return y;
}
template <class T>
bool same(T a, T b) {
  return std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(a) && std::isnan(b));
}

// Floats of every exponent, all 16-bit values, and what lies just beside the middles between those.
template <class Narrow>
std::vector<float> hard_floats() {
  std::vector<float> x;
  for (unsigned b = 0; b < 65536; ++b) {
    const float v = Narrow::from_bits(static_cast<std::uint16_t>(b)),
                w = Narrow::from_bits(static_cast<std::uint16_t>(b + 1));
    x.push_back(v);
    const auto middle = static_cast<float>((static_cast<double>(v) + static_cast<double>(w)) / 2);
    for (float m : {middle, std::nextafter(middle, v), std::nextafter(middle, w)}) x.push_back(m);
  }
  random_stream r{11};
  for (int i = 0; i < 100000; ++i) {
    const std::uint32_t w =
        static_cast<std::uint32_t>(r.below(1u << 16)) << 16 | static_cast<std::uint32_t>(r.below(1u << 16));
    float f;
    std::memcpy(&f, &w, 4);
    x.push_back(f);
  }
  for (float f : {65519.996f, 65520.0f, 0x1p-25f, 0x1.000002p-25f, std::numeric_limits<float>::max()}) x.push_back(f);
  return x;
}

template <const card* Op, class Narrow, class A>
void agrees_with_the_conversion() {
  const auto x = hard_floats<Narrow>();
  const auto packs = rounded<Op, detail::pack<float, A>>(x), lanes = rounded<Op, detail::lane<float, A>>(x);
  long wrong = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float want = Narrow(x[i]);
    wrong += !same(packs[i], want) || !same(lanes[i], want);
  }
  CHECK(wrong == 0);
}

// A double rounds once: by scaling, with the C library's round to even.
double by_scaling(double x, int bias, int mantissa) {
  if (x == 0 || !std::isfinite(x)) return x;
  const int e = std::max(std::ilogb(x), 1 - bias);
  const double y = std::ldexp(std::nearbyint(std::ldexp(x, mantissa - e)), e - mantissa);
  return std::abs(y) >= std::ldexp(1.0, bias + 1) ? std::copysign(std::numeric_limits<double>::infinity(), y) : y;
}
template <const card* Op>
void doubles(int bias, int mantissa) {
  std::vector<double> x{0.0,   -0.0,  std::numeric_limits<double>::infinity(), std::nan(""), 65520, -65519.9999999,
                        1e300, 1e-300};
  random_stream r{5};
  for (int i = 0; i < 100000; ++i) x.push_back(std::ldexp(2 * r.uniform() - 1, static_cast<int>(r.below(300)) - 150));
  for (int i = 0; i < 2000; ++i)  // ties, and what a rounding to float first would make one
    for (double d : {0.0, 1e-12, -1e-12}) x.push_back((1 + (i + 0.5) * std::ldexp(1.0, -mantissa)) * (1 + d));
  const auto packs = rounded<Op, detail::pack<double, fast>>(x), lanes = rounded<Op, detail::lane<double, portable>>(x);
  long wrong = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double want = by_scaling(x[i], bias, mantissa);
    wrong += !same(packs[i], want) || !same(lanes[i], want);
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("the formulas give the bits of the conversion there and back: lanes and packs, fast and portable") {
  agrees_with_the_conversion<&cards::reduce_precision_float16, half, fast>();
  agrees_with_the_conversion<&cards::reduce_precision_float16, half, portable>();
  agrees_with_the_conversion<&cards::reduce_precision_bfloat16, bfloat, fast>();
  agrees_with_the_conversion<&cards::reduce_precision_bfloat16, bfloat, portable>();
}
TEST_CASE("a float64 is rounded once") {
  doubles<&cards::reduce_precision_float16>(15, 10);
  doubles<&cards::reduce_precision_bfloat16>(127, 7);
}
