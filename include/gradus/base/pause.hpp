// This is a sleep that cancellations end, for code that polls.
#pragma once
#include "cancellation.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Sleeps so many seconds, or until one of these (null: nothing) is cancelled; returns whether none was.
inline bool pause(const task_system& t, double secs, cancellation* one, cancellation* other = nullptr) {
  std::mutex mutex;
  task_condition changed(t);
  bool woken = false;
  cancellation never;
  const auto wake = [&] {
    const std::lock_guard lock(mutex);
    woken = true;
    changed.notify_all();
  };
  const cancellation::link by_one(one != nullptr ? *one : never, wake),
      by_other(other != nullptr ? *other : never, wake);
  std::unique_lock lock(mutex);  // last: links end without it, which `wake` takes
  changed.wait_for(lock, secs, [&] { return woken; });
  return !woken;
}

}  // namespace gradus::detail
