// The bodies of file_stream.hpp.
#pragma once
#include "../base/body.hpp"
#include "file_stream.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::size_t file_stream::read(std::span<std::byte> to) {
  const std::size_t ready = std::min(to.size(), ready_.size());
  if (ready != 0) std::memcpy(to.data(), ready_.data(), ready);
  pass(ready);
  if (ready == to.size()) return ready;
  try {
    const std::size_t more = take(to.subspan(ready));
    offset_ += more;
    return ready + more;
  } catch (const error&) {  // it comes again
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
    inflating_ = std::make_unique<inflate_source<compressed>>(compressed{file_.get()}, path_);
}

}  // namespace gradus
