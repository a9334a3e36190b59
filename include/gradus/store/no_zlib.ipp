// The bodies of no_zlib.hpp.
#pragma once
#include "../base/body.hpp"
#include "no_zlib.hpp"

namespace gradus::inline GRADUS_BUILD::detail::no_zlib {

GRADUS_BODY deflate_stream::deflate_stream(bool gzip, int) {
  refuse_without(zlib_library, gzip ? "writing gzip data (a file named .gz)" : "writing zlib data",
                 "write files that are not compressed");
}

GRADUS_BODY bool is_zlib(std::span<const std::byte> start) {
  const auto at = [&](std::size_t i) { return std::to_integer<unsigned>(start[i]); };
  if (start.size() < 3 || at(0) != 0x78 || (at(1) != 0x01 && at(1) != 0x5e && at(1) != 0x9c && at(1) != 0xda))
    return false;
  bool is_text = true, is_length = start.size() >= 8;
  for (std::size_t i = 1; i < start.size() && i < 16; ++i)
    is_text = is_text && ((at(i) >= 0x20 && at(i) < 0x7f) || at(i) == '\n' || at(i) == '\r' || at(i) == '\t');
  for (std::size_t i = 4; is_length && i < 8; ++i) is_length = at(i) == 0;
  return !is_text && !is_length;
}

GRADUS_BODY std::uint32_t zip_crc32(std::span<const std::byte> bytes, std::uint32_t before) {
  static constexpr auto table = [] {
    std::array<std::uint32_t, 256> t{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? 0xedb88320u ^ (c >> 1) : c >> 1;
      t[i] = c;
    }
    return t;
  }();
  std::uint32_t c = ~before;
  for (const std::byte b : bytes) c = table[(c ^ std::to_integer<std::uint32_t>(b)) & 0xff] ^ (c >> 8);
  return ~c;
}

GRADUS_BODY std::string inflate_raw(std::span<const std::byte>, std::uint64_t, std::vector<std::byte>&) {
  refuse_without(zlib_library, "a compressed member of a ZIP file (.npz)", "write it again without compression");
}

}  // namespace gradus::detail::no_zlib
