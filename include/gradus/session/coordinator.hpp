// A coordinator makes threads stop together, and reports one error once. TensorFlow's tf.train.Coordinator.
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
// will do and nothing is polled; errors after the first are kept in `suppressed()`; stragglers that are ignored are
// returned, not logged.
#pragma once
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
  // Seconds that threads have to end once a stop is requested; below 0: none.
  double stop_grace_period_secs = 120;
  // Threads that outlive it are an error, or only returned.
  bool ignore_live_threads = false;
};

namespace detail {
// Shared with the tokens of threads, which may outlive their coordinator.
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

// A thread holds this while it runs; the coordinator takes its release for the thread's end.
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
  // Waits are made by `run`.
  explicit any_coordinator(coordinator_options options = {}, gradus::task_system run = {});
  any_coordinator(const any_coordinator&) = delete;

  // Requests all threads to stop. The first call decides the error of join: none, or this error unless its kind is a
  // clean stop. After join an error that is no clean stop is raised here, since no later call would raise it.
  void request_stop(std::exception_ptr error = nullptr);
  template <std::derived_from<std::exception> Error>
  void request_stop(const Error& error) {
    request_stop(std::make_exception_ptr(error));
  }

  bool should_stop() const;
  // Waits until a stop is requested.
  void wait_for_stop() const;
  // Waits at most so many seconds; returns whether a stop is requested. Below 0 it does not wait.
  bool wait_for_stop(double timeout_secs);
  // The same, and until done() is true: it is called under the coordinator's lock, also after `notify`.
  template <class Done>
  bool wait_until(Done done, double timeout_secs) {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait_for(lock, timeout_secs, [&] { return state_->stop || done(); });
    return state_->stop;
  }
  void notify();

  // Cancelled by the request to stop: for calls that wait (run_options, blocking_options, wait_options). They raise
  // out_of_range, as they do where a stop closes their queue: a loop ends the same way. After clear_stop another one.
  std::shared_ptr<cancellation> stopping() const;

  // Returns to running: the coordinator may be used again.
  void clear_stop();

  // The token of a thread that join waits for, made before the thread starts and held by it (see the top).
  [[nodiscard]] registration register_thread(std::string name) { return {state_, std::move(name)}; }

  // Runs the body; its error becomes a request to stop.
  template <class Body>
  void stop_on_exception(Body&& body) {
    try {
      std::forward<Body>(body)();
    } catch (...) {
      request_stop(std::current_exception());
    }
  }

  // Raises the error that stopped the threads, if there is one; may be called at any time.
  void raise_requested_exception() const;
  // Returns the errors that came after the first request to stop.
  std::vector<std::exception_ptr> suppressed() const;

  // Waits for the threads that are registered now. Without a request to stop it waits for as long as they run; with one
  // they have the grace period from when this call sees it. Raises the recorded error; else, if threads outlived the
  // grace period, deadline_exceeded with their names, or returns the names if they are to be ignored.
  std::vector<std::string> join(const join_options& options = {});
  bool joined() const;

  // Code that waits with its threads uses these.
  const gradus::task_system& tasks() const { return tasks_; }

private:
  coordinator_options options_;
  gradus::task_system tasks_;
  std::shared_ptr<detail::coordination> state_;

  bool is_clean(const std::exception_ptr& error) const;
};

// Of a clock: the system's, `tasks`, or one of yours. Time is the clock's; waits are the system's unless the clock is
// tasks, or has a `wait` (base/clock_tasks.hpp).
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
