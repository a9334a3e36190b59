// The outer frame of the checkpoints in this library's own format. All codecs of that format share it; they differ in
// how they write the manifest.
//
//    0  magic "GRADUSCK"               48  u64 file length
//    8  u32 format version             56  u32 crc32c of the manifest
//   12  u32 byte order mark            60  u32 crc32c of bytes 0..59
//   16  codec name, 16 bytes, zeros    64  manifest, zeros to a multiple of 64,
//   32  u64 manifest length                then each tensor's bytes, zeros between them so that each starts
//   40  u64 number of tensors              at a multiple of 64
//
// All numbers are little-endian. Every version keeps this layout of the first 64 bytes, so that an older library can
// distinguish a newer file from a damaged one. Every byte of a file is covered: by the checksum of the header, of the
// manifest or of a tensor, or by the rule that padding is zero and that tensors follow one another in the manifest's
// order without holes. docs/formats/checkpoint.md has a worked example.
#pragma once
#include "../base/build.hpp"

#include <bit>
#include <cstring>

#include "../store/parallel.hpp"
#include "opaque.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

static_assert(std::endian::native == std::endian::little,
              "gradus: checkpoints are little-endian and are written from memory; this machine is big-endian.");

struct frame {
  static constexpr std::string_view magic = "GRADUSCK";
  static constexpr std::uint32_t version = 1;
  static constexpr std::uint32_t order_mark = 0x01020304;
  static constexpr std::size_t header_bytes = 64, alignment = 64;
  static constexpr std::size_t name_bytes = 16;
};

constexpr std::uint64_t align_up(std::uint64_t n) {
  return (n + frame::alignment - 1) / frame::alignment * frame::alignment;
}

// Appends little-endian numbers and length-prefixed text.
class byte_sink {
public:
  template <class Number>
    requires(std::integral<Number>)
  void number(Number n) {
    const auto* p = reinterpret_cast<const std::byte*>(&n);
    bytes.insert(bytes.end(), p, p + sizeof n);
  }
  void raw(std::string_view s);
  void string(std::string_view s) { number(static_cast<std::uint32_t>(s.size())), raw(s); }
  void zeros(std::size_t n) { bytes.resize(bytes.size() + n); }

  std::vector<std::byte> bytes;
};

// Takes little-endian numbers and length-prefixed text from the front. Reading more than is left returns zeros and
// makes the source bad; nothing is allocated for a length that does not fit.
class byte_source {
public:
  explicit byte_source(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool bad() const { return bad_; }
  std::size_t left() const { return rest_.size(); }
  template <std::integral Number>
  Number number() {
    Number n{};
    const auto from = take(sizeof n);
    if (!from.empty()) std::memcpy(&n, from.data(), sizeof n);
    return n;
  }
  std::string string();
  // Takes n bytes, or none at all.
  std::span<const std::byte> take(std::uint64_t n);

private:
  std::span<const std::byte> rest_;
  bool bad_ = false;
};

// Returns a place in the file for messages.
std::string byte_range(std::uint64_t at, std::uint64_t bytes);

inline constexpr std::byte zeros[frame::alignment] = {};
bool all_zero(std::span<const std::byte> bytes);

// The data that the manifest has about a record besides those in the record itself.
struct placement {
  std::uint64_t offset = 0;  // of its first byte in the file
  std::uint64_t bytes = 0;
  std::uint32_t crc = 0;
};

// The manifest as it was read, before the records have their bytes.
struct manifest {
  std::int64_t step = 0;
  metadata about;
  std::vector<record> records;
  std::vector<placement> places;
  reader_limits limits = reader_limits::none();

  bool full() const { return records.size() + about.size() > limits.entries; }
  std::string too_full() const { return too_many_entries("tensors and pairs of metadata", limits); }
};

// Encodes a snapshot. `write(sink, manifest)` writes the manifest in the codec's way. The length that it writes must
// not depend on the offsets: it is called twice, the first time to measure the length. Raises invalid_argument for a
// snapshot that could not be read back.
encoded frame_encode(std::string_view codec_name, std::string_view suffix, const snapshot& original,
                     void (*write)(byte_sink&, const manifest&));

// Checks the bytes of header and manifest; returns true and sets `body` if they are whole, else `out` has the reason.
bool frame_open(std::string_view codec_name, std::span<const std::byte> file, std::span<const std::byte>& body,
                std::uint64_t& tensors, decoded& out);

// Gives the manifest's records their bytes; out.problem names what does not fit.
void frame_bind(std::span<const std::byte> file, std::size_t body_bytes, std::uint64_t tensors, manifest&& m,
                decoded& out, int threads = 1);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "frame.ipp"
#endif
