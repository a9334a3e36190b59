// A monitored session has hooks around its runs and, optionally, is made again when a peer has died. It corresponds to
// tf.train.MonitoredSession, SingularMonitoredSession (1.15).
//
//   gradus::scaffold parts;
//   gradus::chief_session_creator chief(gradus::sessions_of(g, opt), g, parts, {.checkpoint_dir = "runs/digits"});
//   gradus::monitored_session sess(chief, {gradus::stop_at_step_hook({.last_step = 1000})});
//   sess.within([&] {
//     while (!sess.should_stop()) sess.run(train, feeds);
//   });
//
// The life of the hooks:
//
//   creation     hooks that save lock their directory until the session is closed; begin of every hook, while the
//                graph is open; the creator makes the session; a coordinator; the queue runners of the graph;
//                after_create_session of every hook
//   run          before_run of every hook; one run for them and the caller; after_run of every hook
//   end          end of every hook, unless the session ends by an error that is neither out_of_range nor a stop; the
//                coordinator stops and joins; the session closes
//
// `within` is TensorFlow's with block: it returns after an out_of_range or a stop, and passes any other error on; in
// each case the session is closed. Without `within` the destructor closes the session; it cannot see whether an error
// that passes through was an out_of_range that did not come from run.
//
// TensorFlow differs: feeds and fetches of hooks are those of the graph here, not of compiled models, and the error
// about a feed that is given twice names it. The class is not thread-safe.
#pragma once
#include "../base/build.hpp"

#include <concepts>
#include <exception>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "../base/cancellation.hpp"
#include "../session/queue_runner.hpp"
#include "../session/session_creator.hpp"
#include "../store/directory_lock.hpp"
#include "any_hook.hpp"

namespace gradus::inline GRADUS_BUILD {

struct monitored_session_options {
  bool recovers = true;  // a run that raises aborted or unavailable is made again, on a new session
  double stop_grace_period_secs = 120;
  double recovery_wait_secs = 1;            // between two tries to make a session, after the first
  std::shared_ptr<cancellation> stop = {};  // ends this wait
  task_system tasks = {};
  std::shared_ptr<detail::held_directory> holds = nullptr;  // a directory that the caller has locked, for the hooks
};

// This is the argument of the function that run_step_fn calls.
class step_context {
public:
  base_session& session() const { return *session_; }
  // Runs as the monitored session does, with its hooks.
  run_results run_with_hooks(std::span<const fetch> fetches, std::span<const feed> feeds = {}) const;
  run_result run_with_hooks(const fetch& f, std::initializer_list<feed> feeds = {}) const;
  // Leaves the function and the loop around it.
  [[noreturn]] void request_stop() const;

private:
  friend class monitored_session;
  step_context(class monitored_session& m, base_session& s) : monitored_(&m), session_(&s) {}
  monitored_session* monitored_;
  base_session* session_;
};
// step_context::request_stop raises this, as Python's StopIteration; `within` treats it as an end without an error.
struct stop_iteration final : std::exception {
  const char* what() const noexcept override { return "a step requested the end of the loop"; }
};

class monitored_session {
public:
  // The creator must outlive the session. Raises what hooks, the creator and its session raise.
  explicit monitored_session(session_creator& creator, std::vector<any_hook> hooks = {},
                             monitored_session_options o = {});
  monitored_session(const monitored_session&) = delete;
  ~monitored_session() noexcept(false);

  // A stop of the coordinator ends a run that waits in a queue: the run raises out_of_range. Raises failed_precondition
  // after a stop, after close, or if a tensor is fed twice, and what runs and hooks raise. If a thread of the
  // coordinator was aborted, that error is raised in place of the run's.
  run_results run(std::span<const fetch> fetches, std::span<const feed> feeds = {}, const run_options& o = {},
                  run_metadata* meta = nullptr);
  run_results run(std::initializer_list<fetch> fetches, std::initializer_list<feed> feeds = {},
                  const run_options& o = {}, run_metadata* meta = nullptr) {
    return run(std::span(fetches.begin(), fetches.size()), std::span(feeds.begin(), feeds.size()), o, meta);
  }
  run_result run(const fetch& f, std::initializer_list<feed> feeds = {}, const run_options& o = {},
                 run_metadata* meta = nullptr);
  // Calls f(step_context&) and returns its result; if a peer has died, f is called again, on a new session.
  template <class F>
    requires std::invocable<F&, step_context&>
  decltype(auto) run_step_fn(F f) {
    for (;;) {
      ready();
      step_context context(*this, *session_);
      in_step_ = true;
      try {
        if constexpr (std::is_void_v<std::invoke_result_t<F&, step_context&>>) {
          f(context);
          in_step_ = false;
          return;
        } else {
          auto result = f(context);
          in_step_ = false;
          return result;
        }
      } catch (...) {
        in_step_ = false;
        if (!recover_from_current()) throw;
      }
    }
  }

  // Returns true if a hook or the coordinator requested the end, or the session is closed or cannot be made again.
  bool should_stop();
  // Runs the body, then closes the session, whatever ended the body (see the top).
  template <std::invocable Body>
  void within(Body body) {
    bool clean = false;
    try {
      body();
      clean = true;
    } catch (const out_of_range&) {
      clean = true;
    } catch (const stop_iteration&) {
      clean = true;
    } catch (...) {
      close_after_error(false);
      throw;
    }
    close_internal(clean);
  }
  // Raises failed_precondition if the session is closed, and the errors of the hooks' `end` and of the coordinator.
  void close();

  graph& of() const { return *graph_; }
  any_coordinator& coord() { return *coord_; }
  // Returns the session without hooks, or null once it is closed.
  base_session* raw_session() const { return session_.get(); }

private:
  friend class step_context;
  session_creator* creator_;
  std::vector<any_hook> hooks_;
  monitored_session_options o_;
  graph* graph_ = nullptr;
  detail::held_directories locks_;  // also while a session is made again
  detail::hook_calls calls_;
  session_run_args original_, all_;  // arguments of the run: the caller's, and those with the hooks'
  std::vector<std::size_t> ends_;    // of each hook's fetches
  bool closed_ = false, stop_ = false, clean_error_ = false, in_step_ = false, reopens_graph_ = false;
  bool was_stopped_ = false;  // by the caller's run_options::stop, in the last run
  std::unique_ptr<base_session> session_;
  std::unique_ptr<any_coordinator> coord_;
  std::vector<coordinated_thread> threads_;  // the last member: the threads end before what they use
  int entered_ = std::uncaught_exceptions();

  void open();
  void ready();
  void leave_session();
  bool recover_from_current();
  void close_internal(bool tells_hooks);
  void close_after_error(bool tells_hooks) noexcept;
  run_results run_once(std::span<const fetch> fetches, std::span<const feed> feeds, const run_options& o,
                       run_metadata* meta);
};

// This session does not recover: the error of an aborted run is raised as it is.
class singular_monitored_session : public monitored_session {
public:
  explicit singular_monitored_session(session_creator& creator, std::vector<any_hook> hooks = {},
                                      monitored_session_options o = {})
      : monitored_session(creator, std::move(hooks), without_recovery(std::move(o))) {}

private:
  static monitored_session_options without_recovery(monitored_session_options o) {
    o.recovers = false;
    return o;
  }
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "monitored_session.ipp"
#endif
