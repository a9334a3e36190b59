// The mean of floats by integers has the bits of the processor's doubles.
#include <gradus/base/mean_in_words.hpp>
#include <gradus/base/random.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

using namespace gradus;
using detail::mean_in_words;

namespace {
bool agrees(const std::vector<float>& all) {
  mean_in_words words;
  double sum = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i == 0)
      words.start(all[i]), sum = static_cast<double>(all[i]);
    else
      words.add(all[i]), sum += static_cast<double>(all[i]);
    const auto n = static_cast<std::uint32_t>(i + 1);
    const float expected = static_cast<float>(sum / static_cast<double>(n)), got = words.over(n);
    if (std::isnan(expected) ? !std::isnan(got)
                             : std::bit_cast<std::uint32_t>(got) != std::bit_cast<std::uint32_t>(expected))
      return false;
  }
  return true;
}
}  // namespace

TEST_CASE("means of floats of any bits") {
  random_stream r{.seed = 5};
  for (int i = 0; i < 20'000; ++i) {
    std::vector<float> all(1 + r.below(12));
    for (float& x : all) x = std::bit_cast<float>(r.word());
    const bool right = agrees(all);
    CHECK(right);
    if (!right) return;
  }
}

TEST_CASE("means of floats that are near each other, cancel, or lie where rounding is decided") {
  random_stream r{.seed = 6};
  for (int i = 0; i < 10'000; ++i) {
    std::vector<float> all(1 + r.below(40));
    const int exponent = static_cast<int>(r.below(5)) == 0 ? -140 : static_cast<int>(r.below(60)) - 30;
    const int spread = 1 + static_cast<int>(r.below(56));
    for (float& x : all) {
      const auto digits = static_cast<float>(r.word() >> (8 + r.below(20)));
      x = std::ldexp(digits, exponent - static_cast<int>(r.below(static_cast<std::uint32_t>(spread))));
      if (r.below(2) == 0) x = -x;
      if (r.below(9) == 0 && &x != &all[0]) x = -all[0];
    }
    const bool right = agrees(all);
    CHECK(right);
    if (!right) return;
  }
}

TEST_CASE("means of zeros, infinities, NaN, the least and the greatest numbers") {
  using limits = std::numeric_limits<float>;
  const float some[] = {0.0f,
                        -0.0f,
                        1.0f,
                        -1.0f,
                        limits::max(),
                        -limits::max(),
                        limits::min(),
                        limits::denorm_min(),
                        -limits::denorm_min(),
                        limits::infinity(),
                        -limits::infinity(),
                        limits::quiet_NaN(),
                        0x1.000002p0f,
                        0x1p-126f,
                        -0x1.fffffep-127f,
                        16777217.0f};
  for (const float a : some)
    for (const float b : some)
      for (const float c : some) CHECK(agrees({a, b, c}));
}
