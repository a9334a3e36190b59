// An element of a queue has its arrays in one block of memory, which is used again for the next element.
#pragma once
#include "../../base/build.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "spec.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

struct queue_element {
  struct placed {
    extents dims;
    std::size_t at;  // bytes from the beginning
  };
  queue_element* next = nullptr;  // in the list that owns it
  std::int64_t key = 0;           // of a priority queue
  std::uint64_t number = 0;       // of the order of insertion, in a priority queue
  std::vector<placed> parts;
  std::vector<std::byte> bytes;
};

// A linked list of elements, which it owns.
class element_chain {
public:
  element_chain() = default;
  element_chain(element_chain&& other) noexcept { *this = std::move(other); }
  element_chain& operator=(element_chain&& other) noexcept {
    std::swap(first_, other.first_), std::swap(last_, other.last_), std::swap(size_, other.size_);
    return *this;
  }
  ~element_chain() {
    while (!empty()) delete pop_front();
  }

  bool empty() const { return first_ == nullptr; }
  std::int64_t size() const { return size_; }
  queue_element* front() const { return first_; }
  void push_front(queue_element* e) {
    e->next = first_;
    first_ = e;
    if (last_ == nullptr) last_ = e;
    ++size_;
  }
  void push_back(queue_element* e) {
    e->next = nullptr;
    (last_ == nullptr ? first_ : last_->next) = e;
    last_ = e;
    ++size_;
  }
  queue_element* pop_front() {
    queue_element* e = first_;
    first_ = e->next;
    if (first_ == nullptr) last_ = nullptr;
    --size_;
    return e;
  }
  // Move the other chain's elements behind this chain's own, or in front of them.
  void append(element_chain& other);
  void prepend(element_chain& other);

private:
  queue_element *first_ = nullptr, *last_ = nullptr;
  std::int64_t size_ = 0;
};

// This is the memory layout of a queue's elements.
class element_layout {
public:
  explicit element_layout(const queue_spec& spec);

  // Returns the number of bytes of one element; 0 if elements differ in size.
  std::size_t fixed_bytes() const { return fixed_bytes_; }
  bool is_fixed() const { return fixed_; }
  queue_element* make() const;
  // Copies arrays into an element: all of `from` if `row` is below 0, else its row `row`. `from` has been checked
  // (queue_spec::check_element).
  void write(queue_element& to, std::span<const const_tensor_view> from, std::int64_t row) const;
  const_tensor_view part(const queue_element& e, std::size_t k) const {
    return {dtypes_[k], e.parts[k].dims, e.bytes.data() + e.parts[k].at};
  }
  // Copies an element to arrays of its own extents if `row` is below 0, else into the row `row` of arrays of such rows.
  void read(const queue_element& from, std::span<const tensor_view> to, std::int64_t row) const;
  // Copies the elements into the rows of `to`, each padded with zeros to the largest.
  void read_padded(const element_chain& from, const components& spec, datum& to) const;

private:
  std::vector<dtype> dtypes_;
  bool fixed_, keyed_;
  std::vector<queue_element::placed> parts_;  // of elements of one size
  std::size_t fixed_bytes_ = 0;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "element.ipp"
#endif
