// A clock for code that waits: its time is turned by hand, or passes by itself in waits that nobody ends, so that no
// test sleeps. Copies are the same clock; any thread may use it.
#pragma once
#include <gradus/base/clock.hpp>

#include <condition_variable>
#include <memory>
#include <mutex>

class turned_clock {
public:
  using policy_for = gradus::kind::clock;

  // `passes`: a wait takes no time, and the clock goes on by as much as it asked for. Otherwise it lasts until somebody
  // turns the clock that far, or notifies.
  turned_clock() : turned_clock(false) {}
  explicit turned_clock(bool passes) : s_(std::make_shared<state>()) { s_->passes = passes; }

  double now() const { return 1.5e9 + elapsed(); }
  double elapsed() const {
    const std::lock_guard lock(s_->mutex);
    return s_->time;
  }
  void turn(double secs) const {
    std::unique_lock lock(s_->mutex);
    s_->time += secs;
    const auto waiter = s_->changed;
    const auto waiters_mutex = s_->waiters_mutex;
    lock.unlock();
    if (waiter == nullptr) return;
    { const std::lock_guard between(*waiters_mutex); }
    waiter->notify_all();
  }
  // One coordinator at a time.
  void wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, double secs) const {
    {
      const std::lock_guard mine(s_->mutex);
      if (s_->passes) {
        s_->time += secs;
        return;
      }
      s_->changed = &changed, s_->waiters_mutex = lock.mutex(), s_->waits += 1;
    }
    s_->waiting.notify_all();
    changed.wait(lock);
  }
  // Until there were so many waits in all: then whoever was to wait does.
  void until_waits(int n) const {
    std::unique_lock lock(s_->mutex);
    s_->waiting.wait(lock, [&] { return s_->waits >= n; });
  }

private:
  struct state {
    std::mutex mutex;
    std::condition_variable waiting;
    double time = 0;
    int waits = 0;
    bool passes = false;
    std::condition_variable* changed = nullptr;
    std::mutex* waiters_mutex = nullptr;
  };
  std::shared_ptr<state> s_;
};
