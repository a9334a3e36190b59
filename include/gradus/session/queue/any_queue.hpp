// `any_queue` is a type-erased handle to a queue of any kind; copies refer to the same queue. It is TensorFlow's
// tf.queue.QueueBase.
//
//   gradus::fifo_queue q(32, {float32, int32}, {.shapes = {{784}, {}}, .names = {"image", "label"}});
//   q.enqueue(element);                       // a datum; waits while the queue is full
//   gradus::datum batch = q.dequeue_many(8);  // image [8, 784], label [8]; waits until there are 8
//   q.close();                                // elements that are left can be taken, then out_of_range is raised
//
// Elements are rows of arrays of any dtype; a text is a uint8 array of any extent, as in input/text_line.hpp. Many
// threads may call at once: calls are served in order of arrival, and each element goes to one of them. A call that
// waits raises deadline_exceeded or cancelled as its blocking_options say, and leaves the queue as it was. The memory
// of elements is used again, so a queue with shapes allocates nothing once it has been full. No call may be under way
// when the last handle is destroyed.
//
// TensorFlow differs: here a dequeue_many that is cancelled or late gives back the elements that it had gathered, also
// beyond the capacity; close() waits for pending enqueues on the thread that calls it; a call that takes more elements
// at once than a priority queue's capacity raises an error.
#pragma once
#include "../../base/build.hpp"

#include <array>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core.hpp"

namespace gradus::inline GRADUS_BUILD {

// A component of an element that is given as a dictionary.
struct named_value {
  std::string_view name;
  const_tensor_view value;
};

class any_queue {
public:
  // Makes a new queue. Raises invalid_argument for a spec that describes no queue.
  explicit any_queue(const queue_spec& spec, const task_system& run = {});
  // Makes a handle to an existing queue that must equal this description: sessions share queues by name. Raises
  // invalid_argument, with both descriptions, if they are not the same (check_same_queue).
  any_queue(const queue_spec& spec, const any_queue& existing);
  // Returns the index-th of queues of the same components. Raises invalid_argument for no queues and for queues that
  // differ in types or names; out_of_range for another index.
  static any_queue from_list(std::int64_t index, std::span<const any_queue> queues);

  const queue_spec& spec() const { return *spec_; }
  std::string name() const { return core_->spec().shown_name(); }
  std::int64_t capacity() const { return spec_->capacity; }
  const std::vector<dtype>& dtypes() const { return spec_->dtypes; }
  const std::vector<extents>& shapes() const { return spec_->shapes; }
  const std::vector<std::string>& names() const { return spec_->names; }
  bool is_same(const any_queue& other) const { return core_ == other.core_; }

  // Enqueues one element: a list of arrays, or a dictionary or a datum with the names of the queue's components. A
  // datum for a queue without names is a list. Raises invalid_argument for arrays that are no element of this queue;
  // cancelled if the queue is closed.
  void enqueue(std::span<const const_tensor_view> element, const blocking_options& wait = {});
  void enqueue(std::initializer_list<named_value> element, const blocking_options& wait = {});
  void enqueue(const datum& element, const blocking_options& wait = {});
  // Enqueues one element of scalars: enqueue(1, 0.5F).
  template <storable... Scalars>
  void enqueue(const Scalars&... values) {
    const std::array<const_tensor_view, sizeof...(Scalars)> list{
        const_tensor_view(dtype_of<Scalars>, {}, reinterpret_cast<const std::byte*>(&values))...};
    enqueue(std::span<const const_tensor_view>(list));
  }
  // Enqueues as many elements as the arrays have rows. If the queue has less room, some are put in, and the call waits
  // with the rest.
  void enqueue_many(std::span<const const_tensor_view> rows, const blocking_options& wait = {});
  void enqueue_many(std::initializer_list<named_value> rows, const blocking_options& wait = {});
  void enqueue_many(const datum& rows, const blocking_options& wait = {});

  // Dequeues one element. Raises out_of_range if the queue is closed and empty; invalid_argument for arrays of other
  // types or shapes than the element's, and for arrays if the queue has no fixed shapes (take a datum then).
  void dequeue(std::span<const tensor_view> out, const blocking_options& wait = {});
  void dequeue(datum& out, const blocking_options& wait = {});
  datum dequeue(const blocking_options& wait = {});
  // Dequeues one element of a queue of one scalar component.
  template <storable T>
  T dequeue(const blocking_options& wait = {}) {
    T value{};
    const tensor_view out(dtype_of<T>, {}, reinterpret_cast<std::byte*>(&value));
    dequeue(std::span<const tensor_view>(&out, 1), wait);
    return value;
  }
  // Dequeues n elements as rows of one datum. Raises invalid_argument if the queue has no shapes; out_of_range if it is
  // closed and has fewer elements, which stay in it.
  void dequeue_many(std::int64_t n, datum& out, const blocking_options& wait = {});
  datum dequeue_many(std::int64_t n, const blocking_options& wait = {});
  // Dequeues n elements, or fewer but at least one if the queue is closed. Raises out_of_range if it is closed and
  // empty.
  void dequeue_up_to(std::int64_t n, datum& out, const blocking_options& wait = {});
  datum dequeue_up_to(std::int64_t n, const blocking_options& wait = {});

  // Closes the queue for enqueues; its elements can still be taken. Enqueues that wait are served first, so close waits
  // for them. With cancel_pending_enqueues they raise cancelled, and close does not wait. Raises cancelled if the queue
  // is closed already.
  void close(bool cancel_pending_enqueues = false, const blocking_options& wait = {});

  std::int64_t size() const { return core_->size(); }
  bool is_closed() const { return core_->is_closed(); }
  pending_calls pending() const { return core_->pending(); }

private:
  std::shared_ptr<const queue_spec> spec_;
  components parts_;  // of one element
  std::shared_ptr<detail::queue_core> core_;

  void put(std::span<const const_tensor_view> list, bool named, bool many, const blocking_options& wait);
  void put(std::initializer_list<named_value> dictionary, bool many, const blocking_options& wait);
  void put(const datum& element, bool many, const blocking_options& wait);
  void take(std::int64_t n, bool up_to, datum& out, const blocking_options& wait);
  std::size_t position_of(std::string_view name) const;
  [[noreturn]] void refuse(const std::string& why) const;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "any_queue.ipp"
#endif
