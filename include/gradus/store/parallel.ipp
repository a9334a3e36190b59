// The bodies of parallel.hpp.
#pragma once
#include "../base/body.hpp"
#include "parallel.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::uint32_t crc32c_joined(std::uint32_t a, std::uint32_t b, std::uint64_t bytes_of_b) {
  std::uint32_t op[32], squared[32];  // what each bit becomes
  op[0] = 0x82F63B78u;
  for (int i = 1; i < 32; ++i) op[i] = 1u << (i - 1);
  const auto apply = [](const std::uint32_t* by, std::uint32_t r) {
    std::uint32_t out = 0;
    for (; r != 0; r >>= 1, ++by)
      if ((r & 1u) != 0) out ^= *by;
    return out;
  };
  int squares = 3;  // a byte is eight bits
  for (std::uint64_t n = bytes_of_b; n != 0; n >>= 1, squares = 1) {
    for (; squares > 0; --squares) {
      for (int i = 0; i < 32; ++i) squared[i] = apply(op, op[i]);
      std::memcpy(op, squared, sizeof op);
    }
    if ((n & 1u) != 0) a = apply(op, a);
  }
  return a ^ b;
}

GRADUS_BODY std::uint32_t crc32c(std::span<const std::byte> bytes, int threads) {
  if (threads < 2 || bytes.size() < detail::worth_parts) return crc32c(bytes);
  struct part {
    std::uint32_t crc = 0;
    std::size_t bytes = 0;
  };
  std::vector<part> parts(static_cast<std::size_t>(threads));
  detail::in_parts(bytes.size(), threads, [&](std::size_t i, std::size_t from, std::size_t to) {
    parts[i] = {crc32c(bytes.subspan(from, to - from)), to - from};
  });
  std::uint32_t crc = parts.front().crc;
  for (std::size_t i = 1; i < parts.size(); ++i) crc = crc32c_joined(crc, parts[i].crc, parts[i].bytes);
  return crc;
}

GRADUS_BODY void copy_bytes(std::span<std::byte> to, std::span<const std::byte> from, int threads) {
  if (from.empty()) return;
  if (threads < 2 || from.size() < detail::worth_parts) {
    std::memcpy(to.data(), from.data(), from.size());
    return;
  }
  detail::in_parts(from.size(), threads, [&](std::size_t, std::size_t begin, std::size_t end) {
    std::memcpy(to.data() + begin, from.data() + begin, end - begin);
  });
}

}  // namespace gradus
