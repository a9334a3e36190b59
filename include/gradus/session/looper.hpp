// A looper_thread calls a function at a fixed interval until its coordinator stops, as TensorFlow's LooperThread.
//
//   gradus::looper_thread print(coord, 60, [&] { std::printf("loss %g\n", loss.load()); });
//   print.start();
//
// The first call comes at once, and the schedule is fixed: a call that takes longer than the interval is followed by
// others without a pause until the schedule is met again. An error of a call stops all threads of the coordinator,
// which raises it at join.
#pragma once
#include "../base/build.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "../base/tasks.hpp"
#include "coordinated_thread.hpp"
#include "coordinator.hpp"

namespace gradus::inline GRADUS_BUILD {

struct looper_options {
  std::string name = "looper";                 // in the error that names threads which do not stop
  std::function<void()> start_loop = nullptr;  // before the first call
  std::function<void()> stop_loop = nullptr;   // after the last, unless an error ended the loop
};

namespace detail {
class looper {
public:
  looper(any_coordinator& coord, std::optional<double> interval_secs, std::function<void()> run_loop,
         looper_options options, task_system run);
  looper(const looper&) = delete;
  ~looper();

  // Raises failed_precondition if it was started before; resource_exhausted if no thread can be created.
  void start() { thread_->start(); }
  // Returns true if it was started and has not ended.
  bool is_alive() const { return thread_->is_alive(); }
  // Waits at most `timeout_secs` for the thread's end (it does not wait if that is below 0) and returns whether the
  // thread has ended. It does not request a stop. Raises failed_precondition if the thread was not started.
  bool join(double timeout_secs = task_condition::forever) { return thread_->join(timeout_secs); }

private:
  any_coordinator* coord_;
  double interval_ = 0;
  std::function<void()> run_loop_;
  looper_options options_;
  task_system tasks_;
  std::atomic<bool> leave_{false};
  std::optional<coordinated_thread> thread_;  // last, so that it ends before the members that it uses

  void loop();
};
}  // namespace detail

// A looper_thread is registered with the coordinator from construction on, so start it before the join. Its destructor
// ends its own loop, waits for the call that is running, and does not stop the coordinator's other threads.
template <clock Clock = system_clock>
class looper_thread : public detail::looper {
public:
  // With an `interval_secs` of 0 or std::nullopt the calls follow each other without a pause. Time and waits are the
  // coordinator's, unless a clock is given. Raises invalid_argument if the interval is negative or NaN.
  looper_thread(any_coordinator& coord, std::optional<double> interval_secs, std::function<void()> run_loop,
                looper_options options = {})
      : looper(coord, interval_secs, std::move(run_loop), std::move(options), coord.tasks()) {}
  looper_thread(any_coordinator& coord, std::optional<double> interval_secs, std::function<void()> run_loop,
                looper_options options, Clock clock)
      : looper(coord, interval_secs, std::move(run_loop), std::move(options), tasks_of(clock)) {}

  // Makes a looper_thread that calls f(args...), and starts it. Arguments are taken by reference.
  template <class F, class... Args>
  [[nodiscard]] static std::unique_ptr<looper_thread> loop(any_coordinator& coord, std::optional<double> interval_secs,
                                                           F f, Args&... args) {
    auto made =
        std::make_unique<looper_thread>(coord, interval_secs, [f = std::move(f), &args...]() mutable { f(args...); });
    made->start();
    return made;
  }
};
template <clock Clock, class F>
looper_thread(coordinator<Clock>&, std::optional<double>, F, looper_options = {}) -> looper_thread<Clock>;

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "looper.ipp"
#endif
