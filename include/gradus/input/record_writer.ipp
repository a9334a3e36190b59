// The bodies of record_writer.hpp.
#pragma once
#include "../base/body.hpp"
#include "record_writer.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY any_record_writer::any_record_writer(std::string path, const record_writer_options& options,
                                                 const any_file_system& fs)
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

GRADUS_BODY any_record_writer::~any_record_writer() {
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

GRADUS_BODY void any_record_writer::write(std::span<const std::byte> payload) {
  add([&](std::vector<std::byte>& out) { out.insert(out.end(), payload.begin(), payload.end()); });
}

GRADUS_BODY void any_record_writer::flush() {
  check_open();
  if (deflate_ && !ended_) deflate_->flush(pending_);
  drain();
  file_->flush();
}

GRADUS_BODY void any_record_writer::sync() {
  flush();
  file_->sync();
  const std::string directory = directory_of(path_);
  if (const int e = detail::uninterrupted([&] { return fs_.sync_directory(directory); }); e != 0)
    raise({e, "sync the directory", directory});
}

GRADUS_BODY void any_record_writer::close() {
  if (!file_) return;
  end_stream();
  drain();
  file_->flush();
  appended_file last(std::move(*file_));
  file_.reset();
  last.close();
}

GRADUS_BODY void any_record_writer::remove_file() {
  any_file_system::handle h{};
  std::uint64_t size = 0;
  int e = detail::uninterrupted([&] { return fs_.open_read(path_, h, size); });
  if (e == 0) {
    fs_.close(h);
    e = detail::uninterrupted([&] { return fs_.remove(path_); });
  }
  if (e != 0) raise({e, "replace", path_});
}

GRADUS_BODY void any_record_writer::begin_stream() {
  if (options_.compression == compression_type::none) return;
  deflate_.emplace(options_.compression == compression_type::gzip, options_.level);
}

GRADUS_BODY void any_record_writer::end_stream() {
  if (deflate_ && !ended_) deflate_->finish(pending_);
  ended_ = true;
}

GRADUS_BODY void any_record_writer::drain() {
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

GRADUS_BODY void any_record_writer::check_open() const {
  if (!file_ || ended_)
    raise(status::failed_precondition, text("the record writer of \"", path_, "\" is closed; make another one"));
}

GRADUS_BODY void any_record_writer::check_whole() {
  struct content {
    file_stream in;
    std::size_t read(std::span<std::byte> to) { return in.read(to); }
  };
  file_stream in(path_, compression_type::none, fs_);
  if (in.ahead(1).empty()) return;
  if (options_.compression == compression_type::zlib)
    raise(status::invalid_argument, text("cannot append to \"", path_, "\": nothing can follow the end of zlib data; ",
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

}  // namespace gradus::detail
