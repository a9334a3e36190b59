// A graph_queue is a queue as ops of a session's graph, as tf.queue.QueueBase is in TensorFlow's graphs.
//
//   gradus::graph_queue q(g, make_queue_spec(gradus::queue_kind::fifo, 32, {float32, int64}, {.shapes = {{784}, {}}}));
//   const value put = q.enqueue({image, label});        // fetch it: s.run(put, feeds)
//   const auto batch = q.dequeue_many(8);               // batch[0] is [batch, 784], batch[1] is [batch]
//   const value loss = model(batch[0], batch[1]);       // s.run(loss) takes eight examples
//   const value close = q.close();
//
// A session makes the queue, and sessions with the same resources (run/session_resources.hpp) share it by its
// shared_name, or by its name in the graph if it has none.
//
// A run that dequeues does so first: it waits before it holds any variable, the elements are fed to the graph, and
// their number is the batch. A run enqueues when its kernels have ended, and so releases its variables before it
// waits for room. Closing the session cancels runs that wait; a timeout of run_options leaves the queue as it was. A
// run that fails after it has dequeued has lost its elements, as in TensorFlow.
//
// TensorFlow differs: here a run makes all dequeues before its kernels, and all enqueues after them, so an op cannot
// wait for an enqueue of its own run; a component that is fed is not dequeued; the components of a dequeue_many have a
// batch extent whatever n is; a component of a padding queue with several any_extents cannot be a tensor of a graph
// (one any_extent can be its batch).
#pragma once
#include "../../base/build.hpp"

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../run/base_session.hpp"
#include "any_queue.hpp"

namespace gradus::inline GRADUS_BUILD {

// These are the components of dequeued elements, as tensors.
class dequeued {
public:
  dequeued(std::vector<value> parts, std::vector<std::string> names)
      : parts_(std::move(parts)), names_(std::move(names)) {}
  std::size_t size() const { return parts_.size(); }
  const std::vector<std::string>& names() const { return names_; }  // empty if the queue has no names
  value operator[](std::size_t k) const { return parts_.at(k); }
  // Raises invalid_argument for a name that the queue does not have.
  value operator[](std::string_view name) const;
  // Returns the tensor of a queue of one component. Raises invalid_argument for another number of components.
  operator value() const;

private:
  std::vector<value> parts_;
  std::vector<std::string> names_;
};

class graph_queue {
public:
  // The node's name is the spec's name, made unique. Raises invalid_argument for a spec that
  // describes no queue.
  graph_queue(graph& g, queue_spec spec);
  // Returns the index-th of queues of the same components. Raises invalid_argument for no queues and for queues that
  // differ in types or names; out_of_range for another index.
  static graph_queue from_list(std::int64_t index, std::span<const graph_queue> queues);

  const queue_spec& spec() const { return spec_; }
  graph& of() const { return *g_; }
  // Returns the node's name, with its scope.
  std::string_view name() const { return g_->name_of(node_); }
  value node() const { return {g_, node_}; }

  // Returns an op that enqueues one element: a list of tensors, or a dictionary for a queue with names. Raises
  // invalid_argument for another number of components, another dtype, or a shape that cannot fit; a run raises the
  // errors of any_queue.
  value enqueue(std::span<const value> element);
  value enqueue(std::initializer_list<value> element) { return enqueue(std::span(element.begin(), element.size())); }
  value enqueue(std::initializer_list<std::pair<std::string_view, value>> element);
  // Returns an op that enqueues the rows of tensors as elements. If the queue has less room, some are put in, and the
  // run waits with the rest.
  value enqueue_many(std::span<const value> rows);
  value enqueue_many(std::initializer_list<value> rows) { return enqueue_many(std::span(rows.begin(), rows.size())); }
  value enqueue_many(std::initializer_list<std::pair<std::string_view, value>> rows);
  // Returns an enqueue op for a queue with or without names, from tensors in the order of its components.
  value put_in_order(std::span<const value> list, bool many) { return put(list, true, many); }

  // Returns tensors that hold the element of a dequeue. `shapes` are those of the components, for a queue without
  // shapes; for a queue with shapes it is empty. Raises unimplemented for a component that cannot be a tensor of a
  // graph (see the top of this file).
  dequeued dequeue(std::vector<shape> shapes = {});
  // Returns tensors of n elements as rows, [batch, ...]; dequeue_up_to takes fewer once the queue is closed. Raises
  // invalid_argument for a queue without shapes.
  dequeued dequeue_many(std::int64_t n);
  dequeued dequeue_up_to(std::int64_t n);

  value close(bool cancel_pending_enqueues = false);
  value size();       // int32, a scalar
  value is_closed();  // boolean, a scalar

  // Returns the queue of a session, as an object, for threads of the program's own.
  any_queue in(base_session& s) const;

private:
  graph* g_;
  queue_spec spec_;
  int node_ = -1;

  value put(std::span<const value> list, bool named, bool many);
  value put(std::initializer_list<std::pair<std::string_view, value>> dictionary, bool many);
  dequeued take(int mode, std::int64_t n, const std::vector<shape>& shapes);
  void check(std::size_t k, value v, bool many) const;
};

namespace detail {
// Returns the cards of all ops that a graph_queue adds to a graph.
std::span<const card* const> queue_cards();
// Returns a session's queue for a node of a queue.
any_queue queue_in(base_session& session, int node, bool with_names);
}  // namespace detail

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "graph_queue.ipp"
#endif
