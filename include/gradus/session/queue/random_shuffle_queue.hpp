// A random_shuffle_queue returns any of its elements, all equally likely. It is tf.queue.RandomShuffleQueue.
//
//   gradus::random_shuffle_queue q(1000, 100, {float32}, {.shapes = {{784}}, .seed = 7});
//
// While the queue is open, min_after_dequeue elements stay in it, so that there is a choice; after close all can be
// taken. The same seeds and the same calls, one after another, give the same order, which is not TensorFlow's.
#pragma once
#include "any_queue.hpp"

namespace gradus::inline GRADUS_BUILD {

class random_shuffle_queue : public any_queue {
public:
  // Raises invalid_argument for arguments that describe no queue, and unless 0 <= min_after_dequeue < capacity.
  random_shuffle_queue(std::int64_t capacity, std::int64_t min_after_dequeue, std::vector<dtype> dtypes,
                       queue_options options = {}, const task_system& run = {})
      : any_queue(make_spec(capacity, min_after_dequeue, std::move(dtypes), std::move(options)), run) {}

  static queue_spec make_spec(std::int64_t capacity, std::int64_t min_after_dequeue, std::vector<dtype> dtypes,
                              queue_options options = {}) {
    queue_spec spec = make_queue_spec(queue_kind::random_shuffle, capacity, std::move(dtypes), std::move(options));
    spec.min_after_dequeue = min_after_dequeue;
    return spec;
  }
};

}  // namespace gradus
