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
#include <utility>

#include "error.hpp"
#include "tasks.hpp"

namespace gradus::inline GRADUS_BUILD {

// Any thread may call any function. The object must outlive the calls that wait with it.
class cancellation {
public:
  cancellation() = default;
  cancellation(const cancellation&) = delete;

  // Makes every call that waits with this object, now or later, raise an error of this kind with this reason. If it is
  // called again, the first kind and reason stay.
  void cancel(const std::string& why = "the call was cancelled", status kind = status::cancelled);
  // These are the two halves of cancel, for code that cancels several objects together, or by a state of its own. From
  // `mark` on is_cancelled() is true, so that nobody serves a call that waits with this object; `call` calls the links.
  // mark may be called under a mutex that the functions of links lock.
  void mark(const std::string& why = "the call was cancelled", status kind = status::cancelled);
  void call();
  bool is_cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  // Returns the reason, which is empty until the first cancel.
  std::string reason() const;
  status kind() const;

  // Code that waits uses a link. It calls `on_cancel` when the cancellation comes, or at once if it has come. The
  // destructor waits while on_cancel runs. on_cancel must not make or destroy links.
  class link {
  public:
    link(cancellation& to, std::function<void()> on_cancel) : link(to, std::move(on_cancel), nullptr) {}
    link(cancellation& to, cancellation& next);  // passes both halves of the cancellation on to `next`
    link(const link&) = delete;
    ~link();

  private:
    friend class cancellation;
    link(cancellation& to, std::function<void()> on_cancel, cancellation* next);

    cancellation& to_;
    std::function<void()> on_cancel_;
    cancellation* marks_;  // or null
    link* before_ = nullptr;
    link* next_ = nullptr;
  };

private:
  // `calls_` is held while links are called, so that no link is destroyed during its call; `mutex_` is not. Links come
  // and go under both.
  std::mutex calls_;
  mutable std::mutex mutex_;
  std::atomic<bool> cancelled_{false};
  bool called_ = false;
  std::string reason_;
  status kind_ = status::cancelled;
  link* first_ = nullptr;

  void call_links();
};

namespace detail {
// Ends a call that waits with it as soon as one of two cancellations comes, by that one's kind and reason.
class either_cancellation {
public:
  either_cancellation(cancellation& a, cancellation& b) : a_(a, one_), b_(b, one_) {}
  cancellation* get() { return &one_; }

private:
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
