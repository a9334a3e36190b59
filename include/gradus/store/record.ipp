// The bodies of record.hpp.
#pragma once
#include "../base/body.hpp"
#include "record.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void put_fixed(std::byte* at, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) at[i] = static_cast<std::byte>(value >> (8 * i));
}

GRADUS_BODY std::uint64_t get_fixed(const std::byte* at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value |= std::to_integer<std::uint64_t>(at[i]) << (8 * i);
  return value;
}

GRADUS_BODY append_guard::~append_guard() {
  if (!keep) out.resize(size);
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY void append_record(std::vector<std::byte>& out, std::span<const std::byte> payload) {
  append_record(out, [&](std::vector<std::byte>& o) { o.insert(o.end(), payload.begin(), payload.end()); });
}

GRADUS_BODY std::size_t span_source::read(std::span<std::byte> to) {
  const std::size_t n = std::min(to.size(), left.size());
  if (n != 0) std::memcpy(to.data(), left.data(), n);
  left = left.subspan(n);
  return n;
}

}  // namespace gradus
