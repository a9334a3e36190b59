// The turn_driver runs one of several real threads at a time, in virtual time: when the running one waits, a random
// number chooses the next, and when none can go on, time jumps to the next event. So the actions of many tasks are a
// function of one integer.
//
//   const auto driver = std::make_shared<gradus::detail::turn_driver>(seed);
//   const gradus::detail::turn_driver::presence here(*driver, "the test");    // this thread takes turns as well
//   const gradus::task_system tasks(driver);
//   driver->move_to(driver->add_machine({.name = "worker 0"}));               // the task has this machine's clock
//
// A task gives its turn away when it waits, sleeps, joins and ends, and at no other time, so a mutex is never
// contended. The work of tasks in between takes no time. If all tasks wait and no event is to come, or if time is over,
// that is an error which lists the wait of every task. It is raised in the watchman's wait if there is a watchman;
// otherwise, or the second time, in every wait. Joins do not fail; they return when the tasks that are waited for have
// failed.
#pragma once
#include "../base/build.hpp"

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "../base/random.hpp"
#include "../base/tasks.hpp"
#include "protocol/message.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class turn_driver final : public task_driver, public std::enable_shared_from_this<turn_driver> {
public:
  // Tasks run on machines. A machine's monotonic clock shows `ahead` more than the driver's, and runs at `rate`.
  struct machine_state {
    std::string name = {};
    nanos ahead = 0;
    double rate = 1;
    nanos stopped_until = at_once;
  };

  // The time at the beginning, chosen so that clocks which are behind show no negative time.
  static constexpr nanos begins_at = 1000 * 1000 * one_millisecond;

  // `most` is the virtual time that the whole run may take.
  explicit turn_driver(std::uint64_t seed, nanos most = never_due);

  // As long as a presence exists, the thread that made it is a task and takes turns.
  class presence {
  public:
    presence(turn_driver& of, const std::string& caller);
    presence(const presence&) = delete;
    ~presence();

  private:
    turn_driver* of_;
  };

  // ---- task_driver. All functions that wait raise failed_precondition in a thread that is no task, `aborted` if no
  // task can go on, and deadline_exceeded if time is over.
  double now() const override;
  double elapsed() const override;
  void sleep(double secs) override;
  std::unique_ptr<meeting> make_meeting() override;
  std::unique_ptr<running> start(std::function<void()> body) override { return start_named("a task", std::move(body)); }
  std::unique_ptr<running> start_named(std::string_view caller, std::function<void()> body) override;

  // ---- machines. The first is the driver's own, whose clock shows the right time.
  std::size_t add_machine(machine_state m);
  // Moves the running task, and the tasks that it starts from now on, to a machine.
  void move_to(std::size_t machine);
  std::size_t here() const;
  void set_clock(std::size_t machine, nanos ahead, double rate);
  // Stops a machine: none of its tasks gets a turn for `length`; 0 lets it go on. Time goes on, also that of its waits.
  void stop(std::size_t machine, nanos length);

  // Returns the right time since the beginning.
  nanos time() const;
  // Returns the random stream of which the turns are drawn.
  random_stream& dice() { return dice_; }
  // Makes the running task the watchman.
  void watch();
  // Returns a text with the wait of each task, and when it began.
  std::string waits() const;

private:
  struct task {
    std::condition_variable wake{};
    std::string caller{};
    std::size_t machine = 0;
    enum states { ready, blocked, ended } state = ready;
    const char* what = "";     // the thing it waits for, in words
    const void* at = nullptr;  // the meeting, or the task that is joined
    nanos until = never_due, since = 0;
    bool fails = false;  // its wait raises an error
  };
  class place;
  class begun;

  mutable std::mutex mutex_;
  nanos now_ = begins_at, most_;
  random_stream dice_;
  std::deque<machine_state> machines_;
  std::vector<std::unique_ptr<task>> tasks_;
  task* running_ = nullptr;
  task* watchman_ = nullptr;
  std::string problem_;  // the reason why waits fail
  status kind_ = status::aborted;

  static inline thread_local task* of_this_thread_ = nullptr;
  static inline thread_local const turn_driver* driver_of_this_thread_ = nullptr;

  task* add(const std::string& caller);
  void remove(task* one);
  task* me() const { return driver_of_this_thread_ == this ? of_this_thread_ : nullptr; }
  task& waiting_task(const char* what) const;
  nanos due_of(const task& t) const;
  nanos after(double secs) const;
  void block(std::unique_lock<std::mutex>& held, const void* at, nanos until, const char* what);
  void pass(std::unique_lock<std::mutex>& held, task* from);
  task* choose();
  void stuck(status kind, const std::string& why);
  void wake(const void* at, bool all);
  std::string all_waits() const;
};

// Returns virtual time as seconds with all digits.
std::string seconds_text(nanos n);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "turns.ipp"
#endif
