// The bodies of storage.hpp.
#pragma once
#include <algorithm>
#include <random>

#include "../../base/body.hpp"
#include "storage.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

inline void reserve_more(std::vector<queue_element*>& list, std::int64_t all) {
  const auto wanted = static_cast<std::size_t>(all);
  if (list.capacity() < wanted) list.reserve(std::max(wanted, 2 * list.capacity()));
}

GRADUS_BODY shuffle_storage::shuffle_storage(std::int64_t min_after_dequeue, std::uint64_t seed, std::uint64_t seed2)
    : min_after_dequeue_(min_after_dequeue) {
  if (seed == 0 && seed2 == 0) {
    std::random_device from;
    seed = std::uint64_t{from()} << 32 | from();
  }
  const philox mixed(seed);  // each pair of seeds has a stream of its own
  draws_.seed = std::uint64_t{mixed.word(seed2, 1)} << 32 | mixed.word(seed2, 0);
}

GRADUS_BODY shuffle_storage::~shuffle_storage() {
  for (queue_element* e : list_) delete e;
}

GRADUS_BODY std::int64_t shuffle_storage::available(bool closed) const {
  return closed ? size() : std::max<std::int64_t>(size() - min_after_dequeue_, 0);
}

GRADUS_BODY void shuffle_storage::reserve(std::int64_t all) { reserve_more(list_, all); }

GRADUS_BODY void shuffle_storage::put_back(element_chain& taken) {
  while (!taken.empty()) list_.push_back(taken.pop_front());
}

GRADUS_BODY queue_element* shuffle_storage::take() {
  queue_element*& place = list_[draws_.below(static_cast<std::uint32_t>(list_.size()))];
  queue_element* e = place;
  place = list_.back();
  list_.pop_back();
  return e;
}

struct later_key {
  bool operator()(const queue_element* a, const queue_element* b) const {
    return a->key != b->key ? a->key > b->key : a->number > b->number;
  }
};

GRADUS_BODY priority_storage::~priority_storage() {
  for (queue_element* e : heap_) delete e;
}

GRADUS_BODY void priority_storage::reserve(std::int64_t all) { reserve_more(heap_, all); }

GRADUS_BODY void priority_storage::put(queue_element* e) {
  e->number = next_++;
  heap_.push_back(e);
  std::push_heap(heap_.begin(), heap_.end(), later_key{});
}

// The elements keep their numbers, and so their places among equal keys.
GRADUS_BODY void priority_storage::put_back(element_chain& taken) {
  while (!taken.empty()) {
    heap_.push_back(taken.pop_front());
    std::push_heap(heap_.begin(), heap_.end(), later_key{});
  }
}

GRADUS_BODY queue_element* priority_storage::take() {
  std::pop_heap(heap_.begin(), heap_.end(), later_key{});
  queue_element* e = heap_.back();
  heap_.pop_back();
  return e;
}

GRADUS_BODY std::unique_ptr<queue_storage> make_storage(const queue_spec& spec) {
  switch (spec.kind) {
  case queue_kind::random_shuffle:
    return std::make_unique<shuffle_storage>(spec.min_after_dequeue, spec.seed, spec.seed2);
  case queue_kind::priority: return std::make_unique<priority_storage>();
  case queue_kind::fifo:
  case queue_kind::padding_fifo: break;
  }
  return std::make_unique<fifo_storage>();
}

}  // namespace gradus::detail
