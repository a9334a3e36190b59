// A padding_fifo_queue keeps the order of insertion, and its elements may differ in size: dequeue_many pads them with
// zeros to the largest of the batch. It is tf.queue.PaddingFIFOQueue.
//
//   gradus::padding_fifo_queue sentences(100, {int32}, {{any_extent}});
//   sentences.dequeue_many(32);   // [32, the longest of these 32]
//
// The lengths of the elements are not in the batch; a component of its own can hold them.
#pragma once
#include "any_queue.hpp"

namespace gradus::inline GRADUS_BUILD {

class padding_fifo_queue : public any_queue {
public:
  // `shapes` has a shape for each component, with any_extent where elements differ; it takes the place of
  // options.shapes. Raises invalid_argument for arguments that describe no queue.
  padding_fifo_queue(std::int64_t capacity, std::vector<dtype> dtypes, std::vector<extents> shapes,
                     queue_options options = {}, const task_system& run = {})
      : any_queue(make_spec(capacity, std::move(dtypes), std::move(shapes), std::move(options)), run) {}

  static queue_spec make_spec(std::int64_t capacity, std::vector<dtype> dtypes, std::vector<extents> shapes,
                              queue_options options = {}) {
    options.shapes = std::move(shapes);
    return make_queue_spec(queue_kind::padding_fifo, capacity, std::move(dtypes), std::move(options));
  }
};

}  // namespace gradus
