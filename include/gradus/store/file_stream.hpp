// A file_stream reads a file front to back, whatever its size: its bytes, or those behind its gzip or zlib data.
//
//   file_stream in("day_0.gz");
//   in.seek(offset);                            a place in the output, not in the file
//   while (const auto n = in.read(to)) ...      copied, or
//   const auto bytes = in.ahead(12);            seen where they are: at least 12, if there are so many
//   in.pass(12);
//
// The memory that it needs does not depend on the file. A file that is not compressed is entered at any byte at once;
// in a compressed one, the bytes before have to be decompressed.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "file.hpp"
#include "inflate.hpp"

namespace gradus::inline GRADUS_BUILD {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // g++ holds enumerators of a scoped enum against the namespace
enum class compression_type : std::uint8_t {
  automatic,  // as the file's first bytes have it
  none,
  gzip,
  zlib
};
#pragma GCC diagnostic pop

constexpr std::string_view name_of(compression_type c) {
  constexpr std::string_view names[] = {"automatic", "none", "gzip", "zlib"};
  return names[static_cast<int>(c)];
}

// A byte_source (store/record.hpp). The file system is type-erased: it reads a large piece at a time. Compressed data
// that are damaged give all bytes before the damage; a call that raises then can be repeated.
class file_stream {
public:
  // Errors: those of opening and reading a file (not_found, ...). That it is not compressed as `how` says comes out
  // where it is read, as damage does.
  explicit file_stream(std::string path, compression_type how = compression_type::automatic,
                       const any_file_system& fs = {}, std::size_t buffer = std::size_t{1} << 18,
                       const reader_limits& limits = {});

  // Fills `to`, and returns how many bytes it wrote: fewer than requested only at the end, or in front of damage; the
  // next read then raises. Errors: data_loss for compressed data that are damaged; resource_exhausted where they become
  // more than the limits allow; those of reading a file.
  std::size_t read(std::span<std::byte> to);
  // Returns the next bytes, at least n, fewer only at the end; valid until the next call of anything but pass. The
  // buffer grows only with bytes that came. Errors: those of read, if n bytes cannot be had because of damage.
  std::span<const std::byte> ahead(std::size_t n);
  // Over n bytes that ahead has shown.
  void pass(std::size_t n) { ready_ = ready_.subspan(n), offset_ += n; }

  // The place of the next byte in the file's content.
  std::uint64_t offset() const { return offset_; }
  // Goes there. False if the file ends before; it stands at its end then.
  bool seek(std::uint64_t offset);

  const std::string& path() const { return path_; }
  // True if the last read failed because of the device, and not because of the file's content.
  bool device_failed() const { return file_->failed; }
  // True if the last read failed because compressed data became more than the limits allow.
  bool too_large() const { return too_large_; }
  // The detected compression: never automatic.
  compression_type compression() const { return how_; }

private:
  // The file as it lies on the disk.
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

  std::string path_, wrong_;  // wrong_: why it cannot be read, or nothing
  reader_limits limits_;
  std::uint64_t most_ = UINT64_MAX, taken_ = 0;  // bytes that compressed data may become, and have become
  bool too_large_ = false;
  std::unique_ptr<raw_file> file_;
  std::unique_ptr<inflate_source<compressed>> inflating_;
  compression_type how_ = compression_type::none;
  std::size_t first_buffer_ = 0;
  std::vector<std::byte> buffer_;     // for ahead; none before it is asked
  std::span<const std::byte> ready_;  // not returned yet, in the buffer; a moved vector keeps its bytes
  std::uint64_t offset_ = 0;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "file_stream.ipp"
#endif
