// A session_manager makes a session ready: from a checkpoint, by init ops, or by waiting for the task that initializes
// the variables. It is tf.train.SessionManager (1.15).
//
//   gradus::session_manager manager({.local_init_op = local, .ready_op = report_uninitialized_variables(g)});
//   auto sess = manager.prepare_session(open, {.init_op = init, .saver = &saver, .checkpoint_dir = "runs/digits"});
//
// `open` makes a session: gradus::sessions_of(g), or a function of yours. Sessions that wait for another session's
// variables share them by resources (run/session_resources.hpp), or by a server that has such resources:
// in_process{server}.sessions(server.target(), sessions_of(g)).
//
//   prepare_session   restores, or else runs init_op and init_fn; then runs local_init_op;
//                     raises an error if the model is not ready then
//   recover_session   restores, runs local_init_op, and returns whether the model is ready
//   wait_for_session  tries with a new session every recovery_wait_secs until the model is ready
//
// A model is ready if ready_op is a report_uninitialized_variables (run/variable_ops.hpp) that reports
// none, another boolean tensor without a true, or a tensor of another dtype, or if there is no ready_op. A model whose
// ready_op raises failed_precondition because a variable is not initialized is not ready; any other error of the op is
// passed on to the caller.
//
// TensorFlow differs: here a list of uninitialized variables is a boolean tensor and not one of strings; the reason why
// a session is not ready is returned, not logged.
#pragma once
#include "../base/build.hpp"

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

namespace detail {
// The variable of train/hooks/early_stopping_hook.hpp, which is no part of the model: a program without that hook
// restores the checkpoints of one with it.
inline constexpr std::string_view stop_flag_name = "signal_early_stopping/STOP";
}  // namespace detail

// A function that makes sessions: sessions_of(g), or a function of yours that returns a std::unique_ptr<base_session>.
// A function that can also be called with session_resources& can make sessions on a server (cluster/server.hpp).
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
  // Makes a session that uses these resources. Raises invalid_argument for a function that takes no resources.
  std::unique_ptr<base_session> operator()(session_resources& shared) const;

private:
  std::function<std::unique_ptr<base_session>(session_resources* shared)> make_;
};

struct session_manager_options {
  value local_init_op = {};            // initializes each session's own state: local variables, tables
  value ready_op = {};                 // empty: a model is always ready
  value ready_for_local_init_op = {};  // empty: local_init_op runs without a check
  double recovery_wait_secs = 30;      // between two tries
  run_options local_init_run_options = {};
};

// The checkpoint that variables are restored from. At most one of the two paths may be given.
struct checkpoint_source {
  detail::any_saver* saver = nullptr;
  std::string checkpoint_dir = {};                 // restores the newest checkpoint that its state file names
  std::string checkpoint_filename_with_path = {};  // restores this checkpoint
  bool wait_for_checkpoint = false;                // waits for one in checkpoint_dir, at most max_wait_secs
  double max_wait_secs = 7200;
  cancellation* stop = nullptr;                              // ends that wait
  std::function<void(std::string_view line)> log = nullptr;  // gets the warnings of a restore; default: stderr
  bool restore_newest = false;                // as in run_config: if checkpoint_dir has checkpoints, but no state file
  bool restore_fallback = false;              // as in run_config: a damaged checkpoint is passed over
  std::string checkpoint_basename = "model";  // for both, only names `<basename>-<step>` count
};
struct prepare_options {
  value init_op = {};
  std::span<const feed> init_feed_dict = {};             // of init_op
  std::function<void(base_session&)> init_fn = nullptr;  // after init_op
  checkpoint_source from = {};
  bool* restored = nullptr;  // is set to whether there was a checkpoint
};

struct recovered_session {
  std::unique_ptr<base_session> session;
  bool initialized = false;
  std::string why_not = {};  // empty if it is initialized
};

class session_manager {
public:
  // Raises invalid_argument for a ready_for_local_init_op without a local_init_op.
  explicit session_manager(session_manager_options o = {}, task_system t = {});

  // Raises failed_precondition if there is no checkpoint and no init op, or if the model is not ready in the end;
  // and if checkpoint_dir holds checkpoints, but no state file (checkpoint_source::restore_newest); invalid_argument
  // for two paths; cancelled if it is stopped, or its session closed, while it waits for a checkpoint; the errors of
  // the saver and the ops.
  std::unique_ptr<base_session> prepare_session(const session_factory& open, const prepare_options& o) const;
  // Raises the errors of the saver and the ops; a model that is not ready is no error.
  recovered_session recover_session(const session_factory& open, const checkpoint_source& from) const;
  // `stop`, such as a coordinator's stopping(), ends the wait. If the server stops and closes the session, the wait
  // ends too, with the error of the next session. Raises deadline_exceeded once less than recovery_wait_secs of
  // max_wait_secs are left; cancelled if `stop` ends the wait.
  // A session of a cluster's task (base_session::is_of_a_task) is initialized by `first_values` here; then the
  // cluster's values take the place of those that it holds, and no wait polls.
  std::unique_ptr<base_session> wait_for_session(const session_factory& open,
                                                 double max_wait_secs = task_condition::forever,
                                                 cancellation* stop = nullptr,
                                                 const prepare_options& first_values = {}) const;

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
