// This header computes checksums and copies large spans by several threads, on request: on one thread, reading a
// checkpoint of gigabytes is bound by the bandwidth of one core.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <cstring>
#include <system_error>
#include <vector>

#include "../base/thread.hpp"
#include "crc32c.hpp"

namespace gradus::inline GRADUS_BUILD {

// Returns crc32c(ab), given crc32c(a), crc32c(b) and the length of b. It uses the operator for one zero bit, squared as
// often as the length has bits (zlib's crc32_combine does the same for its polynomial).
std::uint32_t crc32c_joined(std::uint32_t a, std::uint32_t b, std::uint64_t bytes_of_b);

namespace detail {
// Calls work(part, from, to) for `threads` parts of 0..bytes, cut at multiples of 4096. The first part runs on this
// thread, and so do those for which no thread can be created.
template <class Work>
void in_parts(std::size_t bytes, int threads, Work&& work) {
  const std::size_t parts = threads < 1 ? 1 : static_cast<std::size_t>(threads);
  const std::size_t each = (bytes / parts + 4095) / 4096 * 4096;
  const auto part = [&work, each, bytes](std::size_t i) {
    work(i, std::min(i * each, bytes), std::min((i + 1) * each, bytes));
  };
  std::vector<joining_thread> others;  // declared after `part`, so that they are joined before it is destroyed
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

// Computes crc32c by so many threads; for small spans by this thread alone.
std::uint32_t crc32c(std::span<const std::byte> bytes, int threads);

// Copies as memcpy does, by so many threads; small spans by this thread alone.
void copy_bytes(std::span<std::byte> to, std::span<const std::byte> from, int threads);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "parallel.ipp"
#endif
