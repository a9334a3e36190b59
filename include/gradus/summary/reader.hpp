// Reading event files back, in file order: TensorFlow's summary_iterator.
//
//   for (const auto& e : gradus::summary_iterator(path))
//     for (const auto& v : e.values) use(e.step, v.tag, v.simple_value);
#pragma once
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "../base/error.hpp"
#include "../store/file.hpp"
#include "../store/record.hpp"
#include "event.hpp"

namespace gradus::inline GRADUS_BUILD {

// One pass over one file. A last record that is torn (the writer was killed, or is still writing) ends the walk like
// the end of the file, and `truncated()` tells: that is how TensorBoard reads. TensorFlow's iterator raises data_loss
// there. A checksum that differs, or a payload that is no Event, raises data_loss.
template <file_system FileSystem = posix>
class summary_iterator {
public:
  // Of the limits, record_bytes and entries (values of one event) count. Error: resource_exhausted beyond them.
  explicit summary_iterator(const std::string& path, FileSystem fs = {}, const reader_limits& limits = {})
      : path_(path), records_(file_source<FileSystem>(std::move(fs), path), limits), limits_(limits) {}

  // The next event, or false at the end; `e` is replaced.
  bool next(event& e) {
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
  bool truncated() const { return truncated_; }

  class iterator {
  public:
    using iterator_category = std::input_iterator_tag;
    using value_type = event;
    using difference_type = std::ptrdiff_t;
    using pointer = const event*;
    using reference = const event&;

    explicit iterator(summary_iterator& owner) : owner_(&owner) { ++*this; }
    reference operator*() const { return owner_->current_; }
    pointer operator->() const { return &owner_->current_; }
    iterator& operator++() {
      done_ = !owner_->next(owner_->current_);
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return done_; }

  private:
    summary_iterator* owner_;
    bool done_ = false;
  };
  iterator begin() { return iterator(*this); }
  std::default_sentinel_t end() const { return {}; }

private:
  // Errors of what the bytes say name the place.
  void decode(event& e) {
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

  std::string path_;
  record_reader<file_source<FileSystem>> records_;
  reader_limits limits_;
  std::vector<std::byte> payload_;
  event current_;
  std::uint64_t events_ = 0;  // before the one that is read
  bool truncated_ = false;
};
template <file_system F>
summary_iterator(const std::string&, F) -> summary_iterator<F>;
template <file_system F>
summary_iterator(const std::string&, F, reader_limits) -> summary_iterator<F>;
summary_iterator(const std::string&) -> summary_iterator<>;

}  // namespace gradus
