// This header stands in for zlib in store/inflate.hpp in a program that is compiled without it
// (base/optional_library.hpp): compressed data are recognized and refused by name, and CRC-32 is computed here, so that
// files that are not compressed can be read and written all the same.
#pragma once
#include "../base/build.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../base/optional_library.hpp"

namespace gradus::inline GRADUS_BUILD::detail::no_zlib {

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
  explicit deflate_stream(bool gzip, int = -1);
  void write(std::span<const std::byte>, std::vector<std::byte>&) {}
  void flush(std::vector<std::byte>&) {}
  void finish(std::vector<std::byte>&) {}
};

// Returns true if data that begin like this look like zlib's. Nothing can be decompressed here, so it checks that the
// two bytes of the header are as writers make them, and that what follows is neither printable text ("x^2") nor a
// record's length, whose upper bytes are 0.
bool is_zlib(std::span<const std::byte> start);

// Returns the CRC-32 (the polynomial of gzip, ZIP and PNG) of bytes that follow those whose checksum is `before`.
std::uint32_t zip_crc32(std::span<const std::byte> bytes, std::uint32_t before = 0);

[[noreturn]] std::string inflate_raw(std::span<const std::byte>, std::uint64_t, std::vector<std::byte>&);

}  // namespace gradus::detail::no_zlib

#ifndef GRADUS_COMPILED
#include "no_zlib.ipp"
#endif
