// This supervisor runs a session of your own graph: it restores or initializes, saves, writes summaries, starts queue
// runners, and stops cleanly. It corresponds to tf.train.Supervisor (1.15), for the chief and for workers;
// train/supervisor.hpp has the one for a model that the compiler or a function builds.
//
//   gradus::session_supervisor sv(g, gradus::sessions_of(g, opt), {.logdir = "/tmp/mydir"});
//   {
//     auto sess = sv.managed_session();                           // restored or initialized; services have begun
//     while (!sv.should_stop()) sess.run(train_op, feeds);
//   }                                                             // threads joined, session closed
//
// When the block ends, it raises the first error of a thread. With `within`, as with TensorFlow's `with`, an error of
// the body ends the block the same way, and an out_of_range ends it without an error:
//
//   sess.within([&] { while (!sv.should_stop()) sess.run(train_op); });
//
// Unless `services` is `threads`, services (summaries, steps per second, checkpoints) run inside the step: `run` of a
// managed session calls them after the first run that finds one due, and once when the session begins (a restored step
// has the summaries of the run that made it). The saved state is then one between two runs, and a program with one
// thread writes the same files whatever the machine does meanwhile. TensorFlow's threads also save and summarize while
// no step is made. The services that start_standard_services starts, with a session of prepare_or_wait_for_session, are
// always threads. Every save waits for the runs in progress.
//
// TensorFlow differs: here a managed session that ends without an error is saved (save_on_stop; TensorFlow loses the
// steps since the last checkpoint); START behind a restored step s names s + 1, since the events of s are true; a
// checkpoint without a global step is of step 0, and its name has the codec's
// suffix; threads cannot be abandoned: the error names a thread that outlives the grace period, and closing the session
// waits for it.
#pragma once
#include "../base/build.hpp"

#include <atomic>
#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../session/global_step.hpp"
#include "../session/looper.hpp"
#include "../session/queue_runner.hpp"
#include "../session/scaffold.hpp"
#include "../session/session_manager.hpp"
#include "../store/directory_lock.hpp"
#include "graph_summary.hpp"
#include "supervisor_options.hpp"

namespace gradus::inline GRADUS_BUILD {

// Each `service` may be left out, as TensorFlow's USE_DEFAULT, or be `none` or a value.
struct session_supervisor_options {
  service<value> ready_op = {};                 // default: the collection's, or reports variables without a value
  service<value> ready_for_local_init_op = {};  // default: the collection's, or none
  bool is_chief = true;
  service<value> init_op = {};  // default: the collection's, or one that initializes all except local variables
  std::vector<feed> init_feed_dict = {};   // of init_op
  service<value> local_init_op = {};       // default: the collection's, or local variables and tables
  std::string logdir = {};                 // checkpoints, events, graph.pbtxt; empty: nothing is left behind
  service<graph_summary> summary_op = {};  // default: all that the graph shows
  service<std::shared_ptr<detail::any_saver>> saver = {};            // default: one, if the graph has variables
  service<value> global_step = {};                                   // default: the collection's, or "global_step"
  double save_summaries_secs = 120;                                  // 0: no summaries and no steps per second
  double save_model_secs = 600;                                      // 0: no checkpoints
  double recovery_wait_secs = 30;                                    // of a worker that waits for the chief
  double stop_grace_secs = 120;                                      // for threads, once a stop is requested
  std::string checkpoint_basename = "model";                         // TensorFlow: model.ckpt
  std::shared_ptr<const gradus::session_manager> manager = nullptr;  // default: one with the ops above
  service<std::shared_ptr<detail::any_summary_writer>> summary_writer = {};  // default: of the chief, in logdir
  std::function<void(base_session&)> init_fn = nullptr;                      // after init_op
  run_options local_init_run_options = {};
  service_place services = service_place::in_step;
  bool save_on_stop = true;  // saves when a managed session ends without an error
  std::function<std::unique_ptr<base_session>(std::string_view master, const session_factory&)> connect =
      nullptr;  // default: in_process (session/master.hpp)
  task_system tasks = {};
  bool restore_newest = false;    // as in run_config: if logdir holds checkpoints, but no state file
  bool restore_fallback = false;  // as in run_config: a damaged checkpoint is passed over
};

struct prepare_session_options {
  bool wait_for_checkpoint = false;
  double max_wait_secs = 7200;
  bool start_standard_services = true;  // false: neither services nor queue runners start
};
struct stop_options {
  bool close_summary_writer = true;  // writes the end of the session and closes the event file
  bool ignore_live_threads = false;  // true: threads that outlive the grace period are no error
};
struct managed_session_options {
  bool start_standard_services = true;  // false: neither services nor queue runners start
  bool close_summary_writer = true;     // at the end of the session
};

class session_supervisor;

// This is the block of a managed session; session_supervisor::managed_session makes it in place.
class managed_graph_session {
public:
  managed_graph_session(session_supervisor& sv, std::string_view master, const managed_session_options& o);
  managed_graph_session(const managed_graph_session&) = delete;
  // Stops the supervisor, raises the error that stopped it, and closes the session. If another error is already being
  // raised, that one is passed on.
  ~managed_graph_session() noexcept(false);

  // Makes a run, and after it calls the services that are due. A stop ends a run that waits in a queue, which raises
  // out_of_range. Any thread may call it. Raises the errors of base_session::run and of the services.
  run_results run(std::span<const fetch> fetches, std::span<const feed> feeds = {}, const run_options& o = {},
                  run_metadata* meta = nullptr);
  run_results run(std::initializer_list<fetch> fetches, std::initializer_list<feed> feeds = {},
                  const run_options& o = {}, run_metadata* meta = nullptr) {
    return run(std::span(fetches.begin(), fetches.size()), std::span(feeds.begin(), feeds.size()), o, meta);
  }
  run_result run(const fetch& f, std::initializer_list<feed> feeds = {}, const run_options& o = {},
                 run_metadata* meta = nullptr) {
    return run_result(run(std::span(&f, 1), std::span(feeds.begin(), feeds.size()), o, meta));
  }
  // Runs the body, then ends the block: the body's error stops the supervisor and is raised, unless an error of a
  // thread came first; an out_of_range stops it and is not raised. TensorFlow differs: there an error of the body is
  // lost if a stop without an error came before it.
  template <std::invocable Body>
  void within(Body body) {
    std::exception_ptr own;
    try {
      body();
    } catch (const out_of_range&) {  // the end of the input
      ended_by(std::current_exception(), false);
    } catch (...) {
      own = std::current_exception();
      ended_by(own, true);
    }
    finish();
    if (own) std::rethrow_exception(own);
  }
  // Returns the session whose runs call no services.
  base_session& raw_session() const { return *session_; }

private:
  session_supervisor* sv_;
  managed_session_options o_;
  std::shared_ptr<base_session> session_;
  bool in_step_ = false, ended_ = false, failed_ = false;
  int entered_ = std::uncaught_exceptions();

  void ended_by(std::exception_ptr e, bool is_failure);
  void finish();
};

class session_supervisor {
public:
  // Makes the ops that are missing, puts them into the graph's collections, and finalizes the graph. Raises
  // invalid_argument for times that are not numbers, for a variable without a device in a task that is not the chief
  // ("must have their device set"), and for a ready_for_local_init_op without a local_init_op.
  session_supervisor(graph& g, session_factory open, session_supervisor_options o = {});
  session_supervisor(const session_supervisor&) = delete;
  ~session_supervisor();

  // The chief restores the newest checkpoint of logdir, or initializes, writes graph.pbtxt and the graph's events, and
  // starts the standard services; another task waits until the chief has done so. Then all queue runners start; if
  // start_standard_services is false, neither services nor queue runners do. The threads keep the session alive. A stop
  // that is requested meanwhile ends its waits. A chief that will save first locks logdir, as a trainer does, until the
  // session is stopped. Raises the errors of a directory_lock, and of prepare_session and wait_for_session of a
  // session_manager.
  std::shared_ptr<base_session> prepare_or_wait_for_session(std::string_view master = {},
                                                            const prepare_session_options& o = {});
  // Starts threads that summarize, report steps per second, and save, and returns their number. It starts none without
  // a logdir. Raises failed_precondition for a task that is not the chief, and the errors of a directory_lock.
  std::size_t start_standard_services(const std::shared_ptr<base_session>& sess);
  // Starts the threads of these runners, or of all runners of the graph, and returns their number.
  std::size_t start_queue_runners(const std::shared_ptr<base_session>& sess);
  std::size_t start_queue_runners(const std::shared_ptr<base_session>& sess, std::span<const queue_runner> runners);
  managed_graph_session managed_session(std::string_view master = {}, const managed_session_options& o = {}) {
    return managed_graph_session(*this, master, o);
  }

  // Calls f(args...) every `interval_secs` seconds (without a pause if that is 0 or nothing) on a thread, which `stop`
  // joins. Arguments are taken by reference.
  template <class F, class... Args>
  detail::looper& loop(std::optional<double> interval_secs, F f, Args&... args) {
    return start_loop(
        loopers_, interval_secs, [f = std::move(f), &args...]() mutable { f(args...); }, "loop");
  }

  // Requests threads to stop and waits for them; then writes STOP and closes the writer, also if an error is raised. It
  // does not close the session. Raises the first error of a thread, or deadline_exceeded with the names of the threads
  // that outlive the grace period.
  // Inside the block of a managed session it makes the session's last checkpoint too (save_on_stop). Raises
  // failed_precondition inside a run of the managed session, for whose end it would wait: call request_stop there, as
  // any thread may. Only one thread at a time calls this or ends a block.
  void stop(const stop_options& o = {}) {
    const std::shared_ptr<base_session> ends = std::uncaught_exceptions() == 0 ? managed_.lock() : nullptr;
    stop(o, ends.get());
  }
  void request_stop(std::exception_ptr error = nullptr) { coord_.request_stop(std::move(error)); }
  template <std::derived_from<std::exception> Error>
  void request_stop(const Error& error) {
    coord_.request_stop(error);
  }
  bool should_stop() const { return coord_.should_stop(); }
  template <class Body>
  void stop_on_exception(Body&& body) {
    coord_.stop_on_exception(std::forward<Body>(body));
  }
  void wait_for_stop() const { coord_.wait_for_stop(); }

  // Writes a run's summary into the events, at `step` or else the session's global step, which is 0 if there is none.
  // Raises failed_precondition without a writer ("requires a summary writer").
  void summary_computed(base_session& sess, const summary_values& summary, std::optional<std::int64_t> step = {});
  void summary_computed(managed_graph_session& sess, const summary_values& summary,
                        std::optional<std::int64_t> step = {}) {
    summary_computed(sess.raw_session(), summary, step);
  }

  // These are the resolved options; an option that is not set is empty. A task that is not the chief has no save_path,
  // no writer, and 0 for both intervals.
  any_coordinator& coord() { return coord_; }
  const std::shared_ptr<detail::any_saver>& saver() const { return saver_; }
  std::string save_path() const;
  const gradus::session_manager& session_manager() const { return *manager_; }
  value global_step() const { return global_step_; }
  value init_op() const { return init_op_; }
  const std::vector<feed>& init_feed_dict() const { return o_.init_feed_dict; }
  value ready_op() const { return ready_op_; }
  value ready_for_local_init_op() const { return ready_for_local_init_op_; }
  const graph_summary& summary_op() const { return summary_op_; }
  const std::shared_ptr<detail::any_summary_writer>& summary_writer() const { return summary_writer_; }
  double save_model_secs() const { return o_.save_model_secs; }
  double save_summaries_secs() const { return o_.save_summaries_secs; }
  bool is_chief() const { return o_.is_chief; }

private:
  friend class managed_graph_session;
  // This is a service that runs every `secs` seconds.
  struct periodic {
    const char* name;
    double secs;
    void (session_supervisor::*begin)(base_session&);
    void (session_supervisor::*tick)(base_session&);
    double last = 0;
  };

  graph* g_;
  session_factory open_;
  session_supervisor_options o_;
  value ready_op_, ready_for_local_init_op_, init_op_, local_init_op_, global_step_;
  graph_summary summary_op_;
  std::shared_ptr<detail::any_saver> saver_;
  std::shared_ptr<const gradus::session_manager> manager_;
  std::shared_ptr<detail::any_summary_writer> summary_writer_;
  bool writes_graph_ = true, restored_ = false;
  std::atomic<bool> writer_is_open_ = true;
  double rate_since_ = 0;
  std::int64_t rate_step_ = 0, saved_step_ = -1, restored_step_ = -1;
  std::weak_ptr<base_session> managed_;  // whose last checkpoint a stop makes
  std::shared_ptr<detail::held_directory> alone_;
  any_coordinator coord_;
  std::mutex serving_;
  std::vector<periodic> services_;                                         // in the step
  std::shared_ptr<cancellation> services_end_;                             // of service_loops_, with their session
  std::vector<std::unique_ptr<looper_thread<>>> loopers_, service_loops_;  // the program's; the standard services'
  std::vector<std::shared_ptr<base_session>> kept_;                        // the sessions of the threads
  std::vector<coordinated_thread> threads_;  // last member: the threads end before what they use

  std::shared_ptr<base_session> prepare(std::string_view master, const prepare_session_options& o, bool will_save);
  bool saves_by_time() const { return saver_ != nullptr && o_.save_model_secs > 0; }
  void hold();
  void release();
  void make_ops();
  value first_or(service<value> given, std::string_view collection, const std::function<value()>& make);
  std::vector<periodic> standard_services() const;
  bool announces_services(base_session& sess);
  void serve(base_session& sess);
  void begin_step_counter(base_session& sess);
  void tick_summary(base_session& sess);
  void tick_step_counter(base_session& sess);
  void tick_checkpoint(base_session& sess);
  std::int64_t step_of(base_session& sess) const;
  detail::looper& start_loop(std::vector<std::unique_ptr<looper_thread<>>>& among, std::optional<double> interval_secs,
                             std::function<void()> f, std::string name);
  void end_services();
  std::size_t keep(const std::shared_ptr<base_session>& sess, std::vector<coordinated_thread> started);
  void stop(const stop_options& o, base_session* saved_last);
  void end_threads();
};

// Makes a session_supervisor, with the same name as for other models.
inline session_supervisor make_supervisor(graph& g, session_factory open, session_supervisor_options o = {}) {
  return session_supervisor(g, std::move(open), std::move(o));
}

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "session_supervisor.ipp"
#endif
