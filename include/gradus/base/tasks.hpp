// A `task_system` is the one interface for waiting: all code that starts a thread, blocks, sleeps or reads the time
// uses one.
//
//   gradus::task_system run;                                     // the system's threads and clock
//   gradus::task_condition changed(run);
//   gradus::task_handle reader = run.start("the reader", "read on one thread", [&] { ... });
//   changed.wait(lock, [&] { return !queue.empty(); });    // as std::condition_variable
//   if (!changed.wait_for(lock, 5, done)) ...              // five seconds by the clock of `run`
//
// A program passes another task system to its objects if it wants to set the time by hand (testing/hand_tasks.hpp) or
// to run many tasks in a reproducible order. The calls of a driver are virtual, since they are made only where a thread
// blocks or starts, never in a step; with the system's threads, the default, they are direct.
//
// Mutexes stay std::mutex, since nothing blocks while it holds one, except on a condition, which releases it.
#pragma once
#include "build.hpp"

#if defined(__STDCPP_THREADS__)
#include <condition_variable>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "clock.hpp"
#include "owned.hpp"
#include "thread.hpp"

namespace gradus::inline GRADUS_BUILD {

// A driver implements a task system in place of the system's threads and clock.
class task_driver {
public:
  // A place where tasks wait. It is this driver's implementation of a `task_condition`.
  class meeting {
  public:
    virtual ~meeting() = default;
    // Unlocks, waits for a notification or for `secs` seconds (infinity: there is no deadline), and locks again. It may
    // return early.
    virtual void wait(std::unique_lock<std::mutex>& lock, double secs) = 0;
    virtual void notify_one() = 0;
    virtual void notify_all() = 0;
  };
  class running {
  public:
    virtual ~running() = default;
    virtual void join() = 0;  // is called at most once, before destruction
  };

  virtual ~task_driver() = default;
  virtual double now() const = 0;      // seconds since the epoch
  virtual double elapsed() const = 0;  // monotonic seconds
  virtual void sleep(double secs) = 0;
  virtual std::unique_ptr<meeting> make_meeting() = 0;
  // Raises std::system_error if no thread can be created.
  virtual std::unique_ptr<running> start(std::function<void()> body) = 0;
  // The same, for drivers that list waiting tasks. `caller` names the task's purpose.
  virtual std::unique_ptr<running> start_named(std::string_view caller, std::function<void()> body);
};

// A task that was started. It works as std::jthread without its stop token: the destructor waits for the task's end, so
// make the task end before.
class task_handle {
public:
  task_handle() = default;
  explicit task_handle(detail::joining_thread thread) : thread_(std::move(thread)) {}
  explicit task_handle(std::unique_ptr<task_driver::running> other);
  task_handle(task_handle&&) = default;
  task_handle& operator=(task_handle&& other);
  ~task_handle();

  bool joinable() const { return other_ != nullptr || thread_.joinable(); }
  // Waits for the end of the task.
  void join();

private:
  detail::joining_thread thread_;
  detail::owned<task_driver::running> other_;
};

namespace detail {
// May return early, and does so if `secs` is very long, since the system's clocks would overflow.
void wait_on_the_system(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, double secs);
}  // namespace detail

// A handle to a driver, or to the system's threads; copies are the same driver. It is a clock as well.
class task_system {
public:
  using policy_for = kind::tasks;

  task_system() = default;
  explicit task_system(std::shared_ptr<task_driver> driver) : driver_(std::move(driver)) {}

  double now() const;
  double elapsed() const;
  void sleep(double secs) const;
  // Starts a task that calls `body`. An error message begins with `caller` ("prefetch") and ends with `remedy` ("leave
  // prefetch out"). If no thread can be created, it calls `otherwise` and raises resource_exhausted.
  [[nodiscard]] task_handle start(
      std::string_view caller, std::string_view remedy, std::function<void()> body,
      const std::function<void()>& otherwise = [] {}) const;

  // Returns the driver; null for the system's threads.
  const std::shared_ptr<task_driver>& driver() const { return driver_; }

private:
  std::shared_ptr<task_driver> driver_;
};
static_assert(clock<task_system>);

// A std::condition_variable of a task system. Tasks wait on it with a mutex that they hold, which must be the same for
// all of them. It keeps its driver alive.
class task_condition {
public:
  explicit task_condition(const task_system& of = {});

  // Waits until it is notified; may return early.
  void wait(std::unique_lock<std::mutex>& lock) { wait_for(lock, forever); }
  template <class Done>
  void wait(std::unique_lock<std::mutex>& lock, Done done) {
    while (!done()) wait(lock);
  }
  // Does the same for at most `secs` seconds.
  void wait_for(std::unique_lock<std::mutex>& lock, double secs);
  // Waits until done() is true, for at most `secs` seconds. Returns the last result of done(). If `secs` is below 0 it
  // does not wait.
  template <class Done>
  bool wait_for(std::unique_lock<std::mutex>& lock, double secs, Done done) {
    if (done()) return true;
    const double until = tasks_.elapsed() + secs;
    for (double left = secs; left > 0; left = until - tasks_.elapsed()) {
      wait_for(lock, left);
      if (done()) return true;
    }
    return false;
  }
  void notify_one() {
    if (meeting_ != nullptr)
      meeting_->notify_one();
    else
      here_.notify_one();
  }
  void notify_all() {
    if (meeting_ != nullptr)
      meeting_->notify_all();
    else
      here_.notify_all();
  }

  static constexpr double forever = std::numeric_limits<double>::infinity();

private:
  task_system tasks_;
  std::condition_variable here_;
  detail::owned<task_driver::meeting> meeting_;  // null: the system's threads
};

}  // namespace gradus
#endif

#ifndef GRADUS_COMPILED
#include "tasks.ipp"
#endif
