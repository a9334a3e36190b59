// This header has a sleep that a cancellation ends, for code that polls.
#pragma once
#include "cancellation.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Sleeps `secs` seconds, or until `one` or `other` is cancelled (null: there is none). Returns true if neither was
// cancelled.
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
  std::unique_lock lock(mutex);  // last: it is released before the links end, since `wake` takes the mutex
  changed.wait_for(lock, secs, [&] { return woken; });
  return !woken;
}

}  // namespace gradus::detail
