// A queue_spec describes a queue without its elements: its kind, its capacity and its components. Two parts of a
// program that use a queue of the same name compare their specs.
#pragma once
#include "../../base/build.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../../input/datum.hpp"

namespace gradus::inline GRADUS_BUILD {

enum class queue_kind { fifo, random_shuffle, padding_fifo, priority };
std::string_view name_of(queue_kind kind);

// These are the options of every kind of queue besides its capacity and types.
struct queue_options {
  // Extents of each component of one element. If empty, elements have any shape, and there is no dequeue_many.
  std::vector<extents> shapes = {};
  // Names of the components; with names an element is a dictionary. Empty: none.
  std::vector<std::string> names = {};
  // The name by which sessions share the queue. If empty, they do not share it.
  std::string shared_name = {};
  // The name in error messages. If empty, it is the kind's.
  std::string name = {};
  // Of a random shuffle queue: the graph's seed and its own. If both are 0, a seed is drawn when the queue is made.
  std::uint64_t seed = 0, seed2 = 0;
};

struct queue_spec {
  queue_kind kind = queue_kind::fifo;
  std::int64_t capacity = -1;  // elements; below 0: no bound
  std::vector<dtype> dtypes;   // of the components
  // Extents of all components, or empty. Only a padding queue has any_extent.
  std::vector<extents> shapes = {};
  std::vector<std::string> names = {};
  std::string shared_name = {};
  std::string name = {};
  std::int64_t min_after_dequeue = 0;  // this and the seeds: of a random shuffle queue
  std::uint64_t seed = 0, seed2 = 0;

  // Returns the name in error messages: shared_name, or else name, or else the kind.
  std::string shown_name() const;
  bool has_shapes() const { return !shapes.empty(); }
  // Returns true if all elements have one size.
  bool has_fixed_size() const;
  // Returns the components of one element, for a datum. Without names they are component_0 and so on; without shapes
  // they are scalars.
  components parts() const;

  // Raises invalid_argument for a spec that describes no queue.
  void check() const;
  // Checks an element to be enqueued, or rows of elements (`many`); returns the number of rows, or 1. Raises
  // invalid_argument for another number of components, another type or extents, or different numbers of rows.
  std::int64_t check_element(std::span<const const_tensor_view> element, bool many) const;
};

queue_spec make_queue_spec(queue_kind kind, std::int64_t capacity, std::vector<dtype> dtypes, queue_options options);

// Raises invalid_argument if `wanted` differs from the queue that has its name already; the message has both. Names of
// components are not compared: each user of the queue has names of its own, as in TensorFlow.
void check_same_queue(const queue_spec& existing, const queue_spec& wanted);

namespace detail {
std::string in_brackets(const auto& items, auto&& show) {
  std::string out = "[";
  for (const auto& item : items) out += text(out.size() == 1 ? "" : ", ", show(item));
  return out + "]";
}
}  // namespace detail

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "spec.ipp"
#endif
