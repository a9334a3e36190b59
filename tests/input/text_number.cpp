#include <gradus/base/random.hpp>
#include <gradus/input/text_number.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

using gradus::detail::is_number;
using gradus::detail::number_at;

namespace {

// What the C library makes of it.
template <class Number>
Number by_c(const std::string& s) {
  if constexpr (std::is_same_v<Number, float>)
    return std::strtof(s.c_str(), nullptr);
  else if constexpr (std::is_same_v<Number, double>)
    return std::strtod(s.c_str(), nullptr);
  else
    return static_cast<Number>(std::strtoll(s.c_str(), nullptr, 10));
}
template <class Number>
void agrees(const std::string& s) {
  CAPTURE(s);
  const std::string more = s + ",7";
  Number found = 99;
  const char* const past = number_at(more.data(), more.data() + more.size(), found);
  REQUIRE(past == more.data() + s.size());
  const Number expected = by_c<Number>(s);
  REQUIRE(found == expected);
  if constexpr (std::is_floating_point_v<Number>) REQUIRE(std::signbit(found) == std::signbit(expected));
  REQUIRE(number_at(s.data(), s.data() + s.size(), found) == s.data() + s.size());  // at the end of what there is
}
template <class Number>
bool refuses(std::string_view s) {
  Number n = 0;
  return !is_number(s, n);
}
template <class Number>
Number is(std::string_view s) {
  Number n = 77;
  REQUIRE(is_number(s, n));
  return n;
}

}  // namespace

TEST_CASE("integers") {
  for (const char* s : {"0", "-0", "7", "-1", "16", "007", "999999999", "1000000000", "2147483647", "-2147483648"})
    agrees<std::int32_t>(s), agrees<std::int64_t>(s);
  for (const char* s : {"9223372036854775807", "-9223372036854775808", "999999999999999999", "1000000000000000000"})
    agrees<std::int64_t>(s);
  for (const char* s : {"2147483648", "-2147483649", "99999999999", "", "-", "+1", "x", "--1", "1x", "1.0", "1 2", " "})
    CHECK(refuses<std::int32_t>(s));
  for (const char* s : {"9223372036854775808", "-9223372036854775809", "1e3"}) CHECK(refuses<std::int64_t>(s));
  CHECK(is<std::int32_t>(" 12\t") == 12);
}

TEST_CASE("floats, to the last bit") {
  for (const char* s : {"0",
                        "-0",
                        "-0.0",
                        "1.5",
                        "0.1",
                        "0.123456",
                        ".5",
                        "5.",
                        "1e5",
                        "1E+5",
                        "1e-5",
                        "3.4e38",
                        "1.17549e-38",
                        "1e-40",
                        "16777217",
                        "9007199254740993",
                        "1e22",
                        "1e23",
                        "-2.5e-10",
                        "123456789",
                        "0.000001",
                        "1e-22",
                        "8388608.5",
                        "1.00000017881393432617187499",
                        "1.00000017881393421515957453",
                        "1.000000178813934326171875"})
    agrees<float>(s), agrees<double>(s);
  for (const char* s : {"", "-", ".", "e5", "x", "1x", "1e", "1e+", "+-1", "1,0", "0x10", "--1", "- 1"}) {
    CHECK(refuses<float>(s));
    CHECK(refuses<double>(s));
  }
  CHECK(is<float>("+1.5 ") == 1.5F);
  CHECK(is<float>("inf") == INFINITY);
  CHECK(is<double>("-Infinity") == -INFINITY);
  CHECK(std::isnan(is<float>("nan")));
  CHECK(is<float>("1e39") == INFINITY);  // TensorFlow's strings::safe_strtof says so too
  CHECK(is<float>("-1e39") == -INFINITY);
  CHECK(is<float>("1e-60") == 0.0F);
  CHECK(is<double>("1e400") == INFINITY);
}

TEST_CASE("random numbers of every length") {
  gradus::random_stream roll{.seed = 5};
  for (int i = 0; i < 20000; ++i) {
    std::string s = roll.below(4) == 0 ? "-" : "";
    const auto before = roll.below(12), after = roll.below(12);
    for (std::uint32_t k = 0; k < before; ++k) s += static_cast<char>('0' + roll.below(10));
    if (roll.below(8) != 0 || before == 0) {
      s += '.';
      for (std::uint32_t k = 0; k <= after; ++k) s += static_cast<char>('0' + roll.below(10));
    }
    if (roll.below(3) == 0) s += "e" + std::to_string(static_cast<int>(roll.below(50)) - 25);
    agrees<float>(s), agrees<double>(s);
  }
}

TEST_CASE("half-way between two floats") {
  // A float, half a step more, and a digit far behind that decides.
  gradus::random_stream roll{.seed = 6};
  for (int i = 0; i < 2000; ++i) {
    const double middle = 1.0 + roll.below(1U << 23);
    const float f = static_cast<float>(middle) / 1024.0F;
    const double half =
        static_cast<double>(f) + (static_cast<double>(std::nextafterf(f, 1e30F)) - static_cast<double>(f)) / 2;
    char digits[64];
    std::snprintf(digits, sizeof digits, "%.17g", half);
    agrees<float>(digits);
    std::snprintf(digits, sizeof digits, "%.30f", half);
    agrees<float>(digits);
    agrees<float>(std::string(digits) + "1");
  }
}
