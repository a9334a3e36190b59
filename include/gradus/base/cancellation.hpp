// A cancellation cancels waiting calls together: a session that is closed cancels the calls that wait in its queues.
// TensorFlow's CancellationManager.
//
//   gradus::cancellation closing;
//   queue.dequeue(element, {.cancel = &closing});   // on one thread: waits
//   closing.cancel("the session is closed");        // on another: the call above raises cancelled
#pragma once
#include <atomic>
#include <functional>
#include <mutex>
#include <string>

#include "error.hpp"
#include "tasks.hpp"

namespace gradus::inline GRADUS_BUILD {

// Any thread may call any function. It outlives the calls that wait with it.
class cancellation {
public:
  cancellation() = default;
  cancellation(const cancellation&) = delete;

  // Every call that waits with it, now or later, raises an error of this kind with this reason. The first ones stay.
  void cancel(const std::string& why = "the call was cancelled", status kind = status::cancelled);
  bool is_cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  // Empty until it is cancelled.
  std::string reason() const;
  status kind() const;

  // Waiting code uses this: it calls `on_cancel` when the calls are cancelled, at once if they are. Destroying it waits
  // while on_cancel runs; on_cancel makes and destroys none of these.
  class link {
  public:
    link(cancellation& to, std::function<void()> on_cancel);
    link(const link&) = delete;
    ~link();

  private:
    friend class cancellation;
    cancellation& to_;
    std::function<void()> on_cancel_;
    link* before_ = nullptr;
    link* next_ = nullptr;
  };

private:
  mutable std::mutex mutex_;
  std::atomic<bool> cancelled_{false};
  std::string reason_;
  status kind_ = status::cancelled;
  link* first_ = nullptr;
};

// The limits of a call's wait.
struct blocking_options {
  double timeout_secs = task_condition::forever;  // then it raises deadline_exceeded; 0: it does not wait
  cancellation* cancel = nullptr;                 // then it raises cancelled, or the cancellation's error
  cancellation* stop = nullptr;                   // the same, but a call that need not wait is made
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "cancellation.ipp"
#endif
