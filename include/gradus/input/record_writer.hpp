// record_writer writes TFRecord files, plain or compressed, as TensorFlow's TFRecordWriter does.
//
//   record_writer<> out("train.tfrecord.gz", {.compression = compression_type::gzip});
//   out.write(example);                     an example_builder, bytes, or a string: one record
//   out.close();                            now all of it is in the file
//
// A file of this name is replaced, unless `append` is set: then records follow those that are there, which are read
// first, because behind a torn record (of a killed writer) nothing could be found again.
//
// A record whose write returned is in the file after close, after flush too. One whose write raised is not, and never
// comes: write it again when the disk has room. close may be called again after an error.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../base/error.hpp"
#include "../store/file.hpp"
#include "../store/file_stream.hpp"
#include "../store/inflate.hpp"
#include "../store/record.hpp"

namespace gradus::inline GRADUS_BUILD {

struct record_writer_options {
  compression_type compression = compression_type::automatic;  // by the name: ".gz" is gzip, all else is not compressed
  int level = -1;                                              // 0 to 9; -1: zlib's default, 6
  bool append = false;
  std::size_t buffer_bytes = std::size_t{1} << 18;  // the bytes that are gathered before a write to the file
};

namespace detail {
// record_writer, whatever its file system.
class any_record_writer {
public:
  any_record_writer(std::string path, const record_writer_options& options, const any_file_system& fs);
  any_record_writer(const any_record_writer&) = delete;
  any_record_writer& operator=(const any_record_writer&) = delete;
  // Records that cannot be written now are lost without an error: call close() first to see it.
  ~any_record_writer();

  // One record. `message` writes itself into a vector, as example_builder does.
  template <class Message>
    requires requires(const Message& m, std::vector<std::byte>& out) { m.write(out); }
  void write(const Message& message) {
    add([&](std::vector<std::byte>& out) { message.write(out); });
  }
  void write(std::span<const std::byte> payload);
  void write(std::string_view payload) { write(std::as_bytes(std::span(payload.data(), payload.size()))); }

  // To the operating system: other processes can read all records so far, a kill does not lose them. In a compressed
  // file it costs some bytes.
  void flush();
  // To the disk: a power failure does not lose them.
  void sync();
  // Nothing may be written after it.
  void close();

  const std::string& path() const { return path_; }
  std::int64_t records() const { return records_; }  // written by this writer

private:
  // The type of the name's file; a file that is not regular (a device, a pipe, a directory) must not be removed.
  void remove_file();
  void begin_stream();
  void end_stream();
  template <class Body>
  void add(Body&& body) {
    check_open();
    if (pending_.size() >= options_.buffer_bytes) drain();  // raises before this record is taken
    if (!deflate_) {
      append_record(pending_, body);
    } else {
      record_.clear();
      append_record(record_, body);
      deflate_->write(record_, pending_);
    }
    ++records_;
  }
  // Portions that the file takes without writing on its own accord: so each byte is in one place, whichever call
  // raises.
  void drain();
  void check_open() const;
  void check_whole();

  any_file_system fs_;
  std::string path_;
  record_writer_options options_;
  std::optional<deflate_stream> deflate_;
  std::vector<std::byte> pending_, record_;  // taken, not given to the file yet; one record before it is compressed
  std::size_t drained_ = 0;                  // of pending_
  std::optional<appended_file> file_;
  std::int64_t records_ = 0;
  bool ended_ = false;
};
}  // namespace detail

template <file_system F = posix>
class record_writer : public detail::any_record_writer {
public:
  // Errors: those of opening a file, invalid_argument if the path is no regular file's; with append, data_loss if the
  // file's records are not whole, invalid_argument for a zlib file (nothing can follow its end).
  explicit record_writer(std::string path, const record_writer_options& options = {}, const F& fs = {})
      : any_record_writer(std::move(path), options, fs) {}
};
record_writer(std::string) -> record_writer<>;

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "record_writer.ipp"
#endif
