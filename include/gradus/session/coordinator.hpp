// A coordinator makes threads stop together, and reports one error once. It is TensorFlow's tf.train.Coordinator.
//
//   gradus::coordinator coord;
//   std::jthread reader([&coord, here = coord.register_thread("reader")] {
//     coord.stop_on_exception([&] {
//       while (!coord.should_stop()) read();       // end of input: raise(status::out_of_range, ...), a clean stop
//     });
//   });
//   ...
//   coord.request_stop();
//   coord.join();                                  // waits for the threads; raises the error that came first
//
//   running --request_stop()------> stopping ----join--> joined
//   running --request_stop(error)-> failing  ----join--> joined, and the error is raised
//   any     --clear_stop()--------> running
//
// TensorFlow differs: here a thread is registered by a token that it holds while it runs, so that any kind of thread
// can be used and nothing is polled; errors after the first are kept in `suppressed()`; the names of threads that still
// run and are ignored are returned, not logged.
#pragma once
#include "../base/build.hpp"

#include <concepts>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "../base/cancellation.hpp"
#include "../base/clock_tasks.hpp"
#include "../base/error.hpp"
#include "../base/tasks.hpp"

namespace gradus::inline GRADUS_BUILD {

struct coordinator_options {
  // Errors of these kinds end a run cleanly and are not raised.
  std::vector<status> clean_stop = {status::out_of_range};
};
struct join_options {
  // Seconds that threads have to end once a stop is requested; below 0 they have none.
  double stop_grace_period_secs = 120;
  // True: join returns the names of threads that still run after the grace period. False: join raises an error.
  bool ignore_live_threads = false;
};

namespace detail {
// The state that a coordinator shares with the tokens of its threads, which may outlive it.
struct coordination {
  struct member {
    std::string name;
    bool alive = true;
  };
  explicit coordination(const task_system& of) : changed(of) {}

  std::mutex mutex;
  task_condition changed;
  bool stop = false, joined = false;
  std::shared_ptr<cancellation> stopping = std::make_shared<cancellation>();
  std::exception_ptr error;
  std::vector<std::exception_ptr> suppressed;
  std::vector<std::shared_ptr<member>> members;
};
}  // namespace detail

// A thread holds this token while it runs; its release is the thread's end for the coordinator.
class registration {
public:
  registration() = default;
  registration(std::shared_ptr<detail::coordination> with, std::string name);
  registration(registration&& other) noexcept = default;
  registration& operator=(registration&& other) noexcept;
  ~registration() { release(); }

  void release();

private:
  std::shared_ptr<detail::coordination> shared_;
  std::shared_ptr<detail::coordination::member> member_;
};

// This is a coordinator whose clock is type-erased. Any thread may call any function, but only one at a time calls join
// or clear_stop.
class any_coordinator {
public:
  // `run` makes the waits.
  explicit any_coordinator(coordinator_options options = {}, gradus::task_system run = {});
  any_coordinator(const any_coordinator&) = delete;

  // Requests all threads to stop. The first call decides what join raises: `error`, or nothing if `error` is null or of
  // a kind in clean_stop. After join, an `error` of another kind is raised here, since no later call would raise it.
  void request_stop(std::exception_ptr error = nullptr);
  template <std::derived_from<std::exception> Error>
  void request_stop(const Error& error) {
    request_stop(std::make_exception_ptr(error));
  }

  bool should_stop() const;
  // Waits until a stop is requested.
  void wait_for_stop() const;
  // Waits at most `timeout_secs` and returns whether a stop is requested. Below 0 it does not wait.
  bool wait_for_stop(double timeout_secs);
  // As wait_for_stop, but also ends once done() is true. done() is called under the coordinator's lock, and again after
  // each `notify`.
  template <class Done>
  bool wait_until(Done done, double timeout_secs) {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait_for(lock, timeout_secs, [&] { return state_->stop || done(); });
    return state_->stop;
  }
  void notify();

  // Returns a cancellation that the request to stop cancels, for calls that wait (run_options, blocking_options,
  // wait_options). They then raise out_of_range, as they do where a stop closes their queue, so that a loop ends the
  // same way in both cases. clear_stop replaces a cancelled one by a new one.
  std::shared_ptr<cancellation> stopping() const;

  // Returns the coordinator to the state `running`, so that it can be used again.
  void clear_stop();

  // Returns the token of a thread that join waits for. Make it before the thread starts; the thread holds it (see the
  // top of this file).
  [[nodiscard]] registration register_thread(std::string name) { return {state_, std::move(name)}; }

  // Runs the body; if it raises an error, requests a stop with that error. It raises nothing: a thread that outlives
  // the grace period of join would end the process by its error, so an error after join is kept in suppressed(), or, if
  // it is the first, for raise_requested_exception().
  template <class Body>
  void stop_on_exception(Body&& body) {
    try {
      std::forward<Body>(body)();
    } catch (...) {
      stop_by(std::current_exception(), false);
    }
  }

  // Raises the error that stopped the threads, if there is one. It may be called at any time.
  void raise_requested_exception() const;
  // Returns the errors that came after the first request to stop.
  std::vector<std::exception_ptr> suppressed() const;

  // Waits for the threads that are registered now. Without a request to stop it waits for as long as they run; with one
  // it waits for at most the grace period, from when this call sees the request. Raises the recorded error if there is
  // one. Otherwise, if threads still run after the grace period, raises deadline_exceeded with their names, or returns
  // the names with ignore_live_threads.
  std::vector<std::string> join(const join_options& options = {});
  bool joined() const;

  // Returns the task system of the coordinator's waits, for other code that waits together with its threads.
  const gradus::task_system& tasks() const { return tasks_; }

private:
  coordinator_options options_;
  gradus::task_system tasks_;
  std::shared_ptr<detail::coordination> state_;

  bool is_clean(const std::exception_ptr& error) const;
  void stop_by(std::exception_ptr error, bool raises_after_join);
};

// A coordinator of a clock: the system's clock, `tasks`, or a clock of yours. It takes the time from the clock; its
// waits are those of the system unless the clock is `tasks` or has a `wait` (base/clock_tasks.hpp).
template <clock Clock = system_clock>
class coordinator : public any_coordinator {
public:
  explicit coordinator(coordinator_options options = {}, Clock clock = {})
      : any_coordinator(std::move(options), tasks_of(clock)) {}
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "coordinator.ipp"
#endif
