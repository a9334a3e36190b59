// A fifo_queue keeps the order of insertion. It is tf.queue.FIFOQueue.
//
//   gradus::fifo_queue q(10, {float32}, {.shapes = {{784}}});
#pragma once
#include "any_queue.hpp"

namespace gradus::inline GRADUS_BUILD {

class fifo_queue : public any_queue {
public:
  // The queue holds at most `capacity` elements, or any number if that is below 0. Raises invalid_argument for
  // arguments that describe no queue.
  fifo_queue(std::int64_t capacity, std::vector<dtype> dtypes, queue_options options = {}, const task_system& run = {})
      : any_queue(make_spec(capacity, std::move(dtypes), std::move(options)), run) {}

  static queue_spec make_spec(std::int64_t capacity, std::vector<dtype> dtypes, queue_options options = {}) {
    return make_queue_spec(queue_kind::fifo, capacity, std::move(dtypes), std::move(options));
  }
};

}  // namespace gradus
