// OrderedCode: numbers and strings as bytes that sort as the values do. TensorFlow names the slices of partitioned
// variables with it.
//
//   number   one byte that counts, then so many big-endian bytes, as few as possible:   0 -> 00, 1 -> 01 01
//   string   its bytes, 00 as 00 ff and ff as ff 00, then 00 01
//   signed   n bytes, as few as possible, of 7n bits of two's complement, whose n top bits say n by being unlike the
//            sign:   0 -> 80, -1 -> 7f, 64 -> c0 40
//
// tensorflow/core/lib/strings/ordered_code.cc. Reading refuses what writing does not write.
#pragma once
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace gradus::ordered_code {

inline void put_number(std::string& out, std::uint64_t value) {
  const int bytes = static_cast<int>((std::bit_width(value) + 7) / 8);
  out += static_cast<char>(bytes);
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i));
}

inline void put_string(std::string& out, std::string_view value) {
  for (const char c : value) {
    out += c;
    if (c == '\0') out += '\xff';
    if (c == '\xff') out += '\0';
  }
  out.append("\0\1", 2);
}

namespace detail {
// Bytes that a signed number takes: it has 7 bits in each.
constexpr int signed_bytes(std::int64_t value) {
  const auto magnitude = static_cast<std::uint64_t>(value < 0 ? ~value : value);
  return static_cast<int>(std::bit_width(magnitude)) / 7 + 1;
}
// Byte i of n of the header that marks the length: n ones from the top.
constexpr unsigned header_byte(int n, int i) {
  const int leading = n - 8 * i;
  return leading >= 8 ? 0xFFu : leading <= 0 ? 0u : 0xFF00u >> leading & 0xFFu;
}
}  // namespace detail

inline void put_signed(std::string& out, std::int64_t value) {
  const int n = detail::signed_bytes(value);
  for (int i = 0; i < n; ++i) {
    const int shift = 8 * (n - 1 - i);
    const auto byte = static_cast<unsigned>((shift >= 64 ? value >> 63 : value >> shift) & 0xFF);
    out += static_cast<char>(byte ^ detail::header_byte(n, i));
  }
}

// Each takes a value from the front of `in`; false, and `in` is of no further use, if none is there.
inline bool take_number(std::string_view& in, std::uint64_t& value) {
  value = 0;
  if (in.empty()) return false;
  const auto bytes = static_cast<unsigned char>(in[0]);
  if (bytes > 8 || in.size() < bytes + 1u || (bytes != 0 && in[1] == '\0')) return false;
  for (std::size_t i = 1; i <= bytes; ++i) value = value << 8 | static_cast<unsigned char>(in[i]);
  in.remove_prefix(bytes + 1u);
  return true;
}

inline bool take_string(std::string_view& in, std::string& value) {
  value.clear();
  for (std::size_t i = 0; i + 1 < in.size(); ++i) {
    const char c = in[i], next = in[i + 1];
    if (c != '\0' && c != '\xff') {
      value += c;
      continue;
    }
    if (c == '\0' && next == '\1') return in.remove_prefix(i + 2), true;
    if (next != (c == '\0' ? '\xff' : '\0')) return false;
    value += c, ++i;
  }
  return false;
}

inline bool take_signed(std::string_view& in, std::int64_t& value) {
  value = 0;
  if (in.empty()) return false;
  const bool negative = (in[0] & 0x80) == 0;
  const unsigned flip = negative ? 0xFFu : 0u;
  // The length: top bits that are like the first, over at most two bytes.
  unsigned top = (static_cast<unsigned char>(in[0]) ^ flip) << 8;
  if (in.size() > 1) top |= static_cast<unsigned char>(in[1]) ^ flip;
  const int n = std::countl_one(static_cast<std::uint16_t>(top));
  if (n > 10 || in.size() < static_cast<std::size_t>(n)) return false;
  std::uint64_t bits = negative ? ~std::uint64_t{0} : 0;
  for (int i = 0; i < n; ++i) {
    const unsigned byte = static_cast<unsigned char>(in[static_cast<std::size_t>(i)]) ^ detail::header_byte(n, i);
    if (n - i > 8 && byte != flip) return false;  // above 64 bits there is only the sign
    bits = bits << 8 | byte;
  }
  value = static_cast<std::int64_t>(bits);
  if ((value < 0) != negative || detail::signed_bytes(value) != n) return false;
  in.remove_prefix(static_cast<std::size_t>(n));
  return true;
}

}  // namespace gradus::ordered_code
