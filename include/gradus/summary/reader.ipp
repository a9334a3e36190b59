// The bodies of reader.hpp.
#pragma once
#include "../base/body.hpp"
#include "reader.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY any_summary_iterator::any_summary_iterator(const std::string& path, any_file_system fs,
                                                       const reader_limits& limits)
    : path_(path), records_(buffered_file(std::move(fs), path, 1 << 16), limits), limits_(limits) {}

GRADUS_BODY bool any_summary_iterator::next(event& e) {
  switch (records_.read(payload_)) {
  case record_status::record: decode(e); return true;
  case record_status::truncated: truncated_ = true; return false;
  case record_status::end: return false;
  case record_status::too_long: raise(status::resource_exhausted, text("\"", path_, "\": ", records_.too_long()));
  case record_status::corrupt: break;
  }
  raise(status::data_loss, text("\"", path_, "\": corrupted record at byte ", records_.offset(), " (record ", events_,
                                ", counted from 0): its checksum or length is wrong; the events before it are good"));
}

GRADUS_BODY any_summary_iterator::iterator& any_summary_iterator::iterator::operator++() {
  done_ = !owner_->next(owner_->current_);
  return *this;
}

GRADUS_BODY void any_summary_iterator::decode(event& e) {
  const std::uint64_t at = records_.offset() - record_overhead_bytes - payload_.size();
  std::string problem;
  status kind{};
  try {
    e = decode_event(payload_, limits_);
    ++events_;
    return;
  } catch (const error& bad) {
    problem = bad.what(), kind = bad.kind();
  }
  raise(kind, text("\"", path_, "\": the record at byte ", at, " (record ", events_, ", counted from 0) ",
                   kind == status::resource_exhausted ? "is refused: " : "is no event: ", problem));
}

}  // namespace gradus::detail
