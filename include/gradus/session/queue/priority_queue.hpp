// A priority_queue is ordered by a key: component 0 of each element, an int64 scalar; the smallest comes first. It is
// tf.queue.PriorityQueue.
//
//   gradus::priority_queue q(10, {float32}, {.shapes = {{}}});
//   q.enqueue(std::int64_t{3}, 0.5F);   // the key, then the components of `types`
//
// Elements of equal keys come in the order of insertion; TensorFlow does not specify their order. A dequeue_many waits
// until all its elements are there, so that they are sorted.
#pragma once
#include "any_queue.hpp"

namespace gradus::inline GRADUS_BUILD {

class priority_queue : public any_queue {
public:
  // `types` and options.shapes are those of the components after the key; options.names has the key's name first.
  // Raises invalid_argument for arguments that describe no queue.
  priority_queue(std::int64_t capacity, std::vector<dtype> types, queue_options options = {},
                 const task_system& run = {})
      : any_queue(make_spec(capacity, std::move(types), std::move(options)), run) {}

  static queue_spec make_spec(std::int64_t capacity, std::vector<dtype> types, queue_options options = {}) {
    types.insert(types.begin(), int64);
    if (!options.shapes.empty() || types.size() == 1) options.shapes.insert(options.shapes.begin(), extents{});
    return make_queue_spec(queue_kind::priority, capacity, std::move(types), std::move(options));
  }
};

}  // namespace gradus
