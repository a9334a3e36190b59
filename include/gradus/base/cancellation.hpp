// A cancellation cancels several waiting calls together: a session that is closed cancels the calls that wait in its
// queues. It is TensorFlow's CancellationManager.
//
//   gradus::cancellation closing;
//   queue.dequeue(element, {.cancel = &closing});   // one thread waits
//   closing.cancel("the session is closed");        // another thread cancels: the call above raises cancelled
#pragma once
#include "build.hpp"

#include <atomic>
#include <functional>
#include <mutex>
#include <string>

#include "error.hpp"
#include "tasks.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
class either_cancellation;
}

// Any thread may call any function. The object must outlive the calls that wait with it.
class cancellation {
public:
  cancellation() = default;
  cancellation(const cancellation&) = delete;

  // Makes every call that waits with this object, now or later, raise an error of this kind with this reason. If it is
  // called again, the first kind and reason stay.
  void cancel(const std::string& why = "the call was cancelled", status kind = status::cancelled);
  bool is_cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  // Returns the reason, which is empty until the first cancel.
  std::string reason() const;
  status kind() const;

  // Code that waits uses a link. It calls `on_cancel` when the cancellation comes, or at once if it has come. The
  // destructor waits while on_cancel runs. on_cancel must not make or destroy links.
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
  friend class detail::either_cancellation;
  mutable std::mutex mutex_;
  std::atomic<bool> cancelled_{false};
  std::string reason_;
  status kind_ = status::cancelled;
  link* first_ = nullptr;
};

namespace detail {
// Ends a call that waits with it as soon as one of two cancellations comes, by that one's kind and reason.
class either_cancellation {
public:
  either_cancellation(cancellation& a, cancellation& b);
  cancellation* get() { return &one_; }

private:
  static void pass(cancellation& from, cancellation& to) { to.cancel(from.reason_, from.kind_); }
  cancellation one_;
  cancellation::link a_, b_;
};
}  // namespace detail

// The limits of a call's wait.
struct blocking_options {
  double timeout_secs = task_condition::forever;  // after it the call raises deadline_exceeded; 0: no wait
  cancellation* cancel = nullptr;                 // then the call raises cancelled, or the cancellation's error
  cancellation* stop = nullptr;                   // the same, but a call that need not wait succeeds
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "cancellation.ipp"
#endif
