// Checksums and copies of large spans by several threads, for who asks for them: reading a checkpoint of gigabytes is
// bound by what one core can move.
#pragma once
#include <algorithm>
#include <cstring>
#include <system_error>
#include <vector>

#include "../base/thread.hpp"
#include "crc32c.hpp"

namespace gradus {

// crc32c(ab), given crc32c(a), crc32c(b) and the length of b. By the operator for one zero bit, squared as often as the
// length has bits (zlib's crc32_combine does the same for its polynomial).
inline std::uint32_t crc32c_joined(std::uint32_t a, std::uint32_t b, std::uint64_t bytes_of_b) {
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

namespace detail {
// Calls work(part, from, to) for `threads` parts of 0..bytes, cut at multiples of 4096; the first on this thread, and
// those for which no thread can be had.
template <class Work>
void in_parts(std::size_t bytes, int threads, Work&& work) {
  const std::size_t parts = threads < 1 ? 1 : static_cast<std::size_t>(threads);
  const std::size_t each = (bytes / parts + 4095) / 4096 * 4096;
  std::vector<joining_thread> others;
  const auto part = [&work, each, bytes](std::size_t i) {
    work(i, std::min(i * each, bytes), std::min((i + 1) * each, bytes));
  };
  std::size_t begun = 1;
#if defined(__cpp_exceptions)
  try {
    for (; begun < parts; ++begun) others.emplace_back([&part, begun] { part(begun); });
  } catch (const std::system_error&) {
  }
#else
  for (; begun < parts; ++begun) others.emplace_back([&part, begun] { part(begun); });
#endif
  part(0);
  for (; begun < parts; ++begun) part(begun);
}
inline constexpr std::size_t worth_parts = std::size_t{16} << 20;
}  // namespace detail

// crc32c by so many threads; small spans by this one alone.
inline std::uint32_t crc32c(std::span<const std::byte> bytes, int threads) {
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

// memcpy by so many threads.
inline void copy_bytes(std::span<std::byte> to, std::span<const std::byte> from, int threads) {
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
