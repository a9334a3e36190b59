#include "gradus/store/crc32c.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace gradus;

namespace {
// The definition: polynomial division, bit by bit.
std::uint32_t by_definition(std::string_view s) {
  std::uint32_t r = 0xFFFFFFFFu;
  for (const char c : s) {
    r ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) r = (r >> 1) ^ ((r & 1u) != 0 ? 0x82F63B78u : 0u);
  }
  return ~r;
}
std::string ramp(std::size_t n) {
  std::string s;
  for (std::size_t i = 0; i < n; ++i) s += static_cast<char>(i * 131 + (i >> 3));
  return s;
}
}  // namespace

TEST_CASE("crc32c: published vectors") {
  CHECK(crc32c("") == 0);
  CHECK(crc32c("123456789") == 0xE3069283u);
  // RFC 3720, B.4
  CHECK(crc32c(std::string(32, '\0')) == 0x8A9136AAu);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62A8AB43u);
  std::string up, down;
  for (int i = 0; i < 32; ++i) up += static_cast<char>(i), down += static_cast<char>(31 - i);
  CHECK(crc32c(up) == 0x46DD794Eu);
  CHECK(crc32c(down) == 0x113FDB5Cu);
}

TEST_CASE("crc32c: every length and alignment agrees with the definition, by table and by what was compiled in") {
  const std::string all = ramp(200);
  for (std::size_t from = 0; from < 9; ++from)
    for (std::size_t n = 0; from + n <= 100; ++n) {
      const std::string_view s = std::string_view(all).substr(from, n);
      const auto expected = by_definition(s);
      REQUIRE(crc32c(s) == expected);
      REQUIRE((detail::crc32c_by_table(0xFFFFFFFFu, s.data(), n) ^ 0xFFFFFFFFu) == expected);
    }
}

TEST_CASE("crc32c: extend continues") {
  const std::string all = ramp(67);
  for (std::size_t cut = 0; cut <= all.size(); ++cut)
    REQUIRE(extend(crc32c(std::string_view(all).substr(0, cut)), std::string_view(all).substr(cut)) == crc32c(all));
  CHECK(crc32c(std::as_bytes(std::span(all.data(), all.size()))) == crc32c(all));
}

TEST_CASE("crc32c: mask") {
  CHECK(mask(0) == 0xA282EAD8u);
  CHECK(mask(0xE3069283u) != 0xE3069283u);
  for (std::uint32_t c : {0u, 1u, 0xE3069283u, 0xFFFFFFFFu, 0x80000000u}) CHECK(unmask(mask(c)) == c);
}

TEST_CASE("crc32c: in constant evaluation") {
  static_assert(crc32c("123456789") == 0xE3069283u);
  static_assert(unmask(mask(crc32c("gradus"))) == crc32c("gradus"));
}

TEST_CASE("crc32c: long runs, taken side by side, agree with the table at every seam") {
  const std::string all = ramp(60000);
  const auto* p = all.data();
  for (const std::size_t n : {12287u, 12288u, 12289u, 24575u, 24576u, 36900u, 59999u})
    for (const std::size_t at : {0u, 1u}) {
      const auto by_table = detail::crc32c_by_table(0xFFFFFFFFu, p + at, n) ^ 0xFFFFFFFFu;
      CHECK(crc32c(std::string_view(p + at, n)) == by_table);
    }
}
