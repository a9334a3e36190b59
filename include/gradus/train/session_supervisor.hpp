// This supervisor runs a session of your own graph: it restores or initializes, saves, writes summaries, starts queue
// runners, and stops well. tf.train.Supervisor (1.15), for chief and for workers; of a model that a compiler or a
// function builds it is train/supervisor.hpp.
//
//   gradus::session_supervisor sv(g, gradus::sessions_of(g, opt), {.logdir = "/tmp/mydir"});
//   {
//     auto sess = sv.managed_session();                           // restored or initialized; services have begun
//     while (!sv.should_stop()) sess.run(train_op, feeds);
//   }                                                             // threads joined, session closed
//
// The block raises the first error of a thread when it ends. So that an error of its own ends it the same way, and an
// out_of_range without one, as TensorFlow's `with`:
//
//   sess.within([&] { while (!sv.should_stop()) sess.run(train_op); });
//
// Services (summaries, steps per second, checkpoints) are done inside the step unless `services` says threads: by `run`
// of a managed session, behind the first run that finds one due, and once when the session begins. The saved state is
// then one between two runs, and a program with one thread writes the same files whatever the machine does meanwhile.
// TensorFlow's threads save and summarize while no step is made, too. Those that start_standard_services starts, with a
// session of prepare_or_wait_for_session, are always threads. A save waits for the runs at work, whoever makes it.
//
// Otherwise than TensorFlow: a managed session that ends without an error is saved (save_on_stop; TensorFlow loses the
// steps since the last checkpoint); a checkpoint without a global step is of step 0, and the codec ends its name;
// threads cannot be abandoned: one that outlives the grace period is named in the error, and waited for when the
// session is closed.
#pragma once
#include <concepts>
#include <cstdint>
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
#include "graph_summary.hpp"
#include "supervisor_options.hpp"

namespace gradus::inline GRADUS_BUILD {

// Each `service` may be left out, as TensorFlow's USE_DEFAULT; `none`; or a value.
struct session_supervisor_options {
  service<value> ready_op = {};                 // default: the collection's, or reports all variables without a value
  service<value> ready_for_local_init_op = {};  // default: the collection's, or none
  bool is_chief = true;
  service<value> init_op = {};  // default: the collection's, or gives all variables but local ones their first values
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
  std::shared_ptr<const gradus::session_manager> manager = nullptr;  // default: one of the ops above
  service<std::shared_ptr<detail::any_summary_writer>> summary_writer = {};  // default: of the chief, in logdir
  std::function<void(base_session&)> init_fn = nullptr;                      // after init_op
  run_options local_init_run_options = {};
  service_place services = service_place::in_step;
  bool save_on_stop = true;  // the end of a managed session, unless an error ends it
  std::function<std::unique_ptr<base_session>(std::string_view master, const session_factory&)> connect =
      nullptr;  // default: in_process (session/master.hpp)
  task_system tasks = {};
};

struct prepare_session_options {
  bool wait_for_checkpoint = false;
  double max_wait_secs = 7200;
  bool start_standard_services = true;
};
struct stop_options {
  bool close_summary_writer = true;
  bool ignore_live_threads = false;
};
struct managed_session_options {
  bool start_standard_services = true;
  bool close_summary_writer = true;
};

class session_supervisor;

// The block of a managed session; made in place by session_supervisor::managed_session.
class managed_graph_session {
public:
  managed_graph_session(session_supervisor& sv, std::string_view master, const managed_session_options& o);
  managed_graph_session(const managed_graph_session&) = delete;
  // Stops the supervisor, and raises the error that stopped it; closes the session. An error on its way stays what it
  // is.
  ~managed_graph_session() noexcept(false);

  // A run, and after it the services that are due. A stop ends it where it waits in a queue: out_of_range. Any thread.
  // Errors: as base_session::run, and those of services.
  run_results run(std::span<const fetch> fetches, std::span<const feed> feeds = {}, const run_options& o = {},
                  run_metadata* told = nullptr);
  run_results run(std::initializer_list<fetch> fetches, std::initializer_list<feed> feeds = {},
                  const run_options& o = {}, run_metadata* told = nullptr) {
    return run(std::span(fetches.begin(), fetches.size()), std::span(feeds.begin(), feeds.size()), o, told);
  }
  run_result run(const fetch& f, std::initializer_list<feed> feeds = {}, const run_options& o = {},
                 run_metadata* told = nullptr) {
    return run_result(run(std::span(&f, 1), std::span(feeds.begin(), feeds.size()), o, told));
  }
  // Runs the body, then ends the block: the body's error stops the supervisor and is raised, unless a thread's came
  // first; an out_of_range stops it and is not raised.
  template <std::invocable Body>
  void within(Body body) {
    try {
      body();
    } catch (const out_of_range&) {  // the end of the input
      ended_by(std::current_exception(), false);
    } catch (...) {
      ended_by(std::current_exception(), true);
    }
    finish();
  }
  // Without services behind its runs.
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
  // Makes what is missing, puts it into the graph's collections, and finalizes the graph. Errors: invalid_argument for
  // times that are no numbers, for a variable without a device in a task that is not the chief ("must have their device
  // set"), for a ready_for_local_init_op without a local_init_op.
  session_supervisor(graph& g, session_factory open, session_supervisor_options o = {});
  session_supervisor(const session_supervisor&) = delete;
  ~session_supervisor();

  // The chief restores the newest checkpoint of logdir, or initializes, writes graph.pbtxt and the graph's events, and
  // starts the standard services; another task waits until the chief has done so. Then all queue runners start. The
  // threads keep the session. A stop that is requested meanwhile ends its waits. Errors: as prepare_session and
  // wait_for_session of a session_manager.
  std::shared_ptr<base_session> prepare_or_wait_for_session(std::string_view master = {},
                                                            const prepare_session_options& o = {});
  // Threads that summarize, tell steps per second, and save; how many. None without a logdir. Error:
  // failed_precondition for a task that is not the chief.
  std::size_t start_standard_services(const std::shared_ptr<base_session>& sess);
  // Threads of these runners, or of all that the graph has; how many.
  std::size_t start_queue_runners(const std::shared_ptr<base_session>& sess);
  std::size_t start_queue_runners(const std::shared_ptr<base_session>& sess, std::span<const queue_runner> runners);
  managed_graph_session managed_session(std::string_view master = {}, const managed_session_options& o = {}) {
    return managed_graph_session(*this, master, o);
  }

  // Calls f(args...) every so many seconds (0 or nothing: back to back) on a thread, which `stop` joins. Arguments are
  // taken by reference.
  template <class F, class... Args>
  detail::looper& loop(std::optional<double> interval_secs, F f, Args&... args) {
    return start_loop(
        interval_secs, [f = std::move(f), &args...]() mutable { f(args...); }, "loop");
  }

  // Asks threads to stop and waits for them; then writes STOP and closes the writer, also if an error is raised. It
  // does not close the session. Errors: the first of a thread; deadline_exceeded with the names of those that outlive
  // the grace period.
  void stop(const stop_options& o = {}) { stop(o, nullptr); }
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

  // Writes a run's summary into the events, at the session's global step (or `step`; none: 0). Error:
  // failed_precondition without a writer ("requires a summary writer").
  void summary_computed(base_session& sess, const summary_values& summary, std::optional<std::int64_t> step = {});
  void summary_computed(managed_graph_session& sess, const summary_values& summary,
                        std::optional<std::int64_t> step = {}) {
    summary_computed(sess.raw_session(), summary, step);
  }

  // These are the resolved options; empty where there is none. A task that is not the chief has no save_path, no
  // writer, and 0 for both intervals.
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
  // A service that runs every so many seconds.
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
  bool writes_graph_ = true, writer_is_open_ = true;
  double rate_since_ = 0;
  std::int64_t rate_step_ = 0, saved_step_ = -1;
  any_coordinator coord_;
  std::mutex serving_;
  std::vector<periodic> services_;  // in the step
  std::vector<std::unique_ptr<looper_thread<>>> loopers_;
  std::vector<std::shared_ptr<base_session>> kept_;  // what threads run
  std::vector<coordinated_thread> threads_;          // last: they end before what they use

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
  detail::looper& start_loop(std::optional<double> interval_secs, std::function<void()> f, std::string name);
  std::size_t keep(const std::shared_ptr<base_session>& sess, std::vector<coordinated_thread> started);
  void stop(const stop_options& o, base_session* saved_last);
  void end_threads();
};

// Returns the same, as for other models.
inline session_supervisor make_supervisor(graph& g, session_factory open, session_supervisor_options o = {}) {
  return session_supervisor(g, std::move(open), std::move(o));
}

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "session_supervisor.ipp"
#endif
