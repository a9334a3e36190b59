// The bodies of ordered_code.hpp.
#pragma once
#include "../base/body.hpp"
#include "ordered_code.hpp"

namespace gradus::inline GRADUS_BUILD::ordered_code {

GRADUS_BODY void put_number(std::string& out, std::uint64_t value) {
  const int bytes = static_cast<int>((std::bit_width(value) + 7) / 8);
  out += static_cast<char>(bytes);
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i));
}

GRADUS_BODY void put_string(std::string& out, std::string_view value) {
  for (const char c : value) {
    out += c;
    if (c == '\0') out += '\xff';
    if (c == '\xff') out += '\0';
  }
  out.append("\0\1", 2);
}

GRADUS_BODY void put_signed(std::string& out, std::int64_t value) {
  const int n = detail::signed_bytes(value);
  for (int i = 0; i < n; ++i) {
    const int shift = 8 * (n - 1 - i);
    const auto byte = static_cast<unsigned>((shift >= 64 ? value >> 63 : value >> shift) & 0xFF);
    out += static_cast<char>(byte ^ detail::header_byte(n, i));
  }
}

GRADUS_BODY bool take_number(std::string_view& in, std::uint64_t& value) {
  value = 0;
  if (in.empty()) return false;
  const auto bytes = static_cast<unsigned char>(in[0]);
  if (bytes > 8 || in.size() < bytes + 1u || (bytes != 0 && in[1] == '\0')) return false;
  for (std::size_t i = 1; i <= bytes; ++i) value = value << 8 | static_cast<unsigned char>(in[i]);
  in.remove_prefix(bytes + 1u);
  return true;
}

GRADUS_BODY bool take_string(std::string_view& in, std::string& value) {
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

GRADUS_BODY bool take_signed(std::string_view& in, std::int64_t& value) {
  value = 0;
  if (in.empty()) return false;
  const bool negative = (in[0] & 0x80) == 0;
  const unsigned flip = negative ? 0xFFu : 0u;
  // The length is the number of top bits that are like the first, over at most two bytes.
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
