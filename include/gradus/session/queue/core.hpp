// This is the engine of all queues: it decides which call waits, which is served, and what a close does. The kinds of
// queues differ only by their storage.
//
// A call is an attempt. Attempts wait in two lines, one for enqueues and one for dequeues, and only the first of a line
// is served. Whenever an attempt has made progress, both lines are checked again until none makes any. The thread that
// does this serves the calls of other threads too, so a waiting thread wakes with its call done. A close without
// cancel_pending_enqueues waits in the line of the enqueues.
//
// The lock is held only while pointers move. Each thread copies its own arrays outside of the lock, unless they are so
// small that taking the lock again would cost more.
#pragma once
#include "../../base/build.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "../../base/cancellation.hpp"
#include "storage.hpp"

namespace gradus::inline GRADUS_BUILD {

// The numbers of calls that wait in a queue at the moment, for tests and for debugging a run that does not go on.
struct pending_calls {
  std::int64_t enqueues = 0;  // and closes that wait behind them
  std::int64_t dequeues = 0;
  bool operator==(const pending_calls&) const = default;
};

namespace detail {

// The function that copies elements to their destination.
class element_reader {
public:
  virtual void read(const element_chain& from) = 0;
  bool is_quick = false;  // read cannot fail, and takes less time than taking a lock

protected:
  ~element_reader() = default;
};

class queue_core {
public:
  static constexpr std::size_t small = 256;  // bytes that are copied faster than a lock is taken
  static constexpr int looks = 200;          // checks before a thread sleeps: some microseconds, less than waking takes

  // Raises invalid_argument for a spec that describes no queue.
  queue_core(const queue_spec& spec, const task_system& run);
  queue_core(const queue_core&) = delete;

  const queue_spec& spec() const { return spec_; }
  const element_layout& layout() const { return layout_; }

  // Enqueues one element, or with `many` the rows of `from`. Raises invalid_argument for arrays that are no element of
  // the queue; cancelled if the queue is closed.
  void enqueue(std::span<const const_tensor_view> from, bool many, const blocking_options& wait);
  // Dequeues n > 0 elements, or with `up_to` those that are left in a queue that is closed. If the reader fails they
  // are put back. Raises out_of_range if the queue is closed and has too few.
  void dequeue(std::int64_t n, bool up_to, element_reader& to, const blocking_options& wait);
  void close(bool cancel_pending_enqueues, const blocking_options& wait);

  std::int64_t size() const;
  bool is_closed() const;
  pending_calls pending() const;

private:
  // The place where a thread waits. Places are kept for the next thread that has to wait.
  struct place {
    explicit place(const task_system& run) : changed(run) {}
    std::atomic<bool> called{false};  // the thread's attempt ended or may go on
    bool asleep = false;
    task_condition changed;
  };
  enum class outcome { none, done, queue_closed, closed_before, too_few, dropped, cancelled, late };
  struct attempt {
    enum kinds { putting, taking, closing } kind;
    std::int64_t requested = 1;
    bool up_to = false;
    std::int64_t left = requested;  // elements not yet in, or not yet taken
    element_chain elements = {};    // ready to go in, or taken
    outcome result = outcome::none;
    std::int64_t found = 0;  // elements in the queue when there were too few
    place* at = nullptr;     // where its thread waits
    const blocking_options* wait = nullptr;
    attempt *before = nullptr, *next = nullptr;

    bool ended() const { return result != outcome::none; }
    // Returns true for a call that waits and whose cancellation came. It must not be served any more: what a cancelled
    // call leaves behind may serve the next one of the same cancellation, whose link is called later.
    bool is_cancelled() const {
      return at != nullptr && ((wait->cancel != nullptr && wait->cancel->is_cancelled()) ||
                               (wait->stop != nullptr && wait->stop->is_cancelled()));
    }
    // Returns true if its own thread has to copy more rows before the attempt can go on.
    bool is_hungry() const { return kind == putting && elements.empty() && left > 0; }
  };
  struct line {
    attempt *first = nullptr, *last = nullptr;
  };
  class turn;   // the lock, and the threads to be woken when it is released
  class visit;  // an attempt in its line, until the call ends

  line& line_of(const attempt& a) { return a.kind == attempt::taking ? dequeues_ : enqueues_; }
  bool has_room() const { return spec_.capacity < 0 || storage_->size() < spec_.capacity; }
  void join(attempt& a);
  void end(turn& t, attempt& a, outcome how);
  void serve(turn& t);
  bool serve_first(turn& t, attempt& a);
  bool bring(turn& t, attempt& a);
  bool take(turn& t, attempt& a);
  void fill(turn& t, attempt& a, std::span<const const_tensor_view> from, bool many);
  void await(turn& t, attempt& a, const blocking_options& wait, double& until);
  void park(turn& t, attempt& a, double until);
  void cancel(attempt& a);
  void check_begin(const blocking_options& wait) const;
  [[noreturn]] void raise_for(const attempt& a, const blocking_options& wait) const;

  const queue_spec spec_;
  const element_layout layout_;
  const task_system tasks_;
  mutable std::mutex mutex_;
  std::unique_ptr<queue_storage> storage_;
  bool closed_ = false;
  line enqueues_, dequeues_;
  element_chain free_;    // memory for the next elements
  std::int64_t all_ = 0;  // the number of elements that were ever made: as many may be in the storage
  std::vector<std::unique_ptr<place>> places_;
  std::vector<place*> free_places_;
};

}  // namespace detail
}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "core.ipp"
#endif
