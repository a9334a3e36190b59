// OrderedCode writes numbers and strings as bytes that sort as the values do. TensorFlow uses it for the names of the
// slices of partitioned variables.
//
//   number   one byte with the number of bytes that follow, big-endian, as few as possible:   0 -> 00, 1 -> 01 01
//   string   its bytes, 00 as 00 ff and ff as ff 00, then 00 01
//   signed   n bytes, as few as possible, with 7n bits of two's complement; the n top bits differ from the sign, and
//            so give n:   0 -> 80, -1 -> 7f, 64 -> c0 40
//
// The source is tensorflow/core/lib/strings/ordered_code.cc. Reading refuses bytes that writing does not make.
#pragma once
#include "../base/build.hpp"

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace gradus::inline GRADUS_BUILD::ordered_code {

void put_number(std::string& out, std::uint64_t value);

void put_string(std::string& out, std::string_view value);

namespace detail {
// Returns the bytes that a signed number takes, with 7 bits of it in each.
constexpr int signed_bytes(std::int64_t value) {
  const auto magnitude = static_cast<std::uint64_t>(value < 0 ? ~value : value);
  return static_cast<int>(std::bit_width(magnitude)) / 7 + 1;
}
// Returns byte i of the n-byte header that marks the length: n ones from the top.
constexpr unsigned header_byte(int n, int i) {
  const int leading = n - 8 * i;
  return leading >= 8 ? 0xFFu : leading <= 0 ? 0u : 0xFF00u >> leading & 0xFFu;
}
}  // namespace detail

void put_signed(std::string& out, std::int64_t value);

// Each takes a value from the front of `in`. Returns false if there is none, and `in` is then of no further use.
bool take_number(std::string_view& in, std::uint64_t& value);

bool take_string(std::string_view& in, std::string& value);

bool take_signed(std::string_view& in, std::int64_t& value);

}  // namespace gradus::ordered_code

#ifndef GRADUS_COMPILED
#include "ordered_code.ipp"
#endif
