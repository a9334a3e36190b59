// A session_manager makes a session ready: from a checkpoint, by init ops, or by waiting for the task that does it.
// tf.train.SessionManager (1.15).
//
//   gradus::session_manager manager({.local_init_op = local, .ready_op = report_uninitialized_variables(g)});
//   auto sess = manager.prepare_session(open, {.init_op = init, .saver = &saver, .checkpoint_dir = "runs/digits"});
//
// `open` makes a session: gradus::sessions_of(g), or a function of yours. Sessions that wait for another one's
// variables share them by resources (run/session_resources.hpp), or by a server that has such resources:
// in_process{server}.sessions(server.target(), sessions_of(g)).
//
//   prepare_session   restores, or else runs init_op and init_fn; then local_init_op; it is an error if the model is
//   not
//                     ready then
//   recover_session   restores, runs local_init_op, and returns whether the model is ready
//   wait_for_session  tries with a new session every recovery_wait_secs until the model is ready
//
// A model is ready when ready_op says so: a report_uninitialized_variables (run/variable_ops.hpp) that reports none;
// any other boolean tensor without a true; any other tensor; and no op at all. An op that raises failed_precondition
// because a variable is not initialized is not ready either; any other error passes.
//
// TensorFlow differs: here a list of uninitialized variables is a boolean tensor and not one of strings; the reason why
// a session is not ready is returned, not logged.
#pragma once
#include <concepts>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "../checkpoint/saver.hpp"
#include "../run/variable_ops.hpp"

namespace gradus::inline GRADUS_BUILD {

// Makes sessions: sessions_of(g), or a function of yours that gives a std::unique_ptr<base_session>. One that takes
// session_resources& as well can make them on a server (cluster/server.hpp).
class session_factory {
public:
  template <class F>
    requires(!std::same_as<F, session_factory> && std::is_invocable_r_v<std::unique_ptr<base_session>, F&>)
  session_factory(F make)
      : make_([make = std::move(make)](session_resources* shared) mutable -> std::unique_ptr<base_session> {
          if (shared == nullptr) return make();
          if constexpr (std::is_invocable_r_v<std::unique_ptr<base_session>, F&, session_resources&>)
            return make(*shared);
          else
            return nullptr;
        }) {}
  std::unique_ptr<base_session> operator()() const { return make_(nullptr); }
  // Error: invalid_argument for a function that takes no resources.
  std::unique_ptr<base_session> operator()(session_resources& shared) const;

private:
  std::function<std::unique_ptr<base_session>(session_resources* shared)> make_;
};

struct session_manager_options {
  value local_init_op = {};            // of each session's own state: local variables, tables
  value ready_op = {};                 // empty: a model is always ready
  value ready_for_local_init_op = {};  // empty: local_init_op runs unguarded
  double recovery_wait_secs = 30;      // between two tries
  run_options local_init_run_options = {};
};

// The source of the variables: at most one of the two paths.
struct checkpoint_source {
  detail::any_saver* saver = nullptr;
  std::string checkpoint_dir = {};                 // the newest that its state file names
  std::string checkpoint_filename_with_path = {};  // this one
  bool wait_for_checkpoint = false;                // in checkpoint_dir, at most max_wait_secs
  double max_wait_secs = 7200;
  cancellation* stop = nullptr;  // ends that wait
};
struct prepare_options {
  value init_op = {};
  std::span<const feed> init_feed_dict = {};             // of init_op
  std::function<void(base_session&)> init_fn = nullptr;  // after init_op
  checkpoint_source from = {};
};

struct recovered_session {
  std::unique_ptr<base_session> session;
  bool initialized = false;
  std::string why_not = {};  // empty if it is initialized
};

class session_manager {
public:
  // Error: invalid_argument for a ready_for_local_init_op without a local_init_op.
  explicit session_manager(session_manager_options o = {}, task_system t = {});

  // Errors: failed_precondition if there is no checkpoint and no init op, or if the model is not ready in the end;
  // invalid_argument for two paths; cancelled if it is stopped, or its session closed, while it waits for a checkpoint;
  // those of the saver and the ops.
  std::unique_ptr<base_session> prepare_session(const session_factory& open, const prepare_options& o) const;
  // Raises the errors of the saver and the ops; a model that is not ready is no error.
  recovered_session recover_session(const session_factory& open, const checkpoint_source& from) const;
  // `stop` ends it, such as a coordinator's stopping(). A stop of the server that closes its session ends it too, by
  // the error of the next. Errors: deadline_exceeded once less than recovery_wait_secs of max_wait_secs are left;
  // cancelled if it is stopped.
  std::unique_ptr<base_session> wait_for_session(const session_factory& open,
                                                 double max_wait_secs = task_condition::forever,
                                                 cancellation* stop = nullptr) const;

  const session_manager_options& options() const { return o_; }

private:
  session_manager_options o_;
  task_system tasks_;

  struct answer {
    bool yes = true;
    std::string why_not = {};
  };
  answer is_ready(base_session& s, value op) const;
  answer try_local_init(base_session& s) const;
  bool restore(base_session& s, const checkpoint_source& from) const;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "session_manager.ipp"
#endif
