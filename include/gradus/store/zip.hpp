// ZIP files (PKWARE's APPNOTE 6.3): members stored as they are, or deflated; ZIP64 where 32 bits do not suffice.
//
//   zip_layout zip;                                     writing: what stands between the members' bytes
//   write(zip.member("a.npy", size, crc)), write(the member's bytes) ..., write(zip.directory());
//
//   std::vector<zip_member> members;                    reading: refuses by value, with the reason
//   std::string why = read_zip(file, members);
//
// A reader trusts nothing: the central directory has to end where the end record begins, sizes and places come from it
// alone, every member lies between its own local header and the directory, no two overlap, no name stands twice.
#pragma once
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
  std::uint32_t crc = 0;             // CRC-32 of what it holds
  std::uint64_t size = 0;            // of what it holds
  std::span<const std::byte> bytes;  // as they lie in the file
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

// Little-endian numbers at places that are known to lie inside.
template <std::integral Number>
Number zip_number(std::span<const std::byte> bytes, std::size_t at) {
  Number n;
  std::memcpy(&n, bytes.data() + at, sizeof n);
  return n;
}
}  // namespace detail

// Lays a ZIP file out: gives the bytes that stand in front of each member, and those at the end. Names are UTF-8.
class zip_layout {
public:
  // A member's data begin at a `multiple` of this, a power of two of at most 4096: a field of the header is as
  // long as that takes.
  explicit zip_layout(std::size_t multiple = 64) : alignment_(multiple) {}

  // The local header of the next member, which is stored. Its `size` bytes follow.
  // Error: invalid_argument for a name that is empty, holds a zero byte, or has more than 65535 bytes.
  std::vector<std::byte> member(std::string_view name, std::uint64_t size, std::uint32_t crc);

  // Central directory and end record; nothing follows.
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
  // Local and central headers share this. All members are of the first of January 1980, so that equal content makes
  // equal files.
  static void common(std::vector<std::byte>& out, bool newer, std::string_view name, std::uint64_t size,
                     std::uint32_t crc, bool large);

  std::size_t alignment_;
  std::uint64_t at_ = 0;
  std::vector<placed> members_;
};

// The members of a ZIP file, in the order of its directory. Why it is refused, or nothing. The content of the members
// is not looked at; their checksums are the caller's to check.
std::string read_zip(std::span<const std::byte> file, std::vector<zip_member>& members,
                     const reader_limits& limits = {}, status* kind = nullptr);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "zip.ipp"
#endif
