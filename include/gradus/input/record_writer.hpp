// record_writer writes TFRecord files, plain or compressed, as TensorFlow's TFRecordWriter does.
//
//   record_writer<> out("train.tfrecord.gz", {.compression = compression_type::gzip});
//   out.write(example);                     one record: an example_builder, bytes, or a string
//   out.close();                            now all records are in the file
//
// A file of this name is replaced, unless `append` is set. With `append` new records follow those in the file, which
// are read first, because a reader finds nothing behind a torn record (of a writer that was killed).
//
// A record is in the file after close or flush if its write returned. If its write raised, the record is not written,
// then or later: write it again when the disk has room. close may be called again after an error.
#pragma once
#include "../base/build.hpp"

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
  compression_type compression = compression_type::automatic;  // automatic: gzip for a name ending in ".gz", else none
  int level = -1;                                              // 0 to 9; -1: zlib's default, 6
  bool append = false;
  std::size_t buffer_bytes = std::size_t{1} << 18;  // bytes to gather before a write to the file
};

namespace detail {
// The part of record_writer that does not depend on the type of its file system.
class any_record_writer {
public:
  any_record_writer(std::string path, const record_writer_options& options, const any_file_system& fs);
  any_record_writer(const any_record_writer&) = delete;
  any_record_writer& operator=(const any_record_writer&) = delete;
  // Records that cannot be written now are lost without an error. Call close() first to get the error.
  ~any_record_writer();

  // Writes one record. `message` appends itself to a vector, as example_builder does.
  template <class Message>
    requires requires(const Message& m, std::vector<std::byte>& out) { m.write(out); }
  void write(const Message& message) {
    add([&](std::vector<std::byte>& out) { message.write(out); });
  }
  void write(std::span<const std::byte> payload);
  void write(std::string_view payload) { write(std::as_bytes(std::span(payload.data(), payload.size()))); }

  // Gives all records so far to the operating system: other processes can read them, and they survive a kill of this
  // process. In a compressed file this costs some bytes.
  void flush();
  // Writes all records so far to the disk, where they survive a power failure.
  void sync();
  // Writes all records and closes the file. Nothing may be written after it.
  void close();

  const std::string& path() const { return path_; }
  std::int64_t records() const { return records_; }  // written by this writer

private:
  // Removes the file of this name. It opens the file first, which raises if the file is not regular (a device, a pipe,
  // a directory), since such a file must not be removed.
  void remove_file();
  void begin_stream();
  void end_stream();
  template <class Body>
  void add(Body&& body) {
    check_open();
    if (pending_.size() >= options_.buffer_bytes) drain();  // if it raises, this record was not taken
    if (!deflate_) {
      append_record(pending_, body);
    } else {
      record_.clear();
      append_record(record_, body);
      deflate_->write(record_, pending_);
    }
    ++records_;
  }
  // Passes the pending bytes to the file in portions that fit its buffer, so that the file does not write on its own:
  // if a call raises, each byte is either pending or in the file, and not in both.
  void drain();
  void check_open() const;
  void check_whole();

  any_file_system fs_;
  std::string path_;
  record_writer_options options_;
  std::optional<deflate_stream> deflate_;
  std::vector<std::byte> pending_, record_;  // bytes not passed to the file yet; one record before it is compressed
  std::size_t drained_ = 0;                  // of pending_
  std::optional<appended_file> file_;
  std::int64_t records_ = 0;
  bool ended_ = false;
};
}  // namespace detail

template <file_system F = posix>
class record_writer : public detail::any_record_writer {
public:
  // Raises the errors of opening a file, and invalid_argument if the path is not that of a regular file. With append it
  // raises data_loss if the file's records are not whole, and invalid_argument for a zlib file (nothing can follow its
  // end).
  explicit record_writer(std::string path, const record_writer_options& options = {}, const F& fs = {})
      : any_record_writer(std::move(path), options, fs) {}
};
record_writer(std::string) -> record_writer<>;

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "record_writer.ipp"
#endif
