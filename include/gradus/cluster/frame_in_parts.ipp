// The bodies of frame_in_parts.hpp.
#pragma once
#include <utility>

#include "../base/body.hpp"
#include "../base/error.hpp"
#include "frame_in_parts.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void frame_in_parts::open(std::shared_ptr<frame_pool> from, std::uint64_t bytes) {
  forget();
  whole_ = std::make_shared<pooled_frame>(std::move(from), static_cast<std::size_t>(bytes));
}
GRADUS_BODY std::byte* frame_in_parts::next(std::size_t bytes) {
  if (bytes > whole_->memory.size() - at_)
    raise(status::data_loss, text("malformed message: its head says that it has ", whole_->memory.size(),
                                  " bytes, and ", at_ + bytes, " came"));
  if (all_->held.fetch_add(bytes) + bytes > all_->most) {
    all_->held -= bytes;
    raise(status::resource_exhausted,
          text("messages that have come in part have more than ", all_->most,
               " bytes together; raise receiving_bytes, or send smaller messages from fewer tasks"));
  }
  std::byte* const to = whole_->memory.data() + at_;
  at_ += bytes;
  return to;
}
GRADUS_BODY std::shared_ptr<pooled_frame> frame_in_parts::close() {
  std::shared_ptr<pooled_frame> whole = std::move(whole_);
  forget();
  return whole;
}
GRADUS_BODY void frame_in_parts::forget() {
  all_->held -= std::exchange(at_, 0);
  whole_.reset();
}

}  // namespace gradus::detail
