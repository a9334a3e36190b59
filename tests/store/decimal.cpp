// compiled with: -O0 -DGRADUS_STRTOD
// What stands in for std::from_chars where a standard library lacks it, against std::from_chars itself.
#include "gradus/store/decimal.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <clocale>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

namespace {
template <class Float>
void agrees(std::string_view s) {
  CAPTURE(std::string(s));
  Float expected = 77, found = 77;
  const auto right = std::from_chars(s.data(), s.data() + s.size(), expected);
  const auto ours = gradus::detail::decimal_at(s.data(), s.data() + s.size(), found);
  CHECK(ours.ec == right.ec);
  CHECK(ours.ptr - s.data() == right.ptr - s.data());
  CHECK((found == expected || (found != found && expected != expected)));
  CHECK(std::signbit(found) == std::signbit(expected));
}
void agrees(std::string_view s) { agrees<float>(s), agrees<double>(s), agrees<long double>(s); }
}  // namespace

TEST_CASE("what is a number, and where it ends") {
  for (const std::string_view s : {"0",
                                   "-0",
                                   "1",
                                   "-1.5",
                                   ".5",
                                   "5.",
                                   "5.x",
                                   ".",
                                   "-.",
                                   "-",
                                   "",
                                   "+1",
                                   " 1",
                                   "1 ",
                                   "1e5",
                                   "1E+5",
                                   "1e-5",
                                   "1e",
                                   "1e+",
                                   "1e+x",
                                   "1ex",
                                   "0x10",
                                   "1,5",
                                   "1.5.5",
                                   "--1",
                                   "e5",
                                   ".e5",
                                   "inf",
                                   "-INF",
                                   "infinity",
                                   "infini",
                                   "nan",
                                   "-nan",
                                   "NaNs",
                                   "in",
                                   "na",
                                   "1e400",
                                   "1e-400",
                                   "-1e400",
                                   "0e999",
                                   "0.0e-999",
                                   "1e39",
                                   "-1e-50",
                                   "1e99999",
                                   "1e-99999",
                                   "4.9406564584124654e-324",
                                   "2.4703282292062327e-324",
                                   "2.4703282292062328e-324",
                                   "1e-310",
                                   "1.7976931348623157e308",
                                   "1.7976931348623159e308",
                                   "3.4028235e38",
                                   "3.4028236e38",
                                   "1.4e-45",
                                   "7e-46"})
    agrees(s);
  // It ends where it is said to, not at a zero.
  const std::string_view long_one = "12345678";
  for (std::size_t n = 0; n <= long_one.size(); ++n) agrees(long_one.substr(0, n));
}

TEST_CASE("to the last bit, whatever the locale's decimal point is") {
  for (const char* locale : {"C", "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE"}) {
    if (std::setlocale(LC_ALL, locale) == nullptr) continue;  // not every machine has it; the C locale is everywhere
    agrees("0.1"), agrees("0,1"), agrees("1.5e3"), agrees("1234567.25");
    std::uint64_t bits = 88172645463325252u;
    for (int i = 0; i < 2000; ++i) {
      bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
      const auto x = std::bit_cast<double>(bits);
      char shortest[32];
      agrees<double>({shortest, std::to_chars(shortest, shortest + sizeof shortest, x).ptr});
      agrees<float>({shortest, std::to_chars(shortest, shortest + sizeof shortest,
                                             std::bit_cast<float>(static_cast<std::uint32_t>(bits)))
                                   .ptr});
    }
  }
  std::setlocale(LC_ALL, "C");
}
