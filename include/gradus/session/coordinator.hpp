// The coordinator: threads that stop together, and one error that is told once. TensorFlow's tf.train.Coordinator.
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
// Otherwise than TensorFlow: a thread is registered by a token that it holds while it runs, so that any kind of thread
// will do and nothing is polled; errors after the first are kept in `suppressed()`; stragglers that are ignored are
// returned, not logged.
#pragma once
#include <algorithm>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "../base/clock.hpp"
#include "../base/error.hpp"

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

// Waiting is the clock's too: a clock with `wait` decides itself how long a wait takes (a test's takes none). It
// returns when the condition was notified or the seconds are over, and may return early.
template <class C>
concept waiting_clock = clock<C> && requires(C& c, std::condition_variable& changed,
                                             std::unique_lock<std::mutex>& lock) { c.wait(changed, lock, 1.0); };

namespace detail {
template <clock Clock>
void wait_on(Clock& clock, std::condition_variable& changed, std::unique_lock<std::mutex>& lock, double secs) {
  if constexpr (waiting_clock<Clock>)
    clock.wait(changed, lock, secs);
  else  // an hour at a time: longer ones overflow the library's clocks
    changed.wait_for(lock, std::chrono::duration<double>(std::min(secs, 3600.0)));
}

// Shared with the tokens of threads, which may outlive their coordinator.
struct coordination {
  struct member {
    std::string name;
    bool alive = true;
  };
  std::mutex mutex;
  std::condition_variable changed;
  bool stop = false, joined = false;
  std::exception_ptr error;
  std::vector<std::exception_ptr> suppressed;
  std::vector<std::shared_ptr<member>> members;
};
}  // namespace detail

// Held by a thread while it runs; releasing it is the thread's end, as far as the coordinator knows.
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

// Any thread may call any function, but only one at a time calls join or clear_stop.
template <clock Clock = system_clock>
class coordinator {
public:
  explicit coordinator(coordinator_options options = {}, Clock clock = {})
      : options_(std::move(options)), clock_(std::move(clock)) {}
  coordinator(const coordinator&) = delete;

  // Asks all threads to stop. The first call decides what join raises: nothing, or this error unless its kind is a
  // clean stop. After join an error that is no clean stop is raised here, since nobody is left to raise it.
  void request_stop(std::exception_ptr error = nullptr) {
    if (is_clean(error)) error = nullptr;
    {
      const std::lock_guard lock(state_->mutex);
      if (!state_->joined || !error) {
        if (!state_->stop)
          state_->error = error;
        else if (error)
          state_->suppressed.push_back(error);
        state_->stop = true;
        error = nullptr;
      }
    }
    state_->changed.notify_all();
    if (error) std::rethrow_exception(error);
  }
  template <std::derived_from<std::exception> Error>
  void request_stop(const Error& error) {
    request_stop(std::make_exception_ptr(error));
  }

  bool should_stop() const {
    const std::lock_guard lock(state_->mutex);
    return state_->stop;
  }
  // Waits until a stop is requested.
  void wait_for_stop() const {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [&] { return state_->stop; });
  }
  // At most so many seconds; whether one is requested. Below 0 it does not wait.
  bool wait_for_stop(double timeout_secs) {
    return wait_until([] { return false; }, timeout_secs);
  }
  // The same, and until done() is true: it is called under the coordinator's lock, also after `notify`.
  template <class Done>
  bool wait_until(Done done, double timeout_secs) {
    std::unique_lock lock(state_->mutex);
    const double until = clock_.elapsed() + timeout_secs;
    for (double left = timeout_secs; !state_->stop && !done() && left > 0; left = until - clock_.elapsed())
      detail::wait_on(clock_, state_->changed, lock, left);
    return state_->stop;
  }
  void notify() {
    { const std::lock_guard lock(state_->mutex); }  // nobody is between looking and waiting
    state_->changed.notify_all();
  }

  // Back to running: the coordinator may be used again.
  void clear_stop() {
    const std::lock_guard lock(state_->mutex);
    state_->stop = state_->joined = false;
    state_->error = nullptr;
    state_->suppressed.clear();
  }

  // The token of a thread that join waits for, made before the thread starts and held by it (see the top).
  [[nodiscard]] registration register_thread(std::string name) { return {state_, std::move(name)}; }

  // Runs the body; whatever it throws becomes a request to stop.
  template <class Body>
  void stop_on_exception(Body&& body) {
    try {
      std::forward<Body>(body)();
    } catch (...) {
      request_stop(std::current_exception());
    }
  }

  // Raises the error that stopped the threads, if there is one; may be called at any time.
  void raise_requested_exception() const {
    std::unique_lock lock(state_->mutex);
    if (const auto error = state_->error) {
      lock.unlock();
      std::rethrow_exception(error);
    }
  }
  // Errors that came after the first request to stop.
  std::vector<std::exception_ptr> suppressed() const {
    const std::lock_guard lock(state_->mutex);
    return state_->suppressed;
  }

  // Waits for the threads that are registered now. Without a request to stop it waits for as long as they run; with one
  // they have the grace period from when this call sees it. Raises the recorded error; else, if threads outlived the
  // grace period, deadline_exceeded with their names, or returns the names if they are to be ignored.
  std::vector<std::string> join(const join_options& options = {}) {
    std::unique_lock lock(state_->mutex);
    const auto members = state_->members;
    const auto all_ended = [&] {
      return std::none_of(members.begin(), members.end(), [](const auto& m) { return m->alive; });
    };
    state_->changed.wait(lock, [&] { return state_->stop || all_ended(); });
    const double until = clock_.elapsed() + options.stop_grace_period_secs;
    for (double left = options.stop_grace_period_secs; left > 0 && !all_ended(); left = until - clock_.elapsed())
      detail::wait_on(clock_, state_->changed, lock, left);

    std::vector<std::string> live;
    for (const auto& m : members)
      if (m->alive) live.push_back(m->name);
    state_->joined = true;
    state_->members.clear();
    const auto error = state_->error;
    lock.unlock();
    if (error) std::rethrow_exception(error);
    if (!live.empty() && !options.ignore_live_threads) {
      std::string names;
      for (const auto& name : live) names += text(names.empty() ? "\"" : ", \"", name, '"');
      raise(status::deadline_exceeded,
            text("asked to stop, these threads still run after ", options.stop_grace_period_secs, " seconds: ", names,
                 "; let them look at should_stop(), or give a longer stop_grace_period_secs"));
    }
    return live;
  }
  bool joined() const {
    const std::lock_guard lock(state_->mutex);
    return state_->joined;
  }

private:
  coordinator_options options_;
  Clock clock_;
  std::shared_ptr<detail::coordination> state_ = std::make_shared<detail::coordination>();

  bool is_clean(const std::exception_ptr& error) const {
    if (!error) return false;
    try {
      std::rethrow_exception(error);
    } catch (const gradus::error& e) {
      return std::find(options_.clean_stop.begin(), options_.clean_stop.end(), e.kind()) != options_.clean_stop.end();
    } catch (...) {
      return false;
    }
  }
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "coordinator.ipp"
#endif
