// This header has real threads whose time a test advances by hand, so that a test of code that waits has no sleeps and
// always runs the same way.
//
//   testing::hand_tasks hand;
//   coordinator coord({}, hand.tasks());
//   task_handle waiter = hand.tasks().start("a test", "do without", [&] { stopped = coord.wait_for_stop(5); });
//   hand.advance(4.9);      // the waiter has begun to wait, and still waits
//   hand.advance(0.1);      // it has returned, and its task has ended
//
// Time does not pass while tasks run: their work takes no time, and a task whose work shall take time calls sleep.
#pragma once
#include "../base/build.hpp"

#if defined(__STDCPP_THREADS__)
#include <algorithm>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "../base/error.hpp"
#include "../base/tasks.hpp"

namespace gradus::inline GRADUS_BUILD::testing {

namespace detail {
// A thread that locks this mutex may hold a mutex of the code under test; no thread locks one of those while it holds
// this mutex.
struct hand_time {
  struct blocked_thread {
    std::condition_variable wake{};
    const void* at;  // what it waits for: a meeting or another task's end; null if it sleeps
    double until;    // by `elapsed`
    bool is_task;    // false for a thread of the test
    bool woken = false;
  };
  using blocked_threads = std::vector<blocked_thread*>;

  std::mutex mutex;
  std::condition_variable rested;
  double now, elapsed = 0;
  int running = 0;          // tasks that are neither blocked nor ended; a woken task counts at once
  blocked_threads blocked;  // in the order in which they came

  static inline thread_local const hand_time* of_this_task = nullptr;

  explicit hand_time(double at) : now(at) {}

  void block(std::unique_lock<std::mutex>& held, const void* at, double secs) {
    blocked_thread me{.at = at, .until = elapsed + secs, .is_task = of_this_task == this};
    blocked.push_back(&me);
    if (me.is_task) stop_running();
    me.wake.wait(held, [&] { return me.woken; });
  }
  void wake(blocked_threads::iterator which) {
    blocked_thread& one = **which;
    blocked.erase(which);
    one.woken = true;
    if (one.is_task) ++running;
    one.wake.notify_one();  // under the mutex, since the woken thread destroys `one`
  }
  void wake(const void* at, std::size_t most) {
    for (; most > 0; --most) {
      const auto first = std::find_if(blocked.begin(), blocked.end(), [&](const auto* b) { return b->at == at; });
      if (first == blocked.end()) return;
      wake(first);
    }
  }
  void stop_running() {
    if (--running == 0) rested.notify_all();
  }
  void rest(std::unique_lock<std::mutex>& held) {
    rested.wait(held, [&] { return running == 0; });
  }
  void turn(double to) { now += to - elapsed, elapsed = to; }
};

class hand_driver final : public task_driver {
public:
  explicit hand_driver(std::shared_ptr<hand_time> time) : time_(std::move(time)) {}

  double now() const override {
    const std::lock_guard held(time_->mutex);
    return time_->now;
  }
  double elapsed() const override {
    const std::lock_guard held(time_->mutex);
    return time_->elapsed;
  }
  void sleep(double secs) override {
    std::unique_lock held(time_->mutex);
    time_->block(held, nullptr, secs);
  }
  std::unique_ptr<meeting> make_meeting() override { return std::make_unique<place>(time_); }
  std::unique_ptr<running> start(std::function<void()> body) override {
    return std::make_unique<begun>(time_, std::move(body));
  }

private:
  class place final : public meeting {
  public:
    explicit place(std::shared_ptr<hand_time> time) : time_(std::move(time)) {}
    void wait(std::unique_lock<std::mutex>& lock, double secs) override {
      if (!(secs > 0)) return;
      {
        std::unique_lock held(time_->mutex);  // locked before `lock` is released, so no notification is lost
        lock.unlock();
        time_->block(held, this, secs);
      }
      lock.lock();
    }
    void notify_one() override { wake(1); }
    void notify_all() override { wake(std::size_t(-1)); }

  private:
    void wake(std::size_t most) {
      const auto time = time_;  // the woken thread may destroy this place
      const std::lock_guard held(time->mutex);
      time->wake(this, most);
    }
    std::shared_ptr<hand_time> time_;
  };

  class begun final : public running {
  public:
    begun(std::shared_ptr<hand_time> time, std::function<void()> body)
        : time_(std::move(time)), body_(std::move(body)) {
      counted count(*time_);
      thread_ = gradus::detail::joining_thread([this] { work(); });
      count.goes_on = true;
    }
    void join() override {
      {
        std::unique_lock held(time_->mutex);
        if (!ended_) time_->block(held, this, task_condition::forever);
      }
      thread_.join();
    }

  private:
    struct counted {  // counts the task as running before its thread begins, unless there is no thread
      explicit counted(hand_time& t) : time(t) {
        const std::lock_guard held(time.mutex);
        ++time.running;
      }
      ~counted() {
        if (goes_on) return;
        const std::lock_guard held(time.mutex);
        time.stop_running();
      }
      hand_time& time;
      bool goes_on = false;
    };
    void work() {
      hand_time::of_this_task = time_.get();
      body_();
      body_ = nullptr;  // what it holds is destroyed while the task still runs
      const std::lock_guard held(time_->mutex);
      ended_ = true;
      time_->wake(this, 1);
      time_->stop_running();
    }

    std::shared_ptr<hand_time> time_;
    std::function<void()> body_;
    bool ended_ = false;
    gradus::detail::joining_thread thread_;
  };

  std::shared_ptr<hand_time> time_;
};
}  // namespace detail

// Copies share the same tasks and the same time, which changes only by `advance` and `set`.
class hand_tasks {
public:
  hand_tasks() : hand_tasks(1.5e9) {}
  explicit hand_tasks(double now)
      : time_(std::make_shared<detail::hand_time>(now)), tasks_(std::make_shared<detail::hand_driver>(time_)) {}

  // Returns the task system to pass to the code under test.
  const gradus::task_system& tasks() const { return tasks_; }
  double now() const { return tasks_.now(); }
  double elapsed() const { return tasks_.elapsed(); }

  // Returns when every task is blocked in a wait, a sleep or a join of another, or has ended. A task that was notified
  // counts as running from that moment. It never returns if a task runs without end, or waits for something without
  // this task system. Only a thread of the test may call it, and it must not hold the mutex of a condition; the same
  // holds for `advance`. Raises failed_precondition if a task calls it.
  void settle() const {
    std::unique_lock held(time_->mutex);
    check("settle");
    time_->rest(held);
  }
  // Lets `secs` seconds pass: settles, advances the time to the next deadline, wakes the thread that waits for it (of
  // those with equal deadlines, the one that came first), settles, and so on. Tasks read the time that they
  // had set for their wake. Raises the errors of `settle`, and invalid_argument if secs is negative or not a number.
  void advance(double secs) const {
    if (!(secs >= 0)) raise(status::invalid_argument, text("time goes forward by at least 0 seconds, got ", secs));
    std::unique_lock held(time_->mutex);
    check("advance");
    time_->rest(held);
    const double until = time_->elapsed + secs;
    for (;;) {
      const auto next = std::min_element(time_->blocked.begin(), time_->blocked.end(),
                                         [](const auto* a, const auto* b) { return a->until < b->until; });
      if (next == time_->blocked.end() || (*next)->until > until) break;
      time_->turn(std::max((*next)->until, time_->elapsed));
      time_->wake(next);
      time_->rest(held);
    }
    time_->turn(until);
  }
  // Sets the wall clock; monotonic time, and with it every deadline, does not change.
  void set(double now) const {
    const std::lock_guard held(time_->mutex);
    time_->now = now;
  }

private:
  void check(const char* what) const {
    if (detail::hand_time::of_this_task == time_.get())
      raise(status::failed_precondition, text("a task cannot ", what, " its own tasks; let it sleep instead"));
  }

  std::shared_ptr<detail::hand_time> time_;
  gradus::task_system tasks_;
};
static_assert(clock<hand_tasks>);

}  // namespace gradus::testing
#endif
