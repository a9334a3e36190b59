// What store/inflate.hpp is made of in a program that is compiled without zlib (base/optional_library.hpp): compressed
// data are recognized and refused by name, and CRC-32 is computed here, so that files that are not compressed can be
// read and written all the same.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../base/optional_library.hpp"

namespace gradus::detail::no_zlib {

// The constructor raises, so no other function is ever called.
class inflate_state {
public:
  explicit inflate_state(std::string_view name) { refuse_without(zlib_library, text(name, ": compressed data")); }
  struct progress {
    std::size_t taken = 0, given = 0;
    bool ended = false, bad = false;
  };
  progress step(std::span<const std::byte>, std::span<std::byte>) { return {}; }
  void next_member() {}
  std::uint64_t used() const { return 0; }
  [[noreturn]] void damaged() const { raise(status::internal, "there is no decompressor"); }
  [[noreturn]] void truncated() const { damaged(); }
  [[noreturn]] void followed_by(std::string_view) const { damaged(); }
};

class deflate_stream {
public:
  explicit deflate_stream(bool gzip, int = -1) {
    refuse_without(zlib_library, gzip ? "writing gzip data (a file named .gz)" : "writing zlib data",
                   "write files that are not compressed");
  }
  void write(std::span<const std::byte>, std::vector<std::byte>&) {}
  void flush(std::vector<std::byte>&) {}
  void finish(std::vector<std::byte>&) {}
};

// Whether data that begin like this look like zlib's. Nothing can be tried here, so it is the two bytes of the header
// as writers make them, and behind them neither printable text ("x^2") nor a record's length, whose upper bytes are 0.
inline bool is_zlib(std::span<const std::byte> start) {
  const auto at = [&](std::size_t i) { return std::to_integer<unsigned>(start[i]); };
  if (start.size() < 3 || at(0) != 0x78 || (at(1) != 0x01 && at(1) != 0x5e && at(1) != 0x9c && at(1) != 0xda))
    return false;
  bool is_text = true, is_length = start.size() >= 8;
  for (std::size_t i = 1; i < start.size() && i < 16; ++i)
    is_text = is_text && ((at(i) >= 0x20 && at(i) < 0x7f) || at(i) == '\n' || at(i) == '\r' || at(i) == '\t');
  for (std::size_t i = 4; is_length && i < 8; ++i) is_length = at(i) == 0;
  return !is_text && !is_length;
}

// CRC-32 (the polynomial of gzip, ZIP and PNG) of bytes that follow those whose checksum is `before`.
inline std::uint32_t zip_crc32(std::span<const std::byte> bytes, std::uint32_t before = 0) {
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

[[noreturn]] inline std::string inflate_raw(std::span<const std::byte>, std::uint64_t, std::vector<std::byte>&) {
  refuse_without(zlib_library, "a compressed member of a ZIP file (.npz)", "write it again without compression");
}

}  // namespace gradus::detail::no_zlib
