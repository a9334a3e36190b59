// The supervisor saves checkpoints, writes summaries and stops a training program cleanly, around a loop that the user
// writes. It corresponds to TensorFlow's tf.train.Supervisor, for the chief of one process.
//
//   auto sv = gradus::make_supervisor<model>({.logdir = "/tmp/mydir"}, gradus::adam{});
//   {
//     auto sess = sv.managed_session(master, data);      // restored from the newest checkpoint, or initialized
//     while (!sv.should_stop()) sess.run();              // a training step; the end of the data is a clean stop
//   }                                                    // threads joined, saved, closed; raises what stopped it
//
// The session's scope is TensorFlow's `with` block. When it ends, it raises the first error of any thread; an error of
// this thread counts if the loop is run by:
//
//   sv.stop_on_exception([&] { while (!sv.should_stop()) sess.run(); });
//
// TensorFlow differs:
//
// - The supervisor starts no threads except those of `loop`, unless `services` is `threads`. The work of TensorFlow's
//   summary and checkpoint threads is done inside `run`, after the first step that finds it due. So the same program on
//   the same data writes the same checkpoints of the same steps, whatever else the machine does, and nothing is done
//   while no step runs. (A model that was just initialized is saved at once; one that was just restored is on the disk
//   already.)
// - The scope ends with a checkpoint, unless an error ended it (save_on_stop; TensorFlow saves nothing at the end). A
//   step whose loss or parameters are not finite numbers is an error, and is never saved.
// - A dataset that is given to managed_session is part of the checkpoint, as the input pipeline is part of TensorFlow's
//   graph.
// - A thread cannot be abandoned: the error names a thread that outlives the grace period, and it is waited for.
#pragma once
#include "../base/build.hpp"

#include <atomic>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "../base/step_mutex.hpp"
#include "../input/stage.hpp"
#include "../session/looper.hpp"
#include "../session/master.hpp"
#include "../store/directory_lock.hpp"
#include "door.hpp"
#include "feeding.hpp"
#include "loop.hpp"
#include "supervised_session.hpp"
#include "supervisor_options.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
using supervisor_kinds = kinds_and<loop_kinds>;

// Returns the settings of the loop that supervisor_options give.
loop_settings loop_settings_of(const supervisor_options& o);
// Without a policy, checkpoints are saved by time.
template <class Decision>
Decision decision_of(const supervisor_options&, Decision given) {
  return given;
}
template <>
inline config_decision decision_of(const supervisor_options& o, config_decision) {
  return {every_steps{0}, every_seconds{o.services == service_place::in_step ? o.save_model_secs : 0}};
}
}  // namespace detail

template <class Source, class... Policies>
class supervisor {
  static_assert(policies_fit<detail::supervisor_kinds, Policies...>::value);
  static_assert(log_sink_fits<policy_of<kind::log_sink, silent, Policies...>>::value);
  static_assert(detail::hooks_fit<Policies...>::value);
  static_assert(detail::cluster_policies_fit<Policies...>::value);

public:
  using composition = detail::composition<Source, Policies...>;
  using clock_type = typename composition::clock_type;
  using connection_type = policy_of<kind::connection, in_process<>, Policies...>;

  // Raises what `resolve` refuses.
  supervisor(supervisor_options options, const Source& source, const Policies&... policies)
      : options_(resolve(std::move(options))),
        source_(source),
        policies_(policies...),
        connection_(take_policy<kind::connection, in_process<>>(policies...)),
        loop_(detail::loop_settings_of(options_), detail::saver_options_of(options_),
              detail::decision_of(options_, take_policy<kind::save_when, detail::config_decision>(policies...)),
              policies...),
        coord_({}, loop_.clock()) {}
  supervisor(const supervisor&) = delete;

  // Connects to the master ('' and 'local': this process), restores the newest checkpoint in logdir or initializes, and
  // makes the supervisor ready to run. There is one session at a time; a later one starts over from the newest
  // checkpoint. Raises the errors of the connect policy, the checkpoint and the file system, and failed_precondition
  // for a task that is not the chief and has no chief to wait for.
  auto managed_session(std::string_view master = {}) {
    return supervised_session<supervisor, detail::no_data>(*this, master, nullptr);
  }
  template <class Data>
    requires batched_dataset<Data>
  auto managed_session(std::string_view master, Data& data) {
    return supervised_session<supervisor, Data>(*this, master, &data);
  }
  // Does the same with a dataset that the session owns: sv.managed_session(master, input.shard(4, 1)).
  template <class Data>
    requires(!std::is_lvalue_reference_v<Data> && batched_dataset<Data>)
  auto managed_session(std::string_view master, Data&& data) {
    return supervised_session_with_data<supervisor, Data>(*this, master, std::move(data));
  }
  // Do the same with hooks of a run-time list for this session, {.hooks = {a, b}} (train/run_hooks.hpp).
  supervised_session<supervisor, detail::no_data> managed_session(std::string_view master,
                                                                  const hooked_session_options& options);
  template <class Data>
    requires batched_dataset<Data>
  supervised_session<supervisor, Data> managed_session(std::string_view master, Data& data,
                                                       const hooked_session_options& options);
  template <class Data>
    requires(!std::is_lvalue_reference_v<Data> && batched_dataset<Data>)
  supervised_session_with_data<supervisor, Data> managed_session(std::string_view master, Data&& data,
                                                                 const hooked_session_options& options);

  // ---- stopping; from any thread, except stop()
  bool should_stop() const { return coord_.should_stop(); }
  void request_stop(std::exception_ptr error = nullptr) { coord_.request_stop(std::move(error)); }
  template <std::derived_from<std::exception> Error>
  void request_stop(const Error& error) {
    coord_.request_stop(error);
  }
  void wait_for_stop() const { coord_.wait_for_stop(); }
  template <class Body>
  void stop_on_exception(Body&& body) {
    coord_.stop_on_exception(std::forward<Body>(body));
  }
  // Does the work of the end of the session's scope: requests threads to stop and waits for them, saves, closes the
  // events. Raises the error that stopped the run, once. The thread that trains calls it.
  void stop() { stop(false); }

  // Ranks the newest checkpoint by the metric, if it is of the session's step, for saver_options::best; the decision
  // about saves after the next step may use the metric (when_better). The thread that trains calls it.
  void measured(double metric) {
    if (!running_) raise(status::failed_precondition, "measured: the supervisor has no session");
    const detail::step_mutex::visiting lock(running_->mutex);
    loop_.measured(metric, running_->global_step);
  }

  // Passes the loss or a metric of an evaluation to a schedule that observes one (reduce_on_plateau); the schedule's
  // state is in the checkpoint. The thread that trains calls it.
  void watch(double value) {
    if (!running_) raise(status::failed_precondition, "watch: the supervisor has no session");
    const detail::step_mutex::visiting lock(running_->mutex);
    loop_.watch(running_->steps, value);
  }

  // Calls f(args...) every `interval_secs` seconds, on a thread of its own, the first time at once, until the run
  // stops. Arguments are taken by reference. f may call the functions of the session that are safe from any thread, or
  // request_stop.
  template <class F, class... Args>
  void loop(double interval_secs, F f, Args&... args) {
    loopers_.push_back(std::make_unique<looper_thread<clock_type>>(
        coord_, interval_secs, [f = std::move(f), &args...]() mutable { f(args...); },
        looper_options{.name = text("loop ", loopers_.size())}, loop_.clock()));
    loopers_.back()->start();
  }

  // Writes the program's summary into the event file: scalars, or values of any kind. A `step` of -1 is the session's.
  // Any thread may call it. Raises failed_precondition without an event file (no logdir, no summary_writer, not the
  // chief, no session).
  template <class Session, class Summary>
  void summary_computed(const Session& sess, const Summary& summary, std::int64_t step = -1) {
    summary_writer().add_summary(summary, step < 0 ? sess.global_step() : step);
  }
  // Returns the session's writer of events. Raises failed_precondition, as above.
  auto& summary_writer() {
    if (!running_ || loop_.log() == nullptr)
      raise(status::failed_precondition, "no event file: it takes a chief, a logdir, a summary_writer and a session");
    return loop_.log()->events();
  }

  // These are the resolved options: a task that is not the chief has no logdir and saves nothing.
  const supervisor_options& options() const { return options_; }
  bool is_chief() const { return options_.is_chief; }
  std::string save_path() const { return has_files() ? join_path(options_.logdir, options_.checkpoint_basename) : ""; }
  coordinator<clock_type>& coord() { return coord_; }

private:
  template <class, class>
  friend class supervised_session;
  using stepper_type = typename composition::stepper_type;

  // Makes a session of this process, with its own arenas and machines.
  struct open_here {
    const supervisor* sv;
    stepper_type operator()() const {
      return std::apply([this](const auto&... policies) { return composition::make_steps(sv->source_, policies...); },
                        sv->policies_);
    }
  };
  static_assert(connect_policy<connection_type, open_here>,
                "gradus: a connect policy has a const member `connect(const master&, open_here)`; see master.hpp.");
  using session_type =
      decltype(std::declval<const connection_type&>().connect(std::declval<const master&>(), open_here{}));

  using loop_type = detail::run_loop<composition, session_type>;

  // These are the objects that live as long as a session.
  struct running {
    running(supervisor& sv, const master& m) : steps(sv.connection_.connect(m, open_here{&sv})) { steps.allocate(); }
    std::shared_ptr<detail::held_directory> alone;
    session_type steps;
    state_list list;
    detail::step_mutex mutex;  // of steps and saves; a listener may read a summary
    std::atomic<double> loss{std::numeric_limits<double>::quiet_NaN()};
    std::atomic<std::int64_t> global_step{0};
    std::vector<placeholder_info> placeholders;
    std::vector<scalar_value> scalars;
    bool stepped = false, stopped = false;
    std::unique_ptr<detail::beside_steps> beside;  // null: no hooks except policies
  };

  supervisor_options options_;
  Source source_;
  std::tuple<Policies...> policies_;
  connection_type connection_;
  std::unique_ptr<running> running_;
  loop_type loop_;  // after running_, whose state it may be writing to a file
  coordinator<clock_type> coord_;
  std::vector<std::unique_ptr<looper_thread<clock_type>>> loopers_;  // last: destroyed first, and so joined

  bool has_files() const { return !options_.logdir.empty(); }

  // ---- a session begins
  template <class Remember>
  void open(std::string_view master_text, Remember remember_more, std::unique_ptr<detail::beside_steps> beside) {
    if (running_)
      raise(status::failed_precondition, "the supervisor has a session already; end its scope before the next");
    auto r = std::make_unique<running>(*this, parse_master(master_text));
    if (!composition::in_cluster && !options_.is_chief)
      raise(status::failed_precondition,
            text("this task is not the chief, and the session \"", master_text,
                 "\" is of this process alone: nobody else initializes its variables, so waiting would have no end. "
                 "Let the task be chief, or give a connect policy that reaches the chief's cluster"));
    if (loop_.saves()) r->alone = loop_.hold();
    r->beside = std::move(beside);
    loop_.begin_hooks();
    if (r->beside) r->beside->begin();
    r->steps.remembers(r->list);
    remember_more(r->list);
    loop_.forget_checkpoints();
    const bool found = loop_.restore(r->steps, r->list, false);
    r->steps.template placeholders<mode::train>([&](const placeholder_info& p) { r->placeholders.push_back(p); });
    r->global_step = r->steps.global_step();
    loop_.open_log(r->steps, found || r->global_step > 0 ? r->global_step + 1 : 0);  // above 0 also by a cluster
    running_ = std::move(r);                                                         // hooks may use the session
    try {
      coord_.clear_stop();
      loop_.begin(running_->steps, running_->list);
      if (auto* beside_it = running_->beside.get())
        beside_it->start(&running_->steps, running_->list, running_->steps.global_step());
      if (loop_.is_ended()) coord_.request_stop();  // by a signal in an earlier session
      if (options_.services == service_place::threads) start_services();
    } catch (...) {
      close();
      throw;
    }
  }

  // Starts threads for the services; without them, run_loop does the work after a step.
  void start_services() {
    const auto every = [&](double secs, auto f) {
      if (secs > 0)
        loop(secs, [this, f] {
          const detail::step_mutex::visiting lock(running_->mutex);
          if (running_->stepped && !running_->stopped) f();
        });
    };
    if (loop_.log() != nullptr && options_.summary_op)
      every(options_.save_summaries_secs, [this] { loop_.summarize(); });
    if (loop_.saves())
      every(options_.save_model_secs, [this] {
        if (loop_.unsaved(running_->steps.global_step())) loop_.save();
      });
  }

  // Publishes to other threads the loss and the global step of the last step.
  struct told_of_step {
    running* r;
    const loop_type* loop;
    ~told_of_step() { r->global_step = r->steps.global_step(), r->loss = loop->loss(); }
  };

  // ---- a step, and hooks around it
  template <class Fill>
  bool step(Fill fill) {
    running& r = *running_;
    const detail::step_mutex::stepping lock(r.mutex);  // hooks are locked too: another thread's save calls listeners
    if (r.stopped) raise(status::failed_precondition, "run: the supervisor has stopped; begin another session");
    loop_.before_run();
    if (r.beside) r.beside->before_run();
    if (!step_alone(fill)) return false;
    loop_.after_run();
    const bool ends = r.beside && r.beside->after_run(r.steps.global_step(), loop_.loss(), loop_.rate());
    if (ends || loop_.should_stop()) coord_.request_stop();
    return true;
  }
  template <class Fill>
  bool step_alone(Fill fill) {
    running& r = *running_;
    const told_of_step after{&r, &loop_};  // after an error too
    if (!loop_.step(0, fill)) {
      if constexpr (composition::in_cluster)
        if (r.steps.is_over()) return coord_.request_stop(), false;
      if (r.steps.global_step() == 0) raise(status::out_of_range, text("run: ", detail::gave_nothing));
      if (!r.stepped)
        loop_.warn_of(text("the data gave no step: they stand at their end since step ", r.steps.global_step(),
                           "; rewind() them or add .repeat() to go on"));
      coord_.request_stop();
      return false;
    }
    return r.stepped = true;
  }

  // ---- a session ends
  void stop(bool failed) {
    coord_.request_stop();
    if (!running_ || running_->stopped) return;
    running& r = *running_;
    std::exception_ptr first;
    const auto attempt = [&](auto&& part) {
      try {
        part();
      } catch (...) {
        if (!first) first = std::current_exception();
      }
    };
    attempt([&] {
      try {
        coord_.join({.stop_grace_period_secs = options_.stop_grace_secs});
      } catch (const deadline_exceeded& e) {
        loop_.say(e.what());  // before the wait for the threads that are left
        throw;
      }
    });
    loopers_.clear();
    const detail::step_mutex::visiting lock(r.mutex);
    r.stopped = true;
    attempt([&] { loop_.finish(options_.save_on_stop && !failed && !first); });
    if (!failed && !first)
      attempt([&] {
        loop_.end_hooks();
        if (r.beside) r.beside->end(r.steps.global_step());
      });
    if (auto* log = loop_.log()) {
      attempt([&] { log->events().add_session_log(session_log_status::stop, r.global_step); });
      attempt([&] { loop_.pause_log(); });
    }
    if (first) std::rethrow_exception(first);
  }
  void close() {
    if (running_ && !running_->stopped) coord_.request_stop(), loopers_.clear();  // its preparation has failed
    loop_.wait_for_saves();
    running_.reset();
  }
};

// Returns a supervisor of a model that the compiler builds. The policies are those of make_trainer, and a connect
// policy; the options take the place of run_config. A save_when policy takes the place of save_model_secs.
template <auto Model, class... Policies>
auto make_supervisor(const supervisor_options& options, const Policies&... policies) {
  using accepted = detail::model_is_accepted<detail::by_compiler<Model>, Policies...>;
  if constexpr (!accepted::value)
    return accepted::page::value;
  else
    return supervisor<detail::by_compiler<Model>, std::decay_t<const Policies&>...>(options, {}, policies...);
}
// Returns the same for a model function that the program runs; its model is interpreted.
template <class Build, class... Policies>
auto make_supervisor(Build model, const supervisor_options& options, const Policies&... policies) {
  return supervisor<detail::by_program, std::decay_t<const Policies&>...>(options, {std::move(model)}, policies...);
}

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "supervisor.ipp"
#endif
