// The name by which a list of state says which frozen weights (ops/frozen.hpp) a model has, where there is no place for
// a blob: in a board's flash. An empty tensor has this name, so state above other weights is that of another model.
#pragma once
#include "build.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace gradus::inline GRADUS_BUILD::detail {

// A checkpoint has one blob of this name, with a digest of 8 bytes for each layer, the lowest byte first.
inline constexpr std::string_view frozen_weights_name = "frozen_weights";
constexpr std::uint64_t digest_in(std::span<const std::byte> blob, std::size_t layer) {
  std::uint64_t digest = 0;
  for (std::size_t k = 0; k < 8; ++k) digest |= std::to_integer<std::uint64_t>(blob[8 * layer + k]) << (8 * k);
  return digest;
}
constexpr void put_digest(std::span<std::byte> blob, std::size_t layer, std::uint64_t digest) {
  for (std::size_t k = 0; k < 8; ++k) blob[8 * layer + k] = static_cast<std::byte>(digest >> (8 * k) & 0xffu);
}

struct frozen_label {
  static constexpr std::size_t prefix = frozen_weights_name.size() + 1, digits = 16;
  char text[prefix + digits];

  constexpr explicit frozen_label(std::uint64_t digest) : text{} {
    for (std::size_t i = 0; i + 1 < prefix; ++i) text[i] = frozen_weights_name[i];
    text[prefix - 1] = '/';
    for (std::size_t i = 0; i < digits; ++i) text[prefix + i] = "0123456789abcdef"[digest >> (60 - 4 * i) & 15];
  }
  constexpr std::string_view name() const { return {text, sizeof text}; }
  // Returns whether it is such a name, and its digest.
  static constexpr bool read(std::string_view name, std::uint64_t& digest) {
    if (name.size() != prefix + digits || !name.starts_with(frozen_weights_name) || name[prefix - 1] != '/')
      return false;
    digest = 0;
    for (const char c : name.substr(prefix)) {
      const bool is_digit = c >= '0' && c <= '9';
      if (!is_digit && (c < 'a' || c > 'f')) return false;
      digest = digest << 4 | static_cast<std::uint64_t>(is_digit ? c - '0' : c - 'a' + 10);
    }
    return true;
  }
};

}  // namespace gradus::detail
