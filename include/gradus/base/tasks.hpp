// A `task_system` is the one door to waiting: all code that starts a thread, blocks, sleeps or reads the time does it
// through one.
//
//   gradus::task_system run;                                     // the system's threads and clock
//   gradus::task_condition changed(run);
//   gradus::task_handle reader = run.start("the reader", "read on one thread", [&] { ... });
//   changed.wait(lock, [&] { return !queue.empty(); });    // as std::condition_variable
//   if (!changed.wait_for(lock, 5, done)) ...              // five seconds by the clock of `run`
//
// A program passes another task system to its objects when time shall be turned by hand (testing/hand_tasks.hpp) or
// when many tasks shall run in a reproducible order. The calls behind the door are made where a thread blocks or
// starts, never in a step, so they are virtual; with the system's threads, the default, they are direct.
//
// Mutexes stay std::mutex: nothing blocks while it holds one, except on a condition, which lets go of it.
#pragma once
#if defined(__STDCPP_THREADS__)
#include <condition_variable>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "clock.hpp"
#include "thread.hpp"

namespace gradus::inline GRADUS_BUILD {

// A driver stands behind the door in the place of the system.
class task_driver {
public:
  // A place where tasks wait: what a `task_condition` is for this driver.
  class meeting {
  public:
    virtual ~meeting() = default;
    // Unlocks, waits for a notification or for so many seconds (infinity: there is no deadline), and locks again. It
    // may return early.
    virtual void wait(std::unique_lock<std::mutex>& lock, double secs) = 0;
    virtual void notify_one() = 0;
    virtual void notify_all() = 0;
  };
  class running {
  public:
    virtual ~running() = default;
    virtual void join() = 0;  // is called once at most, before destruction
  };

  virtual ~task_driver() = default;
  virtual double now() const = 0;      // seconds since the epoch
  virtual double elapsed() const = 0;  // monotonic seconds
  virtual void sleep(double secs) = 0;
  virtual std::unique_ptr<meeting> make_meeting() = 0;
  // Error: std::system_error if no thread can be created.
  virtual std::unique_ptr<running> start(std::function<void()> body) = 0;
  // The same, for drivers that list waiting tasks: `who` names the task's purpose.
  virtual std::unique_ptr<running> start_named(std::string_view /*who*/, std::function<void()> body) {
    return start(std::move(body));
  }
};

// A task that was started, as std::jthread without its stop token: destroying it waits for its end, so end it before.
class task_handle {
public:
  task_handle() = default;
  explicit task_handle(detail::joining_thread thread) : thread_(std::move(thread)) {}
  explicit task_handle(std::unique_ptr<task_driver::running> other) : other_(std::move(other)) {}
  task_handle(task_handle&&) = default;
  task_handle& operator=(task_handle&& other);
  ~task_handle();

  bool joinable() const { return other_ != nullptr || thread_.joinable(); }
  // Waits for its end.
  void join();

private:
  detail::joining_thread thread_;
  std::unique_ptr<task_driver::running> other_;
};

namespace detail {
// May return early, the more so where the system's clocks would overflow.
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
  // Starts a task that calls `body`. `who` begins the sentence of an error ("prefetch"), `remedy` ends it ("leave
  // prefetch out"). Error: resource_exhausted if no thread can be created; `otherwise` is called before.
  [[nodiscard]] task_handle start(
      std::string_view who, std::string_view remedy, std::function<void()> body,
      const std::function<void()>& otherwise = [] {}) const;

  // Null: the system's threads.
  const std::shared_ptr<task_driver>& driver() const { return driver_; }

private:
  std::shared_ptr<task_driver> driver_;
};
static_assert(clock<task_system>);

// Tasks wait on this, under a mutex that the caller holds: it is std::condition_variable behind the door. It keeps its
// driver alive. Its tasks all wait with the same mutex.
class task_condition {
public:
  explicit task_condition(const task_system& of = {});

  // Waits until it is notified; may return early.
  void wait(std::unique_lock<std::mutex>& lock) { wait_for(lock, forever); }
  template <class Done>
  void wait(std::unique_lock<std::mutex>& lock, Done done) {
    while (!done()) wait(lock);
  }
  // The same for at most so many seconds.
  void wait_for(std::unique_lock<std::mutex>& lock, double secs);
  // Waits until done() is true, at most so many seconds; returns what done() last was. Below 0 it does not wait.
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
  std::unique_ptr<task_driver::meeting> meeting_;  // null: the system's threads
};

}  // namespace gradus
#endif

#ifndef GRADUS_COMPILED
#include "tasks.ipp"
#endif
