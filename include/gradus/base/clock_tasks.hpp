// This header makes a task system of a clock, with the time of the clock and the threads of the system. Code that waits
// uses it to accept a clock of any type, while its body is ordinary code that uses a task_system.
#pragma once
#include "clock.hpp"
#if defined(__STDCPP_THREADS__)
#include <concepts>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#include "tasks.hpp"

namespace gradus::inline GRADUS_BUILD {

// A clock that also does the waiting: a clock with `wait` decides itself how long a wait takes (that of a test takes no
// time). `wait` returns when the condition was notified or the seconds are over, and may return early.
template <class C>
concept waiting_clock = clock<C> && requires(C& c, std::condition_variable& changed,
                                             std::unique_lock<std::mutex>& lock) { c.wait(changed, lock, 1.0); };

namespace detail {
template <clock Clock>
class clock_driver final : public task_driver {
public:
  explicit clock_driver(Clock clock) : clock_(std::move(clock)) {}

  double now() const override { return clock_.now(); }
  double elapsed() const override { return clock_.elapsed(); }
  void sleep(double secs) override {
    if constexpr (waiting_clock<Clock>) {
      std::mutex alone;
      std::unique_lock lock(alone);
      std::condition_variable never;
      const double until = elapsed() + secs;
      for (double left = secs; left > 0; left = until - elapsed()) clock_.wait(never, lock, left);
    } else {
      task_system().sleep(secs);
    }
  }
  std::unique_ptr<meeting> make_meeting() override { return std::make_unique<place>(clock_); }
  std::unique_ptr<running> start(std::function<void()> body) override {
    return std::make_unique<begun>(std::move(body));
  }

private:
  class place final : public meeting {
  public:
    explicit place(Clock& c) : clock_(&c) {}
    void wait(std::unique_lock<std::mutex>& lock, double secs) override {
      if (secs == task_condition::forever) return changed_.wait(lock);
      if constexpr (waiting_clock<Clock>)
        clock_->wait(changed_, lock, secs);
      else
        wait_on_the_system(changed_, lock, secs);
    }
    void notify_one() override { changed_.notify_one(); }
    void notify_all() override { changed_.notify_all(); }

  private:
    std::condition_variable changed_;
    Clock* clock_;
  };
  struct begun final : running {
    explicit begun(std::function<void()> body) : thread(std::move(body)) {}
    void join() override { thread.join(); }
    joining_thread thread;
  };

  Clock clock_;
};
}  // namespace detail

// Returns a task system for the clock. For a task_system it is that itself, and for a clock with `tasks()`
// (testing/hand_tasks.hpp) it is the result of that.
template <clock Clock>
task_system tasks_of(const Clock& clock) {
  if constexpr (std::same_as<Clock, task_system>)
    return clock;
  else if constexpr (std::same_as<Clock, system_clock>)
    return {};
  else if constexpr (requires {
                       { clock.tasks() } -> std::convertible_to<task_system>;
                     })
    return clock.tasks();
  else
    return task_system(std::make_shared<detail::clock_driver<Clock>>(clock));
}

}  // namespace gradus
#endif
