// summary_iterator reads event files, in file order, as TensorFlow's does.
//
//   for (const auto& e : gradus::summary_iterator(path))
//     for (const auto& v : e.values) use(e.step, v.tag, v.simple_value);
#pragma once
#include "../base/build.hpp"

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

namespace detail {
// A summary_iterator whose file system is type-erased.
class any_summary_iterator {
public:
  any_summary_iterator(const std::string& path, any_file_system fs, const reader_limits& limits);

  // Reads the next event into `e`; returns false at the end.
  bool next(event& e);
  bool truncated() const { return truncated_; }

  class iterator {
  public:
    using iterator_category = std::input_iterator_tag;
    using value_type = event;
    using difference_type = std::ptrdiff_t;
    using pointer = const event*;
    using reference = const event&;

    explicit iterator(any_summary_iterator& owner) : owner_(&owner) { ++*this; }
    reference operator*() const { return owner_->current_; }
    pointer operator->() const { return &owner_->current_; }
    iterator& operator++();
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return done_; }

  private:
    any_summary_iterator* owner_;
    bool done_ = false;
  };
  iterator begin() { return iterator(*this); }
  std::default_sentinel_t end() const { return {}; }

private:
  // Decodes an event; errors about its bytes name the place in the file.
  void decode(event& e);

  std::string path_;
  record_reader<buffered_file> records_;
  reader_limits limits_;
  std::vector<std::byte> payload_;
  event current_;
  std::uint64_t events_ = 0;  // read before the current one
  bool truncated_ = false;
};
}  // namespace detail

// Makes one pass over one file. A last record that is incomplete (the writer was killed, or is still writing) ends the
// iteration like the end of the file, and `truncated()` is true, as in TensorBoard. TensorFlow's iterator raises
// data_loss there. A checksum that differs, or a payload that is not an Event, raises data_loss.
template <file_system FileSystem = posix>
class summary_iterator : public detail::any_summary_iterator {
public:
  // The limits record_bytes and entries (values of one event) apply. Raises resource_exhausted beyond them.
  explicit summary_iterator(const std::string& path, FileSystem fs = {}, const reader_limits& limits = {})
      : any_summary_iterator(path, fs, limits) {}
};
template <file_system F>
summary_iterator(const std::string&, F) -> summary_iterator<F>;
template <file_system F>
summary_iterator(const std::string&, F, reader_limits) -> summary_iterator<F>;
summary_iterator(const std::string&) -> summary_iterator<>;

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "reader.ipp"
#endif
