// This header lets a range-based for loop iterate over a dataset.
//
//   for (const datum& e : input) ...
//
// The loop begins at the dataset's position and consumes the elements that it reads: after a break the next loop goes
// on from there.
#pragma once
#include "../base/build.hpp"

#include <cstddef>
#include <iterator>

#include "datum.hpp"

namespace gradus::inline GRADUS_BUILD {

template <class Dataset>
class unit_iterator {
public:
  using value_type = datum;
  using difference_type = std::ptrdiff_t;
  using iterator_concept = std::input_iterator_tag;

  explicit unit_iterator(Dataset& from) : from_(&from), more_(from.next(here_)) {}
  unit_iterator(unit_iterator&&) = default;
  unit_iterator& operator=(unit_iterator&&) = default;

  const datum& operator*() const { return here_; }
  unit_iterator& operator++() {
    more_ = from_->next(here_);
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const unit_iterator& i, std::default_sentinel_t) { return !i.more_; }

private:
  Dataset* from_;
  datum here_;  // before more_, which fills it
  bool more_;
};

}  // namespace gradus
