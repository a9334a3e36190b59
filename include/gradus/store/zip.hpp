// ZIP files (PKWARE's APPNOTE 6.3) with members that are stored as they are, or deflated, and ZIP64 where 32 bits do
// not suffice.
//
//   zip_layout zip;                                     writing: returns the bytes between those of the members
//   write(zip.member("a.npy", size, crc)), write(the member's bytes) ..., write(zip.directory());
//
//   std::vector<zip_member> members;                    reading: returns the reason of a refusal
//   std::string why = read_zip(file, members);
//
// A reader trusts nothing: the central directory has to end where the end record begins, sizes and places come from the
// directory alone, every member lies between its own local header and the directory, no two overlap, and no name occurs
// twice.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inflate.hpp"
#include "reader_limits.hpp"

namespace gradus::inline GRADUS_BUILD {

struct zip_member {
  std::string name;
  bool deflated = false;
  std::uint32_t crc = 0;             // CRC-32 of the decompressed content
  std::uint64_t size = 0;            // of the decompressed content
  std::span<const std::byte> bytes;  // as they are in the file
};

namespace detail {
struct zip_mark {
  static constexpr std::uint32_t local = 0x04034b50, central = 0x02014b50, end = 0x06054b50, end64 = 0x06064b50,
                                 locator64 = 0x07064b50;
  static constexpr std::size_t local_bytes = 30, central_bytes = 46, end_bytes = 22, end64_bytes = 56,
                               locator64_bytes = 20;
  static constexpr std::uint16_t zip64_field = 1, alignment_field = 0xd935;
  static constexpr std::uint32_t full = 0xFFFFFFFF;
};

// Reads a little-endian number at a place that is known to lie inside.
template <std::integral Number>
Number zip_number(std::span<const std::byte> bytes, std::size_t at) {
  Number n;
  std::memcpy(&n, bytes.data() + at, sizeof n);
  return n;
}
}  // namespace detail

// Lays out a ZIP file: returns the bytes in front of each member, and those at the end. Names are UTF-8.
class zip_layout {
public:
  // The data of each member begin at a multiple of `multiple`, which is a power of two of at most 4096; a field of the
  // header is as long as that needs.
  explicit zip_layout(std::size_t multiple = 64) : alignment_(multiple) {}

  // Returns the local header of the next member, which is stored. Its `size` bytes follow. Raises invalid_argument for
  // a name that is empty, holds a zero byte, or has more than 65535 bytes.
  std::vector<std::byte> member(std::string_view name, std::uint64_t size, std::uint32_t crc);

  // Returns the central directory and the end record; nothing follows.
  std::vector<std::byte> directory() const;

private:
  struct placed {
    std::string name;
    std::uint64_t at, size;
    std::uint32_t crc;
  };

  template <std::integral Number>
  static void number(std::vector<std::byte>& out, Number n) {
    const auto* p = reinterpret_cast<const std::byte*>(&n);
    out.insert(out.end(), p, p + sizeof n);
  }
  static void append(std::vector<std::byte>& out, std::string_view s);
  // Appends what local and central headers have in common. All members have the date of the first of January 1980, so
  // that equal content gives equal files.
  static void common(std::vector<std::byte>& out, bool newer, std::string_view name, std::uint64_t size,
                     std::uint32_t crc, bool large);

  std::size_t alignment_;
  std::uint64_t at_ = 0;
  std::vector<placed> members_;
};

// Reads the members of a ZIP file, in the order of its directory. Returns why the file is refused, or an empty text.
// The content of the members is not read; the caller has to check their checksums.
std::string read_zip(std::span<const std::byte> file, std::vector<zip_member>& members,
                     const reader_limits& limits = {}, status* kind = nullptr);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "zip.ipp"
#endif
