// The bytes of a record in flash, for the store on a board (store/flash.hpp) and for images on a desktop
// (codec/flash_image.hpp); docs/formats/flash.md describes them.
#pragma once
#include "../base/build.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "../base/dtype.hpp"
#include "../base/shape.hpp"

namespace gradus::inline GRADUS_BUILD {
namespace detail {

// CRC-32C (store/crc32c.hpp) with a table of 16 words: half a byte at a time.
constexpr std::uint32_t crc32c_by_nibble(std::uint32_t crc, const std::byte* p, std::size_t n) {
  constexpr std::uint32_t table[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
                                       0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                       0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};
  for (crc = ~crc; n != 0; --n, ++p) {
    crc ^= static_cast<std::uint32_t>(*p);
    crc = crc >> 4 ^ table[crc & 15];
    crc = crc >> 4 ^ table[crc & 15];
  }
  return ~crc;
}

// The bytes of a record (docs/formats/flash.md). All numbers are little-endian.
struct flash_format {
  static constexpr std::uint32_t line = 32, version = 1;
  static constexpr std::uint32_t header_at = line, payload_at = 2 * line;
  static constexpr std::uint32_t mark[2] = {0x44415247, 0x48534c46};  // "GRADFLSH"
  // The words of the header, which are the same in every version.
  enum word : int { version_word, sequence, fingerprint, bytes, payload_crc, entries, sector_bytes, header_crc, words };

  // What comes before a tensor's name, extents (u32 each) and bytes.
  struct entry {
    std::uint32_t id, bytes;
    std::uint16_t name_bytes;
    std::uint8_t type, rank;
  };
  static_assert(sizeof(entry) == 12);

  template <class T>
  static constexpr T little(T n) {
    if constexpr (std::endian::native == std::endian::big) {
      T turned = 0;
      for (std::size_t i = 0; i < sizeof n; ++i, n = static_cast<T>(n >> 4 >> 4))
        turned = static_cast<T>(turned << 4 << 4 | (n & 0xFF));
      return turned;
    }
    return n;
  }
  static constexpr std::uint32_t padded(std::uint32_t bytes) { return (bytes + line - 1) / line * line; }
  static constexpr std::uint32_t sectors_of(std::uint32_t bytes, std::uint32_t sector_bytes) {
    return (payload_at + padded(bytes) + sector_bytes - 1) / sector_bytes;
  }
  // The identity of one tensor: its type, rank, extents and name. A record's fingerprint is the sum of these, so the
  // order of the tensors does not matter.
  struct identity {
    std::uint32_t words[1 + max_rank];  // type and rank, extents
    std::uint32_t id, extent_bytes;

    identity(std::string_view name, dtype type, const extents& dims)
        : words{little(static_cast<std::uint32_t>(type) << 8 | static_cast<std::uint32_t>(dims.rank))},
          extent_bytes(4 * static_cast<std::uint32_t>(dims.rank)) {
      for (int i = 0; i < dims.rank; ++i) words[1 + i] = little(static_cast<std::uint32_t>(dims.dims[i]));
      id = crc32c_by_nibble(0, reinterpret_cast<const std::byte*>(words), 4 + extent_bytes);
      id = crc32c_by_nibble(id, reinterpret_cast<const std::byte*>(name.data()), name.size());
    }
  };
};

}  // namespace detail

}  // namespace gradus
