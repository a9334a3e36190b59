// TFRecord framing divides the byte stream of event files and record data sets into records with checksums.
//
//   8 bytes   n, length of the payload, little-endian
//   4 bytes   masked crc32c of those 8
//   n bytes   payload
//   4 bytes   masked crc32c of the payload
//
// There is no file header, no padding and no footer: an empty file holds zero records, and a process that dies while it
// appends leaves whole records and at most one incomplete one. In compressed files (GZIP, ZLIB), the whole stream is
// compressed: give the reader a source that decompresses. docs/formats/events.md shows the bytes.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../base/error.hpp"
#include "file.hpp"
#include "reader_limits.hpp"

namespace gradus::inline GRADUS_BUILD {

inline constexpr std::size_t record_header_bytes = 12;
inline constexpr std::size_t record_footer_bytes = 4;
inline constexpr std::size_t record_overhead_bytes = record_header_bytes + record_footer_bytes;

namespace detail {
// These are little-endian on every machine.
void put_fixed(std::byte* at, std::uint64_t value, std::size_t bytes);
std::uint64_t get_fixed(const std::byte* at, std::size_t bytes);

// Removes the appended bytes, unless `keep` is set: a record whose payload could not be written leaves nothing behind.
struct append_guard {
  std::vector<std::byte>& out;
  std::size_t size = out.size();
  bool keep = false;
  ~append_guard();
  // Writes the header and the footer of the record whose payload lies behind `size` and the header.
  void frame();
};
// Returns true if the four bytes are the masked checksum of the others.
bool fits_masked_crc(std::span<const std::byte> bytes, const std::byte* masked);
}  // namespace detail

// Appends one record whose payload `body(out)` appends to `out`: it is framed in place, without a copy. If body raises,
// `out` is as before.
template <std::invocable<std::vector<std::byte>&> Body>
void append_record(std::vector<std::byte>& out, Body&& body) {
  detail::append_guard guard{out};
  out.resize(guard.size + record_header_bytes);
  body(out);
  guard.frame();
}
void append_record(std::vector<std::byte>& out, std::span<const std::byte> payload);

// The source of a reader's bytes: `read` fills its span as far as there are bytes, and returns how many it wrote; fewer
// than requested means the present end.
template <class S>
concept byte_source = requires(S& s, std::span<std::byte> to) {
  { s.read(to) } -> std::convertible_to<std::size_t>;
};

// Bytes in memory, which it does not own.
struct span_source {
  std::span<const std::byte> left;

  std::size_t read(std::span<std::byte> to);
};

namespace detail {
// A file_source whose file system is type-erased.
class buffered_file {
public:
  buffered_file(any_file_system fs, const std::string& path, std::size_t buffer);
  buffered_file(buffered_file&& other) noexcept;
  buffered_file& operator=(buffered_file&&) = delete;
  ~buffered_file() {
    if (open_) fs_.close(handle_);
  }
  std::size_t read(std::span<std::byte> to);

private:
  any_file_system fs_;
  std::string path_;
  std::vector<std::byte> buffer_;
  span_source ready_;  // not returned yet, in the buffer; a moved vector keeps its bytes where they are
  any_file_system::handle handle_{};
  bool open_ = false;
};
}  // namespace detail

// A regular file, read front to back through a buffer of its own. Raises not_found and the like.
template <file_system F>
class file_source : public detail::buffered_file {
public:
  file_source(const F& fs, const std::string& path, std::size_t buffer = 1 << 16) : buffered_file(fs, path, buffer) {}
};

// What a reader found at its place.
enum class record_status {
  record,     // a whole record, its checksums right
  end,        // nothing more, on a record's boundary
  truncated,  // the beginning of a record: torn by a kill, or still being written
  too_long,   // a length above the limit, and its checksum is right
  corrupt     // a checksum differs
};

// Reads record after record. Lengths are not trusted: memory grows only as bytes arrive, so that it stays in proportion
// to the size of the file. (TensorFlow's reader allocates the length that the file contains.)
template <byte_source Source>
class record_reader {
public:
  explicit record_reader(Source source, const reader_limits& limits = {})
      : source_(std::move(source)), limits_(limits) {}

  // Reads the next payload into `payload`, whose memory is used again. It never raises because of the bytes' content;
  // every status except `record` is final.
  record_status read(std::vector<std::byte>& payload) {
    payload.clear();
    if (status_ == record_status::record) status_ = step(payload);
    if (status_ != record_status::record) payload.clear();
    return status_;
  }

  // Reads the next payload as most callers need it: returns false at a clean end, raises data_loss on a truncated or
  // corrupt record, and resource_exhausted on one that is too long.
  bool next(std::vector<std::byte>& payload) {
    switch (read(payload)) {
    case record_status::record: return true;
    case record_status::end: return false;
    case record_status::truncated:
      raise(status::data_loss,
            text("truncated record at byte ", offset_, ": the file ends inside it; the records before it are good"));
    case record_status::too_long: raise(status::resource_exhausted, too_long());
    case record_status::corrupt: break;
    }
    raise(status::data_loss, text("corrupted record at byte ", offset_,
                                  ": its checksum or length is wrong; the records before it are good"));
  }
  // Returns the message about a record that was too long.
  std::string too_long() const {
    return detail::record_too_long(text("the record at byte ", offset_), length_, limits_);
  }

  // Returns the bytes of all whole records so far, which is where the next one begins.
  std::uint64_t offset() const { return offset_; }

private:
  record_status step(std::vector<std::byte>& payload) {
    std::array<std::byte, record_header_bytes> header;
    const std::size_t got = source_.read(header);
    if (got == 0) return record_status::end;
    if (got < header.size()) return record_status::truncated;
    const std::uint64_t n = detail::get_fixed(header.data(), 8);
    if (!detail::fits_masked_crc(std::span<const std::byte>(header.data(), 8), header.data() + 8))
      return record_status::corrupt;
    if (n > limits_.record_bytes) return length_ = n, record_status::too_long;

    // The first step reads as much as is already allocated, or 64 KiB; each later one doubles that.
    for (std::size_t have = 0; have < n;) {
      const std::size_t room = std::max({payload.capacity(), 2 * have, std::size_t{1} << 16});
      const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(n, room)) - have;
      payload.resize(have + want);
      if (source_.read(std::span<std::byte>(payload.data() + have, want)) != want) return record_status::truncated;
      have += want;
    }
    std::array<std::byte, record_footer_bytes> footer;
    if (source_.read(footer) != footer.size()) return record_status::truncated;
    if (!detail::fits_masked_crc(payload, footer.data())) return record_status::corrupt;
    offset_ += record_overhead_bytes + n;
    return record_status::record;
  }

  Source source_;
  reader_limits limits_;
  std::uint64_t offset_ = 0, length_ = 0;
  record_status status_ = record_status::record;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "record.ipp"
#endif
