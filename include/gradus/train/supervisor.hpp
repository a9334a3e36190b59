// The supervisor: a training program that checkpoints, writes summaries and stops well, around a loop that is the
// user's own. TensorFlow's tf.train.Supervisor, for the chief of one process.
//
//   auto sv = gradus::make_supervisor<model>({.logdir = "/tmp/mydir"}, gradus::adam{});
//   {
//     auto sess = sv.managed_session(master, data);      // restored from the newest checkpoint, or initialized
//     while (!sv.should_stop()) sess.run();              // a training step; the end of the data is a clean stop
//   }                                                    // threads joined, saved, closed; raises what stopped it
//
// The session's scope is TensorFlow's `with` block. It ends by raising the first error of any thread, this one's by:
//
//   sv.stop_on_exception([&] { while (!sv.should_stop()) sess.run(); });
//
// Otherwise than TensorFlow:
// - No threads but those of `loop`. What TensorFlow's summary and checkpoint threads do happens inside `run`, after the
//   first step that finds it due: so a checkpoint is of one step, and while no step runs nothing happens. (A model that
//   was just initialized is saved at once; one that was just restored is on the disk already.)
// - The scope ends with a checkpoint, unless an error ended it (save_on_stop; TensorFlow saves nothing then). A step
//   whose loss or parameters are no finite numbers is an error, and never saved.
// - A dataset given to managed_session is part of the checkpoint, as in TensorFlow the input pipeline is of the graph.
// - A thread cannot be abandoned: one that outlives the grace period is named in the error, and waited for.
#pragma once
#include <atomic>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "../input/stage.hpp"
#include "../session/looper.hpp"
#include "../session/master.hpp"
#include "../store/directory_lock.hpp"
#include "composition.hpp"
#include "feeding.hpp"
#include "measure.hpp"
#include "progress.hpp"
#include "run_log.hpp"
#include "supervised_session.hpp"
#include "supervisor_options.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
using supervisor_kinds = kinds_and<update_kinds, kind::gate, kind::precision, kind::codec, kind::executor,
                                   kind::arithmetic, kind::subnormals, kind::microbatch, kind::recomputation,
                                   kind::clock, kind::file_system, kind::operations, kind::log_sink, kind::connection>;
}  // namespace detail

template <class Source, class... Policies>
class supervisor {
  static_assert(policies_fit<detail::supervisor_kinds, Policies...>::value);
  static_assert(log_sink_fits<policy_of<kind::log_sink, silent, Policies...>>::value);

public:
  using composition = detail::composition<Source, Policies...>;
  using clock_type = typename composition::clock_type;
  using connection_type = policy_of<kind::connection, in_process<>, Policies...>;

  // Error: what `resolve` refuses.
  supervisor(supervisor_options options, const Source& source, const Policies&... policies)
      : options_(resolve(std::move(options))),
        source_(source),
        policies_(policies...),
        fs_(take_policy<kind::file_system, posix>(policies...)),
        clock_(take_policy<kind::clock, system_clock>(policies...)),
        sink_(take_policy<kind::log_sink, warnings>(policies...)),
        connection_(take_policy<kind::connection, in_process<>>(policies...)),
        coord_({}, clock_) {
    if (has_files() && options_.saver)
      saver_.emplace(*options_.saver, take_policy<kind::codec, flat_binary>(policies...), fs_, clock_);
  }
  supervisor(const supervisor&) = delete;

  // Connects to the master ('' and 'local': this process), restores the newest checkpoint in logdir or initializes, and
  // makes the supervisor ready to run. One session at a time; a later one starts over from the newest checkpoint.
  // Errors: what the connect policy, the checkpoint and the file system say; failed_precondition for a task that is
  // not the chief and has nobody to wait for.
  auto managed_session(std::string_view master = {}) {
    return supervised_session<supervisor, detail::no_data>(*this, master, nullptr);
  }
  template <class Data>
    requires batched_dataset<Data>
  auto managed_session(std::string_view master, Data& data) {
    return supervised_session<supervisor, Data>(*this, master, &data);
  }

  // ---- stopping; from any thread, but for stop()
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
  // What the end of the session's scope does: asks threads to stop and waits for them, saves, closes the events. Raises
  // the error that stopped the run, once. Called by the thread that trains.
  void stop() { stop(options_.save_on_stop); }

  // Calls f(args...) every so many seconds, on a thread of its own, the first time at once, until the run stops.
  // Arguments are taken by reference. f may ask the session for what it calls safe, or call request_stop.
  template <class F, class... Args>
  void loop(double interval_secs, F f, Args&... args) {
    loopers_.push_back(std::make_unique<looper_thread<clock_type>>(
        coord_, interval_secs, [f = std::move(f), &args...]() mutable { f(args...); },
        looper_options{.name = text("loop ", loopers_.size())}, clock_));
    loopers_.back()->start();
  }

  // What the program summarized, for the event file: scalars, or values of any kind; `step` -1: the session's. From any
  // thread. Error: failed_precondition without an event file (no logdir, no summary_writer, not the chief, no session).
  template <class Session, class Summary>
  void summary_computed(const Session& sess, const Summary& summary, std::int64_t step = -1) {
    summary_writer().add_summary(summary, step < 0 ? sess.global_step() : step);
  }
  // The session's writer of events. Error: failed_precondition, as above.
  auto& summary_writer() {
    if (!running_ || !log_)
      raise(status::failed_precondition, "no event file: it takes a chief, a logdir, a summary_writer and a session");
    return log_->events();
  }

  // As resolved: who is not the chief has no logdir and saves nothing.
  const supervisor_options& options() const { return options_; }
  bool is_chief() const { return options_.is_chief; }
  std::string save_path() const { return has_files() ? join_path(options_.logdir, options_.checkpoint_basename) : ""; }
  coordinator<clock_type>& coord() { return coord_; }

private:
  template <class, class>
  friend class supervised_session;
  using stepper_type = typename composition::stepper_type;
  using log_type = detail::run_log<typename composition::file_system_type, clock_type>;

  // Makes a session of this process: arenas and machines of its own.
  struct open_here {
    const supervisor* sv;
    stepper_type operator()() const {
      return std::apply(
          [this](const auto&... policies) {
            return stepper_type(sv->source_.template make<typename composition::model_type>(),
                                detail::compose_update(policies...), take_policy<kind::executor, serial>(policies...),
                                typename composition::subnormals_type{},
                                take_policy<kind::microbatch, detail::whole_batch>(policies...));
          },
          sv->policies_);
    }
  };
  static_assert(connect_policy<connection_type, open_here>,
                "gradus: a connect policy has a const member `connect(const master&, open_here)`; see master.hpp.");
  using session_type =
      decltype(std::declval<const connection_type&>().connect(std::declval<const master&>(), open_here{}));

  // What lives as long as a session.
  struct running {
    running(supervisor& sv, const master& m) : steps(sv.connection_.connect(m, open_here{&sv})) { steps.allocate(); }
    std::optional<directory_lock<typename composition::file_system_type>> alone;
    session_type steps;
    state_list list;
    std::mutex mutex;  // a step, a save
    std::atomic<double> loss{std::numeric_limits<double>::quiet_NaN()};
    std::atomic<std::int64_t> global_step{0};
    std::vector<placeholder_info> placeholders;
    std::vector<scalar_value> scalars;
    double rate = 0;
    std::int64_t saved_step = -1, counted_from = 0, reported_from = 0;
    double saved_at = 0, summarized_at = 0, reported_at = 0, steps_per_sec = 0;
    bool stepped = false, summarized = false, stopped = false;
  };

  supervisor_options options_;
  Source source_;
  std::tuple<Policies...> policies_;
  typename composition::file_system_type fs_;
  clock_type clock_;
  typename composition::sink_type sink_;
  connection_type connection_;
  coordinator<clock_type> coord_;
  std::optional<typename composition::saver_type> saver_;
  std::optional<log_type> log_;
  std::unique_ptr<running> running_;
  std::vector<std::unique_ptr<looper_thread<clock_type>>> loopers_;  // last: destroyed first, and so joined

  bool has_files() const { return !options_.logdir.empty(); }

  // ---- a session begins
  template <class Remember>
  void open(std::string_view master_text, Remember remember_more) {
    if (running_)
      raise(status::failed_precondition, "the supervisor has a session already; end its scope before the next");
    auto r = std::make_unique<running>(*this, parse_master(master_text));
    if (!options_.is_chief)
      raise(status::failed_precondition,
            text("this task is not the chief, and the session \"", master_text,
                 "\" is of this process alone: nobody else initializes its variables, so waiting would have no end. "
                 "Let the task be chief, or give a connect policy that reaches the chief's cluster"));
    if (saver_) hold_directory(r->alone, fs_, options_.logdir);
    r->steps.remembers(r->list);
    remember_more(r->list);
    std::optional<restored> found;
    if (saver_) saver_->own(options_.logdir);
    if (saver_)
      found =
          saver_->restore_latest(r->list, options_.logdir,
                                 {.restore_newest = options_.restore_newest, .prefix = options_.checkpoint_basename});
    if (found) {
      r->steps.restored();
      r->saved_step = found->step;
      for (const auto& d : found->damaged) sink_.line(text("passed over ", d.path, ": ", d.reason));
      if (!found->warning.empty()) sink_.line(text("checkpoint ", found->path, ": ", found->warning));
      sink_.line(text("restored step ", found->step, " from ", found->path));
    }
    r->steps.initialize(options_.tf_random_seed);
    r->steps.template placeholders<mode::train>([&](const placeholder_info& p) { r->placeholders.push_back(p); });
    r->global_step = r->counted_from = r->steps.global_step();
    r->saved_at = r->summarized_at = r->reported_at = clock_.elapsed();
    r->reported_from = r->counted_from;
    show_graph(r->steps);
    if (has_files() && options_.summary_writer) {
      const bool first = !log_;  // later sessions go on in the same file
      if (first) log_.emplace(options_.logdir, *options_.summary_writer, fs_, clock_);
      log_->resume();
      if (first) log_->add_graph(r->steps);
      log_->events().start(found ? found->step + 1 : 0);
    }
    if (saver_ && !found) save(*r);
    coord_.clear_stop();
    running_ = std::move(r);
  }

  // graph.pbtxt, and what every checkpoint gets as its .meta file.
  void show_graph(session_type& steps) {
    if (!has_files()) return;
    auto meta = saver_ ? detail::publish_graph(steps, options_.logdir, fs_, saver_->codec_policy())
                       : detail::publish_graph(steps, options_.logdir, fs_, flat_binary{});
    if (saver_ && !meta.empty()) saver_->attach(".meta", std::move(meta));
  }

  // ---- a step and what is due after it
  template <class Fill>
  bool step(Fill fill) {
    running& r = *running_;
    const std::lock_guard lock(r.mutex);
    if (r.stopped) raise(status::failed_precondition, "run: the supervisor has stopped; begin another session");
    if (!fill(r.steps)) {
      if (r.global_step == 0) raise(status::out_of_range, text("run: ", detail::gave_nothing));
      if (!r.stepped)
        detail::warn(sink_, text("the data gave no step: they stand at their end since step ", r.steps.global_step(),
                                 "; rewind() them or add .repeat() to go on"));
      coord_.request_stop();
      return false;
    }
    r.rate = r.steps.rate();
    r.steps.train_step();
    r.stepped = true;
    r.global_step = r.steps.global_step();
    r.loss = detail::as_number(r.steps.template output_of<mode::train>(output::loss));
    if (composition::looks_at_loss && !std::isfinite(r.loss))
      detail::raise_divergence("loss", r.loss, r.global_step, r.saved_step);
    const double now = clock_.elapsed();
    report(r, now);
    if (log_ && options_.summary_op && options_.save_summaries_secs > 0 &&
        (!r.summarized || now - r.summarized_at >= options_.save_summaries_secs))
      summarize(r, now);
    if (saver_ && options_.save_model_secs > 0 && now - r.saved_at >= options_.save_model_secs) save(r);
    return true;
  }
  // Every step to the log sink. Nobody said how many there will be, so max_steps is 0.
  void report(running& r, double now) {
    const double every = options_.log_step_count_steps;
    const bool due = every >= 1 && r.global_step % static_cast<std::int64_t>(every) == 0;
    if (due || r.steps_per_sec == 0)
      r.steps_per_sec =
          now > r.reported_at ? static_cast<double>(r.global_step - r.reported_from) / (now - r.reported_at) : 0;
    sink_.step({r.global_step, 0, r.loss, r.rate, r.steps_per_sec, 0, now}, due);
    if (due) r.reported_at = now, r.reported_from = r.global_step;
  }
  void summarize(running& r, double now) {
    const double secs = now - r.summarized_at;
    const scalar_value speed{"global_step/sec", static_cast<float>(double(r.global_step - r.counted_from) / secs)};
    log_->add_step(r.steps, r.loss, r.rate, std::span(&speed, r.summarized && secs > 0 ? 1 : 0));
    r.summarized = true, r.summarized_at = now, r.counted_from = r.global_step;
  }
  void save(running& r) {
    detail::find_divergence(r.steps, [&](std::string_view name, double value) {
      detail::raise_divergence(name, value, r.global_step, r.saved_step);
    });
    if (log_) log_->events().flush();  // what was logged up to a checkpoint is in the file before the checkpoint is
    const saved done = saver_->save(r.list, save_path(), r.global_step);
    for (const auto& path : done.not_removed)
      detail::warn(sink_, text("could not delete the superseded checkpoint ", path));
    r.saved_step = r.global_step, r.saved_at = clock_.elapsed();
    if (log_) log_->events().add_session_log(session_log_status::checkpoint, r.saved_step, save_path());
  }

  // ---- a session ends
  void stop(bool may_save) {
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
        sink_.line(e.what());  // now, since the stragglers are waited for
        throw;
      }
    });
    loopers_.clear();
    const std::lock_guard lock(r.mutex);
    r.stopped = true;
    if (saver_ && may_save && !first && r.saved_step != r.global_step) attempt([&] { save(r); });
    if (log_) {
      attempt([&] { log_->events().add_session_log(session_log_status::stop, r.global_step); });
      attempt([&] { log_->pause([this](const std::string& line) { sink_.line(line); }); });
    }
    if (first) std::rethrow_exception(first);
  }
  void close() { running_.reset(); }
};

// A supervisor of a model that the compiler builds. Policies as for make_trainer, and a connect policy; what run_config
// says there, the options say here.
template <auto Model, class... Policies>
auto make_supervisor(const supervisor_options& options, const Policies&... policies) {
  return supervisor<detail::by_compiler<Model>, Policies...>(options, {}, policies...);
}
// The same for a model function that the program runs: interpreted.
template <class Build, class... Policies>
auto make_supervisor(Build model, const supervisor_options& options, const Policies&... policies) {
  return supervisor<detail::by_program, Policies...>(options, {std::move(model)}, policies...);
}

}  // namespace gradus
