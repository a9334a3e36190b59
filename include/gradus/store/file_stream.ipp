// The bodies of file_stream.hpp.
#pragma once
#include "../base/body.hpp"
#include "file_stream.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY file_stream::file_stream(std::string path, compression_type how, const any_file_system& fs,
                                     std::size_t buffer, const reader_limits& limits)
    : path_(std::move(path)), limits_(limits) {
  file_ = detail::make_owned<raw_file>(fs, path_);
  std::byte start[4096];
  const auto begin = std::span<const std::byte>(start).first(file_->read(start));
  const bool gzip = is_gzip(begin), zlib = !gzip && is_zlib(begin);
  how_ = how != compression_type::automatic ? how
         : gzip                             ? compression_type::gzip
         : zlib                             ? compression_type::zlib
                                            : compression_type::none;
  if ((how_ == compression_type::gzip && !gzip) || (how_ == compression_type::zlib && !zlib))
    wrong_ = text(path_, ": expected ", name_of(how_), " data, found something else at byte 0; ",
                  "let the compression be found out (automatic), or get the file again");
  most_ = how_ == compression_type::none ? UINT64_MAX : limits_.inflated_from(file_->size);
  first_buffer_ = std::max<std::size_t>(buffer, 1);
  if (how_ == compression_type::none && file_->size < first_buffer_)
    first_buffer_ = static_cast<std::size_t>(file_->size) + 1;  // one byte more, so that a read shows the end
  restart();
}

GRADUS_BODY void file_stream::raw_file::open() {
  const int e = detail::uninterrupted([&] { return fs.open_read(path, h, size); });
  if (e != 0) raise({e, "open", path});
}

GRADUS_BODY std::size_t file_stream::raw_file::read(std::span<std::byte> to) {
  std::size_t done = 0;
  while (done < to.size()) {
    std::size_t moved = 0;
    const int e = detail::uninterrupted([&] { return fs.read(h, to.subspan(done), moved); });
    failed = e != 0;
    if (failed) raise({e, "read", path});
    if (moved == 0) break;
    done += moved;
  }
  return done;
}

GRADUS_BODY void file_stream::raw_file::go_to(std::uint64_t offset) {
  if (fs.seeks()) {
    const int e = detail::uninterrupted([&] { return fs.seek(h, offset); });
    failed = e != 0;
    if (failed) raise({e, "seek in", path});
    return;
  }
  const auto before = h;
  open();
  fs.close(before);
  std::byte passed[4096];
  while (offset > 0) {
    const auto n =
        read(std::span(passed).first(static_cast<std::size_t>(std::min<std::uint64_t>(offset, sizeof passed))));
    if (n == 0) return;
    offset -= n;
  }
}

GRADUS_BODY std::size_t file_stream::read(std::span<std::byte> to) {
  const std::size_t ready = std::min(to.size(), ready_.size());
  if (ready != 0) std::memcpy(to.data(), ready_.data(), ready);
  pass(ready);
  if (ready == to.size()) return ready;
  try {
    const std::size_t more = take(to.subspan(ready));
    offset_ += more;
    return ready + more;
  } catch (const error&) {  // the next read raises it again
    if (ready == 0) throw;
    return ready;
  }
}

GRADUS_BODY std::span<const std::byte> file_stream::ahead(std::size_t n) {
  while (ready_.size() < n) {
    if (buffer_.empty()) {
      buffer_.resize(first_buffer_);
    } else if (ready_.size() == buffer_.size()) {
      std::vector<std::byte> larger(2 * buffer_.size());
      std::memcpy(larger.data(), ready_.data(), ready_.size());
      buffer_ = std::move(larger);
    } else if (!ready_.empty() && ready_.data() != buffer_.data()) {
      std::memmove(buffer_.data(), ready_.data(), ready_.size());
    }
    ready_ = std::span<const std::byte>(buffer_).first(ready_.size());
    const std::size_t more = take(std::span(buffer_).subspan(ready_.size()));
    if (more == 0) break;
    ready_ = std::span<const std::byte>(buffer_).first(ready_.size() + more);
  }
  return ready_;
}

GRADUS_BODY bool file_stream::seek(std::uint64_t offset) {
  if (offset >= offset_ && offset - offset_ <= ready_.size()) {
    pass(static_cast<std::size_t>(offset - offset_));
    return true;
  }
  if (!inflating_) {
    const std::uint64_t to = std::min(offset, file_->size);
    file_->go_to(to);
    ready_ = {}, offset_ = to;
    return to == offset;
  }
  if (offset < offset_) restart();
  while (offset_ < offset) {
    const auto bytes = ahead(1);
    if (bytes.empty()) return false;
    pass(static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), offset - offset_)));
  }
  return true;
}

GRADUS_BODY std::size_t file_stream::take(std::span<std::byte> to) {
  if (!wrong_.empty()) raise(too_large_ ? status::resource_exhausted : status::data_loss, wrong_);
  if (!inflating_) return file_->read(to);
  const std::uint64_t left = most_ - taken_;
  const std::size_t got =
      inflating_->read(to.first(static_cast<std::size_t>(std::min<std::uint64_t>(to.size(), left))));
  taken_ += got;
  if (got == 0 && left == 0 && !to.empty()) {
    std::byte one_more;
    if (inflating_->read({&one_more, 1}) != 0) {
      wrong_ = text('"', path_, "\": ", detail::inflated_too_far(file_->size, limits_));
      too_large_ = true;
      raise(status::resource_exhausted, wrong_);
    }
  }
  return got;
}

GRADUS_BODY void file_stream::restart() {
  file_->go_to(0);
  ready_ = {}, offset_ = 0, taken_ = 0;
  if (std::exchange(too_large_, false)) wrong_.clear();
  if (how_ != compression_type::none)
    inflating_ = detail::make_owned<inflate_source<compressed>>(compressed{file_.get()}, path_);
}

}  // namespace gradus
