// The bodies of varint.hpp.
#pragma once
#include "../base/body.hpp"
#include "varint.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::string_view as_chars(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

GRADUS_BODY void put_bytes(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

GRADUS_BODY void put_bytes(std::vector<std::byte>& out, std::string_view chars) {
  put_bytes(out, std::as_bytes(std::span(chars)));
}

GRADUS_BODY void put_varint(std::vector<std::byte>& out, std::uint64_t n) {
  for (; n >= 0x80; n >>= 7) out.push_back(static_cast<std::byte>(n | 0x80));
  out.push_back(static_cast<std::byte>(n));
}

GRADUS_BODY std::uint64_t varint_source::varint() {
  std::uint64_t n = 0;
  for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto b = std::to_integer<std::uint64_t>(rest_.front());
    rest_ = rest_.subspan(1);
    if (shift == 63 && b > 1) break;  // more than 64 bits
    n |= (b & 0x7F) << shift;
    if (b < 0x80) return n;
  }
  return fail();
}

GRADUS_BODY std::uint32_t varint_source::varint32() {
  const std::uint64_t n = varint();
  return static_cast<std::uint32_t>(n <= std::numeric_limits<std::uint32_t>::max() ? n : fail());
}

GRADUS_BODY std::span<const std::byte> varint_source::take(std::uint64_t n) {
  if (bad_ || n > rest_.size()) return fail(), std::span<const std::byte>{};
  const auto front = rest_.first(static_cast<std::size_t>(n));
  rest_ = rest_.subspan(front.size());
  return front;
}

GRADUS_BODY std::uint64_t varint_source::fail() {
  bad_ = true;
  rest_ = {};
  return 0;
}

}  // namespace gradus::detail
