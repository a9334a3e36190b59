// These functions feed input through queues of a session's graph, as TensorFlow 1.x's tf.train.input_producer, batch,
// shuffle_batch and their siblings (1.15). Each makes a queue, adds a queue runner that fills it to the graph's
// collection, and returns the tensors, or the queue, that a model reads.
//
//   auto rows = gradus::slice_input_producer({images, labels}, {.num_epochs = 3, .seed = 7});   // two tensors
//   auto one = gradus::shuffle_batch(rows, 32, 1000, 500);              // one[0] [batch, ...], one[1] [batch]
//   auto loss = model(one[0], one[1]);
//   ...
//   auto threads = gradus::start_queue_runners(s, &coord);              // a monitored session does it by itself
//   while (!coord.should_stop()) coord.stop_on_exception([&] { s.run(train); });
//
// After num_epochs the queue is closed; its readers get the elements that are left, and then out_of_range. The epochs
// are counted by a local variable, so run local_variables_initializer (a scaffold does).
//
// TensorFlow differs: tf.train.batch is batch_tensors here, since `batch` is the extent of a batch; a run makes all
// dequeues before its kernels (graph_queue.hpp), so an op of one runner takes an element from each queue that it reads;
// there is no summary of how full a queue is; equal seeds give equal orders, and a seed of 0 gives another order each
// time.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../input/any_dataset.hpp"
#include "../session/queue/graph_queue.hpp"
#include "../session/queue_runner.hpp"

namespace gradus::inline GRADUS_BUILD {

struct producer_options {
  std::optional<std::int64_t> num_epochs = {};  // without it the input has no end
  bool shuffle = true;                          // again in each epoch
  std::uint64_t seed = 0;
  std::int64_t capacity = 32;
  std::string shared_name = {};
  std::string name = {};
};

// Returns the rows of a tensor [n, ...], again and again, as a queue of one component. Raises invalid_argument for a
// scalar, for rows of no fixed size, and for a num_epochs that is not above 0.
graph_queue input_producer(value input_tensor, producer_options o = {});
// Returns the numbers 0 to limit - 1, of int32. Raises invalid_argument for a limit that is not above 0, and as above.
graph_queue range_input_producer(graph& g, std::int64_t limit, producer_options o = {});
// Returns one row of each of these tensors at a time, the rows of the same index. Raises invalid_argument for no
// tensors, for tensors of different numbers of rows, and as above.
dequeued slice_input_producer(std::vector<value> tensors, producer_options o = {});

// An example consists of tensors, with names or without.
class example_tensors {
public:
  example_tensors(std::initializer_list<value> list) : parts_(list) {}
  example_tensors(std::vector<value> list) : parts_(std::move(list)) {}
  example_tensors(const dequeued& taken);
  example_tensors(std::initializer_list<std::pair<std::string_view, value>> dictionary);
  const std::vector<value>& parts() const { return parts_; }
  const std::vector<std::string>& names() const { return names_; }

private:
  std::vector<value> parts_;
  std::vector<std::string> names_;
};

struct batching_options {
  int num_threads = 1;               // of batch_tensors and shuffle_batch; they run the same op
  std::int64_t capacity = 32;        // of batch_tensors and batch_join
  bool enqueue_many = false;         // the tensors hold rows, each of which is an example
  std::vector<extents> shapes = {};  // of an example's tensors; empty: the tensors' own
  // If true, shapes may have any_extent, and a batch is padded with zeros. A tensor of a graph cannot have two extents
  // that are known only when the graph runs: such a batch is dequeued as an object.
  bool dynamic_pad = false;
  bool allow_smaller_final_batch = false;
  std::uint64_t seed = 0;  // of shuffle_batch and shuffle_batch_join
  std::string shared_name = {};
  std::string name = {};
};

// tf.train.batch: returns batches of batch_size in the order in which the examples come. All four functions raise
// invalid_argument for no tensors, for a batch_size, num_threads or capacity that is not above 0, for tensors whose
// shapes are not known, and for examples that differ in number, types or names; and unimplemented for padded batches
// (above).
dequeued batch_tensors(const example_tensors& example, std::int64_t batch_size, batching_options o = {});
// Batches the examples of several lists of tensors, each of which has a thread of its own.
dequeued batch_join(const std::vector<example_tensors>& examples, std::int64_t batch_size, batching_options o = {});
// Do the same in a random order, from a queue that keeps min_after_dequeue examples while it is open.
dequeued shuffle_batch(const example_tensors& example, std::int64_t batch_size, std::int64_t capacity,
                       std::int64_t min_after_dequeue, batching_options o = {});
dequeued shuffle_batch_join(const std::vector<example_tensors>& examples, std::int64_t batch_size,
                            std::int64_t capacity, std::int64_t min_after_dequeue, batching_options o = {});

// A thread puts the elements of this dataset into a queue, once; at the end of the data, or at a stop, the queue is
// closed. The dataset is not part of the graph, so the program makes the thread, and no collection has it:
//
//   gradus::dataset_producer input(gradus::range_dataset(100).shuffle(100));
//   gradus::graph_queue q(g, input.queue(32));
//   auto threads = input.create_threads(q, s, &coord, true);
class dataset_producer {
public:
  explicit dataset_producer(any_units<false> data) : data_(std::make_shared<any_units<false>>(std::move(data))) {}
  // Returns a fifo queue for such elements, with the names of the dataset's components. Raises invalid_argument for a
  // capacity of 0.
  queue_spec queue(std::int64_t capacity, queue_options o = {}) const;
  // Makes one thread that reads the data, and with a coordinator another that cancels waits in the queue at a stop;
  // `start` starts them. Errors of the data stop the coordinator, or are kept if there is none. Raises invalid_argument
  // as graph_queue::in does.
  [[nodiscard]] std::vector<coordinated_thread> create_threads(const graph_queue& q, base_session& s,
                                                               any_coordinator* coord = nullptr, bool start = false);
  // Returns the error that ended the thread of the last create_threads, if it had no coordinator; null for the end of
  // the data.
  std::exception_ptr exception_raised() const { return *raised_; }

private:
  std::shared_ptr<any_units<false>> data_;
  std::shared_ptr<std::exception_ptr> raised_ = std::make_shared<std::exception_ptr>();
};

namespace detail {
void run_enqueue_shuffled(session_call& c);
}

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "input_producer.ipp"
#endif
