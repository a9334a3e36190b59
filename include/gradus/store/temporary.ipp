// The bodies of temporary.hpp.
#pragma once
#include "../base/body.hpp"
#include "temporary.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::uint64_t fresh_number() {
  std::uint64_t n = 0;
#if __has_include(<sys/random.h>)
  if (::getentropy(&n, sizeof n) == 0) return n;
#endif
  static std::atomic<std::uint64_t> count{0};
  n = reinterpret_cast<std::uintptr_t>(&n) + (++count) * 0x9E3779B97F4A7C15u;
#if defined(__unix__) || defined(__APPLE__)
  n ^= static_cast<std::uint64_t>(::getpid()) << 32;
#endif
  return n;
}

}  // namespace gradus::detail
