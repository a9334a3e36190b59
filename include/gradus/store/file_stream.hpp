// A file_stream reads a file front to back, whatever its size: its bytes, or those that its gzip or zlib data
// decompress to.
//
//   file_stream in("day_0.gz");
//   in.seek(offset);                            a place in the output, not in the file
//   while (const auto n = in.read(to)) ...      copied, or
//   const auto bytes = in.ahead(12);            seen in the buffer: at least 12, if there are so many
//   in.pass(12);
//
// The memory that it needs does not depend on the size of the file. seek is immediate in a file that is not compressed,
// where the file system can seek; in a compressed file, the bytes before have to be decompressed.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "../base/owned.hpp"
#include "file.hpp"
#include "inflate.hpp"

namespace gradus::inline GRADUS_BUILD {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // g++ compares enumerators of a scoped enum with the names of the namespace
enum class compression_type : std::uint8_t {
  automatic,  // as the first bytes of the file show
  none,
  gzip,
  zlib
};
#pragma GCC diagnostic pop

constexpr std::string_view name_of(compression_type c) {
  constexpr std::string_view names[] = {"automatic", "none", "gzip", "zlib"};
  return names[static_cast<int>(c)];
}

// A byte_source (store/record.hpp). The file system is type-erased, which costs little since a large piece is read at a
// time. From damaged compressed data, all bytes before the damage are returned; the call that then raises can be
// repeated.
class file_stream {
public:
  // Raises the errors of opening and reading a file (not_found, ...). If the data are not compressed as `how` requires,
  // the first read raises, as it does for damage.
  explicit file_stream(std::string path, compression_type how = compression_type::automatic,
                       const any_file_system& fs = {}, std::size_t buffer = std::size_t{1} << 18,
                       const reader_limits& limits = {});

  // Fills `to`, and returns how many bytes it wrote: fewer than requested only at the end, or in front of damage; the
  // next read then raises. Raises data_loss for compressed data that are damaged, resource_exhausted if they decompress
  // to more than the limits allow, and the errors of reading a file.
  std::size_t read(std::span<std::byte> to);
  // Returns the next bytes, at least n, fewer only at the end; they are valid until the next call of a function other
  // than pass. The buffer grows only when bytes have been read. Raises the errors of read if n bytes cannot be had
  // because of damage.
  std::span<const std::byte> ahead(std::size_t n);
  // Skips n bytes that ahead has returned.
  void pass(std::size_t n) { ready_ = ready_.subspan(n), offset_ += n; }

  // Returns the offset of the next byte in the content of the file.
  std::uint64_t offset() const { return offset_; }
  // Continues at this offset. Returns false if the content ends before it; the stream is then at its end.
  bool seek(std::uint64_t offset);

  const std::string& path() const { return path_; }
  // Returns true if the last read failed because of the device, and not because of the file's content.
  bool device_failed() const { return file_->failed; }
  // Returns true if the last read failed because compressed data became more than the limits allow.
  bool too_large() const { return too_large_; }
  // Returns the detected compression, which is never `automatic`.
  compression_type compression() const { return how_; }

private:
  // The file as it is on the disk.
  struct raw_file {
    raw_file(const any_file_system& f, const std::string& p) : fs(f), path(p) { open(); }
    raw_file(const raw_file&) = delete;
    raw_file& operator=(const raw_file&) = delete;
    ~raw_file() { fs.close(h); }

    void open();
    std::size_t read(std::span<std::byte> to);
    void go_to(std::uint64_t offset);

    any_file_system fs;
    std::string path;
    any_file_system::handle h{};
    std::uint64_t size = 0;
    bool failed = false;
  };
  struct compressed {
    raw_file* file;
    std::size_t read(std::span<std::byte> to) { return file->read(to); }
  };

  std::size_t take(std::span<std::byte> to);
  void restart();

  std::string path_, wrong_;  // wrong_: why it cannot be read, or empty
  reader_limits limits_;
  std::uint64_t most_ = UINT64_MAX, taken_ = 0;  // bytes that compressed data may become, and have become
  bool too_large_ = false;
  detail::owned<raw_file> file_;
  detail::owned<inflate_source<compressed>> inflating_;
  compression_type how_ = compression_type::none;
  std::size_t first_buffer_ = 0;
  std::vector<std::byte> buffer_;     // for ahead; empty before its first call
  std::span<const std::byte> ready_;  // not returned yet, in the buffer; a moved vector keeps its bytes
  std::uint64_t offset_ = 0;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "file_stream.ipp"
#endif
