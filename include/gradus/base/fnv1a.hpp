// FNV-1a, 64 bits (Fowler, Noll, Vo; RFC 9923). The hash distinguishes names and contents, but does not protect against
// adversaries.
#pragma once
#include "build.hpp"

#include <cstdint>
#include <string_view>

namespace gradus::inline GRADUS_BUILD::detail {
class fnv1a {
public:
  constexpr fnv1a& text(std::string_view s) {
    for (const char c : s) word(static_cast<unsigned char>(c));
    return *this;
  }
  // Adds the lowest `bytes` bytes of a number, the least significant first.
  constexpr fnv1a& number(std::uint64_t n, int bytes = 8) {
    for (int i = 0; i < bytes; ++i) word(n >> (8 * i) & 0xffu);
    return *this;
  }
  // Adds up to 64 bits in one step. The result differs from FNV's own, which takes single bytes, but is as good if only
  // this library reads it.
  constexpr fnv1a& word(std::uint64_t w) {
    value_ = (value_ ^ w) * 1099511628211u;
    return *this;
  }
  constexpr std::uint64_t value() const { return value_; }

private:
  std::uint64_t value_ = 14695981039346656037u;
};
}  // namespace gradus::detail
