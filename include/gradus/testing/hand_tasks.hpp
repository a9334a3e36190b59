// These are real threads whose time is turned by hand, so that a test of code that waits has no sleeps and always runs
// the same.
//
//   testing::hand_tasks hand;
//   coordinator coord({}, hand.tasks());
//   task_handle waiter = hand.tasks().start("a test", "do without", [&] { stopped = coord.wait_for_stop(5); });
//   hand.advance(4.9);      // the waiter has begun to wait, and it waits still
//   hand.advance(0.1);      // it has returned, and its task has ended
//
// Time stands still while tasks run: what they do takes none, and who means that it takes some sleeps.
#pragma once
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
// Who takes this mutex may hold a mutex of the code that is tested; nobody takes one of those under it.
struct hand_time {
  struct blocked_thread {
    std::condition_variable wake{};
    const void* at;  // what it waits for: a meeting, another task's end; null if it sleeps
    double until;    // by `elapsed`
    bool is_task;    // and not a thread of the test
    bool woken = false;
  };
  using blocked_threads = std::vector<blocked_thread*>;

  std::mutex mutex;
  std::condition_variable rested;
  double now, elapsed = 0;
  int running = 0;          // tasks that are neither blocked nor ended; who was woken runs from that moment on
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
    one.wake.notify_one();  // under the mutex: woken, it is gone
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
        std::unique_lock held(time_->mutex);  // before the other is let go: nobody notifies in between
        lock.unlock();
        time_->block(held, this, secs);
      }
      lock.lock();
    }
    void notify_one() override { wake(1); }
    void notify_all() override { wake(std::size_t(-1)); }

  private:
    void wake(std::size_t most) {
      const auto time = time_;  // who is woken may destroy this place
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
    struct counted {  // a task runs from before its thread begins, unless none is to be had
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
      body_ = nullptr;  // what it holds goes while the task still runs
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

// Copies are the same tasks with the same time. It stands still by itself.
class hand_tasks {
public:
  hand_tasks() : hand_tasks(1.5e9) {}
  explicit hand_tasks(double now)
      : time_(std::make_shared<detail::hand_time>(now)), tasks_(std::make_shared<detail::hand_driver>(time_)) {}

  // Returns what code under test is given.
  const gradus::task_system& tasks() const { return tasks_; }
  double now() const { return tasks_.now(); }
  double elapsed() const { return tasks_.elapsed(); }

  // Returns when every task is blocked in a wait, a sleep or a join of another, or has ended. A task that was notified
  // counts as running from that moment. It never returns if a task runs without end, or waits for something that is not
  // behind the door. Only a thread of the test may call it, without the mutex of a condition; so it is with `advance`.
  // Error: failed_precondition if a task calls it.
  void settle() const {
    std::unique_lock held(time_->mutex);
    check("settle");
    time_->rest(held);
  }
  // Seconds pass: settles, turns time to the deadline that is next and wakes who waits for it (of equal ones, who came
  // first), settles, and so on. Tasks see the time at which they wanted to wake. Errors: as `settle`; invalid_argument
  // if secs is negative or no number.
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
  // Someone sets the wall clock; monotonic time, and with it every deadline, goes on as it was.
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
