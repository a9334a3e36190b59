// record_writer: TFRecord files, plain or compressed, as TensorFlow's TFRecordWriter writes them.
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
  std::size_t buffer_bytes = std::size_t{1} << 18;  // what is gathered before it goes to the file
};

template <file_system F = posix>
class record_writer {
public:
  // Errors: those of opening a file, invalid_argument if the path is no regular file's; with append, data_loss if the
  // file's records are not whole, invalid_argument for a zlib file (nothing can follow its end).
  explicit record_writer(std::string path, const record_writer_options& options = {}, const F& fs = {})
      : fs_(fs), path_(std::move(path)), options_(options) {
    if (options_.compression == compression_type::automatic)
      options_.compression = path_.ends_with(".gz") ? compression_type::gzip : compression_type::none;
    begin_stream();
    const int there = detail::uninterrupted([&] { return fs_.exists(path_); });
    if (there != 0 && there != ENOENT) raise({there, "open", path_});
    if (there == 0 && options_.append)
      check_whole();
    else if (there == 0)
      remove_file();
    file_.emplace(fs_, path_, std::size_t{1} << 16);
  }
  record_writer(const record_writer&) = delete;
  record_writer& operator=(const record_writer&) = delete;
  // What cannot be written now is lost, quietly: close() first if you want to know.
  ~record_writer() {
    if (!file_) return;
    end_stream();
#if defined(__cpp_exceptions)
    try {
      drain();
    } catch (...) {
    }
#else
    drain();
#endif
  }

  // One record. `message` writes itself into a vector, as example_builder does.
  template <class Message>
    requires requires(const Message& m, std::vector<std::byte>& out) { m.write(out); }
  void write(const Message& message) {
    add([&](std::vector<std::byte>& out) { message.write(out); });
  }
  void write(std::span<const std::byte> payload) {
    add([&](std::vector<std::byte>& out) { out.insert(out.end(), payload.begin(), payload.end()); });
  }
  void write(std::string_view payload) { write(std::as_bytes(std::span(payload.data(), payload.size()))); }

  // To the operating system: other processes can read all records so far, a kill does not lose them. In a compressed
  // file it costs some bytes.
  void flush() {
    check_open();
    if (deflate_ && !ended_) deflate_->flush(pending_);
    drain();
    file_->flush();
  }
  // To the disk: a power failure does not lose them.
  void sync() {
    flush();
    file_->sync();
    const std::string directory = directory_of(path_);
    if (const int e = detail::uninterrupted([&] { return fs_.sync_directory(directory); }); e != 0)
      raise({e, "sync the directory", directory});
  }
  // Nothing may be written after it.
  void close() {
    if (!file_) return;
    end_stream();
    drain();
    file_->flush();
    append_file<F> last(std::move(*file_));
    file_.reset();
    last.close();
  }

  const std::string& path() const { return path_; }
  std::int64_t records() const { return records_; }  // written by this writer

private:
  // Of the name; what is no regular file (a device, a pipe, a directory) is not ours to remove.
  void remove_file() {
    typename F::handle h{};
    std::uint64_t size = 0;
    int e = detail::uninterrupted([&] { return fs_.open_read(path_, h, size); });
    if (e == 0) {
      fs_.close(h);
      e = detail::uninterrupted([&] { return fs_.remove(path_); });
    }
    if (e != 0) raise({e, "replace", path_});
  }
  void begin_stream() {
    if (options_.compression == compression_type::none) return;
    deflate_.emplace(options_.compression == compression_type::gzip, options_.level);
  }
  void end_stream() {
    if (deflate_ && !ended_) deflate_->finish(pending_);
    ended_ = true;
  }
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
  // Portions that the file takes without writing on its own accord: so each byte is in one place, whatever raises.
  void drain() {
    constexpr std::size_t portion = std::size_t{1} << 16;
    while (drained_ < pending_.size()) {
      file_->flush();
      const std::size_t n = std::min(portion, pending_.size() - drained_);
      file_->write(std::span<const std::byte>(pending_).subspan(drained_, n));
      drained_ += n;
    }
    pending_.clear();
    drained_ = 0;
  }
  void check_open() const {
    if (!file_ || ended_)
      raise(status::failed_precondition, text("the record writer of \"", path_, "\" is closed; make another one"));
  }
  void check_whole() {
    struct content {
      file_stream in;
      std::size_t read(std::span<std::byte> to) { return in.read(to); }
    };
    file_stream in(path_, compression_type::none, fs_);
    if (in.ahead(1).empty()) return;
    if (options_.compression == compression_type::zlib)
      raise(status::invalid_argument,
            text("cannot append to \"", path_, "\": nothing can follow the end of zlib data; ",
                 "write another file, or use gzip"));
    record_reader<content> records(
        content{file_stream(path_, options_.compression, fs_, std::size_t{1} << 18, reader_limits::none())},
        reader_limits::none());
    std::vector<std::byte> payload;
    for (;;) switch (records.read(payload)) {
      case record_status::record: continue;
      case record_status::end: return;
      default:
        raise(status::data_loss,
              text("cannot append to \"", path_, "\": its records are whole up to byte ", records.offset(),
                   " only, and behind what is there no record would be found; write another file"));
      }
  }

  F fs_;
  std::string path_;
  record_writer_options options_;
  std::optional<deflate_stream> deflate_;
  std::vector<std::byte> pending_, record_;  // taken, not given to the file yet; one record before it is compressed
  std::size_t drained_ = 0;                  // of pending_
  std::optional<append_file<F>> file_;
  std::int64_t records_ = 0;
  bool ended_ = false;
};
record_writer(std::string) -> record_writer<>;

}  // namespace gradus
