// The bodies of session_supervisor.hpp.
#pragma once
#include <limits>

#include "../base/body.hpp"
#include "../session/master.hpp"
#include "../summary/graph.hpp"
#include "../summary/write_graph.hpp"
#include "export_meta_graph.hpp"
#include "progress.hpp"
#include "session_supervisor.hpp"

namespace gradus::inline GRADUS_BUILD {

// --- construction

GRADUS_BODY session_supervisor::session_supervisor(graph& g, session_factory open, session_supervisor_options o)
    : g_(&g), open_(std::move(open)), o_(std::move(o)), coord_({}, o_.tasks) {
  const supervisor_options checked = resolve({.logdir = o_.logdir,
                                              .is_chief = o_.is_chief,
                                              .save_summaries_secs = o_.save_summaries_secs,
                                              .save_model_secs = o_.save_model_secs,
                                              .stop_grace_secs = o_.stop_grace_secs});
  o_.logdir = checked.logdir;
  o_.save_summaries_secs = checked.save_summaries_secs, o_.save_model_secs = checked.save_model_secs;
  if (!o_.is_chief) {
    o_.summary_writer = none;
    std::string names;
    bool shares = false;  // then the cluster places the variables
    g.for_each_in(detail::shared_train_ops, [&](value) { shares = true; });
    g.for_each_in(collection::global_variables, [&](value v) {
      if (!shares && g.nodes[v.id].device < 0) names += text(names.empty() ? "" : ", ", g.name_of(v.id));
    });
    if (!names.empty())
      raise(status::invalid_argument,
            text("When using replicas, all variables must have their device set: ", names,
                 ". Make them in the scope of g.device(...), such as that of a parameter server"));
  }
  make_ops();
  manager_ = o_.manager;
  if (manager_ == nullptr)
    manager_ = std::make_shared<gradus::session_manager>(
        session_manager_options{.local_init_op = local_init_op_,
                                .ready_op = ready_op_,
                                .ready_for_local_init_op = ready_for_local_init_op_,
                                .recovery_wait_secs = o_.recovery_wait_secs,
                                .local_init_run_options = o_.local_init_run_options},
        o_.tasks);
  if (o_.summary_writer) {
    summary_writer_ = *o_.summary_writer;
    if (summary_writer_ == nullptr && !o_.logdir.empty())
      summary_writer_ = std::make_shared<gradus::summary_writer<>>(o_.logdir);
  }
  g.finalize();
}
GRADUS_BODY session_supervisor::~session_supervisor() {
  coord_.request_stop();
  end_threads();
}

GRADUS_BODY value session_supervisor::first_or(service<value> given, std::string_view collection,
                                               const std::function<value()>& make) {
  if (!given) return {};
  if (*given) return *given;
  value found;
  g_->for_each_in(collection, [&](value v) {
    if (!found) found = v;
  });
  if (found || !make) return found;
  const value made = make();
  if (made) g_->add_to(collection, made);
  return made;
}

GRADUS_BODY void session_supervisor::make_ops() {
  graph& g = *g_;
  init_op_ = first_or(o_.init_op, collection::init_op, [&] { return global_variables_initializer(g); });
  ready_op_ = first_or(o_.ready_op, collection::ready_op, [&] { return report_uninitialized_variables(g); });
  ready_for_local_init_op_ = first_or(o_.ready_for_local_init_op, collection::ready_for_local_init_op, nullptr);
  local_init_op_ = first_or(o_.local_init_op, collection::local_init_op, [&] {
    const value locals = local_variables_initializer(g), tables = tables_initializer(g);
    return g.group({locals, tables});
  });
  global_step_ = first_or(o_.global_step, collection::global_step, [&]() -> value {
    const int id = g.find("global_step");
    if (id < 0 || g.nodes[id].op != &variable_card) return {};
    const dtype t = g.nodes[id].type;  // another type counts something else
    return t == int32 || t == int64 ? value{&g, id} : value{};
  });
  if (o_.summary_op) {
    summary_op_ = *o_.summary_op;
    if (summary_op_.empty()) summary_op_ = merge_all(g);
  }
  if (o_.saver) {
    saver_ = *o_.saver;
    bool has_variables = false;
    g.for_each_in(collection::global_variables, [&](value) { has_variables = true; });
    if (saver_ == nullptr && has_variables) saver_ = std::make_shared<gradus::saver<>>();
  }
}

GRADUS_BODY std::string session_supervisor::save_path() const {
  return o_.logdir.empty() ? std::string() : join_path(o_.logdir, o_.checkpoint_basename);
}

// --- a session begins

GRADUS_BODY void session_supervisor::hold() {
  if (alone_ != nullptr || saver_ == nullptr || o_.logdir.empty()) return;
  alone_ = hold_directory(saver_->disk(), o_.logdir);
  saver_->share(alone_);
  saver_->follow(directory_of(save_path()));
}
// Gives the directory free, unless a thread that saves is left.
GRADUS_BODY void session_supervisor::release() {
  for (const auto* const all : {&loopers_, &service_loops_})
    for (const auto& l : *all)
      if (l->is_alive()) return;
  alone_.reset();
}

GRADUS_BODY std::shared_ptr<base_session> session_supervisor::prepare_or_wait_for_session(
    std::string_view master, const prepare_session_options& o) {
  try {
    return prepare(master, o, o.start_standard_services && saves_by_time());
  } catch (...) {
    release();
    throw;
  }
}
GRADUS_BODY std::shared_ptr<base_session> session_supervisor::prepare(std::string_view master,
                                                                      const prepare_session_options& o,
                                                                      bool will_save) {
  // The threads of a session that was stopped end before the stop is cleared. Of one that was not stopped the services
  // end, which would save its variables beside those of the new one; loops that the program has added go on, as
  // TensorFlow's do.
  coord_.should_stop() ? end_threads() : end_services();
  coord_.clear_stop();
  release();
  if (will_save && o_.is_chief) hold();  // before it restores what another run may be about to replace
  if (!will_save && o_.is_chief && saver_ != nullptr && !o_.logdir.empty())
    saver_->follow(directory_of(save_path()));  // the program may save by it
  saved_step_ = -1;
  if (summary_writer_ != nullptr && !writer_is_open_.exchange(true)) summary_writer_->reopen();
  const session_factory open = [&, name = std::string(master)] {
    auto s = o_.connect ? o_.connect(name, open_) : in_process<>().connect(parse_master(name), open_);
    s->check_role(o_.is_chief);
    return s;
  };
  std::shared_ptr<base_session> sess;
  const std::shared_ptr<cancellation> stops = coord_.stopping();
  if (o_.is_chief) {
    sess = manager_->prepare_session(open, {.init_op = init_op_,
                                            .init_feed_dict = o_.init_feed_dict,
                                            .init_fn = o_.init_fn,
                                            .from = {.saver = o_.logdir.empty() ? nullptr : saver_.get(),
                                                     .checkpoint_dir = saver_ != nullptr ? o_.logdir : std::string(),
                                                     .wait_for_checkpoint = o.wait_for_checkpoint,
                                                     .max_wait_secs = o.max_wait_secs,
                                                     .stop = stops.get(),
                                                     .restore_newest = o_.restore_newest,
                                                     .restore_fallback = o_.restore_fallback,
                                                     .checkpoint_basename = o_.checkpoint_basename},
                                            .restored = &restored_});
    if (!o_.logdir.empty()) write_graph(to_graph_def(*g_), o_.logdir, "graph.pbtxt");
    if (summary_writer_ != nullptr && std::exchange(writes_graph_, false)) add_graphs(*summary_writer_, *g_);
    if (o.start_standard_services) start_standard_services(sess);
  } else {
    sess = manager_->wait_for_session(open, o.max_wait_secs, stops.get(),
                                      {.init_op = init_op_, .init_feed_dict = o_.init_feed_dict});
  }
  if (o.start_standard_services) start_queue_runners(sess);
  return sess;
}

// --- services

GRADUS_BODY std::int64_t session_supervisor::step_of(base_session& sess) const {
  return global_step_ ? gradus::global_step(sess, global_step_) : 0;
}

GRADUS_BODY void session_supervisor::begin_step_counter(base_session& sess) {
  rate_since_ = o_.tasks.elapsed(), rate_step_ = step_of(sess);
}
GRADUS_BODY void session_supervisor::tick_step_counter(base_session& sess) {
  const double now = o_.tasks.elapsed(), secs = now - std::exchange(rate_since_, now);
  const std::int64_t step = step_of(sess), steps = step - std::exchange(rate_step_, step);
  if (step == restored_step_) return;  // its events are those of the run that has made it
  const double rate = secs > 0 ? static_cast<double>(steps) / secs : std::numeric_limits<double>::infinity();
  summary_writer_->add_scalar(text(g_->name_of(global_step_.id), "/sec"), static_cast<float>(rate), step);
}
GRADUS_BODY void session_supervisor::tick_summary(base_session& sess) {
  if (restored_step_ >= 0 && step_of(sess) == restored_step_) return;  // as above
  auto fetches = summary_op_.fetches();
  if (global_step_) fetches.emplace_back(global_step_);  // of the same run
  const std::shared_ptr<cancellation> stops = coord_.stopping();
  const run_results all = [&] {
    try {
      std::optional<detail::either_cancellation> both;
      if (services_end_ != nullptr) both.emplace(*services_end_, *stops);
      return sess.run(fetches, {}, {.stop = both ? both->get() : stops.get()});
    } catch (const invalid_argument& e) {
      raise(status::invalid_argument,
            text(e.what(),
                 " (a supervisor runs summaries without feeds; where they take some, give it summary_op = "
                 "none, run them beside your step, and hand their values to summary_computed)"));
    }
  }();
  const std::span<const const_tensor_view> results = all;
  summary_writer_->add_summary(summary_op_.values(results.first(summary_op_.fetches().size())),
                               global_step_ ? detail::step_in(results[results.size() - 1]) : 0);
}
GRADUS_BODY void session_supervisor::tick_checkpoint(base_session& sess) {
  // A block may go on after a stop, which closes the writer, and a thread whose grace is over saves meanwhile.
  const auto write = [this](auto what) {
    if (summary_writer_ == nullptr || !writer_is_open_) return;
    try {
      what(*summary_writer_);
    } catch (const failed_precondition&) {
      if (writer_is_open_) throw;
    }
  };
  std::int64_t step = 0;
  {
    const auto still = sess.pause_runs();
    sess.gather();
    if (global_step_) step = detail::step_in(sess.variable(g_->name_of(global_step_.id)));
    state_list list;
    sess.remembers(list);
    write([](auto& w) { w.flush(); });  // events up to a checkpoint are on file before it is
    const auto rank = saved_step_ < 0 ? saver_->rank_of(save_path(), step) : std::nullopt;  // what was restored
    saver_->save(list, save_path(), step, {}, rank);
    saved_step_ = step;
  }
  write([&](auto& w) { w.add_session_log(session_log_status::checkpoint, step, save_path()); });
}

GRADUS_BODY std::vector<session_supervisor::periodic> session_supervisor::standard_services() const {
  std::vector<periodic> all;
  const bool summarizes = o_.save_summaries_secs > 0 && summary_writer_ != nullptr;
  if (summarizes && !summary_op_.empty())
    all.push_back({"summaries", o_.save_summaries_secs, nullptr, &session_supervisor::tick_summary});
  if (summarizes && global_step_)
    all.push_back({"steps per second", o_.save_summaries_secs, &session_supervisor::begin_step_counter,
                   &session_supervisor::tick_step_counter});
  if (saves_by_time())
    all.push_back({"checkpoints", o_.save_model_secs, nullptr, &session_supervisor::tick_checkpoint});
  return all;
}

// Writes the start of the session into the events. Returns false if there is no logdir, and so no services.
GRADUS_BODY bool session_supervisor::announces_services(base_session& sess) {
  if (!o_.is_chief)
    raise(
        status::failed_precondition,
        "Only chief supervisor can start standard services; make it with is_chief = true, or leave them to the chief");
  if (o_.logdir.empty()) return false;
  restored_step_ = global_step_ && restored_ ? step_of(sess) : -1;
  if (global_step_ && summary_writer_ != nullptr)
    summary_writer_->start(step_of(sess) + (restored_ ? 1 : 0));  // the events of a restored step are true
  return true;
}

GRADUS_BODY std::size_t session_supervisor::start_standard_services(const std::shared_ptr<base_session>& sess) {
  if (!announces_services(*sess)) return 0;
  if (saves_by_time()) hold();
  if (services_end_ == nullptr) services_end_ = std::make_shared<cancellation>();
  const auto all = standard_services();
  for (const periodic& p : all) {
    if (p.begin != nullptr) (this->*p.begin)(*sess);
    start_loop(
        service_loops_, p.secs,
        [this, sess, tick = p.tick, ended = services_end_] {
          if (sess->is_closed() || ended->is_cancelled()) return;
          try {
            (this->*tick)(*sess);
          } catch (...) {  // of a session that is left
            if (!ended->is_cancelled()) throw;
          }
        },
        p.name);
  }
  return all.size();
}

// Calls, after a run, the services that are due. Another thread that calls this meanwhile returns at once.
GRADUS_BODY void session_supervisor::serve(base_session& sess) {
  if (services_.empty()) return;
  const std::unique_lock alone(serving_, std::try_to_lock);
  if (!alone) return;
  const double now = o_.tasks.elapsed();
  for (periodic& p : services_)
    if (now - p.last >= p.secs) p.last = now, (this->*p.tick)(sess);
}

GRADUS_BODY detail::looper& session_supervisor::start_loop(std::vector<std::unique_ptr<looper_thread<>>>& among,
                                                           std::optional<double> interval_secs, std::function<void()> f,
                                                           std::string name) {
  auto made = std::make_unique<looper_thread<>>(coord_, interval_secs, std::move(f),
                                                looper_options{.name = text(name, ' ', among.size())});
  made->start();
  return *among.emplace_back(std::move(made));
}

GRADUS_BODY std::size_t session_supervisor::keep(const std::shared_ptr<base_session>& sess,
                                                 std::vector<coordinated_thread> started) {
  if (!started.empty()) kept_.push_back(sess);
  for (auto& t : started) threads_.push_back(std::move(t));
  return started.size();
}
GRADUS_BODY std::size_t session_supervisor::start_queue_runners(const std::shared_ptr<base_session>& sess) {
  return keep(sess, gradus::start_queue_runners(*sess, &coord_));
}
GRADUS_BODY std::size_t session_supervisor::start_queue_runners(const std::shared_ptr<base_session>& sess,
                                                                std::span<const queue_runner> runners) {
  std::size_t started = 0;
  for (const queue_runner& r : runners) started += keep(sess, r.create_threads(*sess, &coord_, true));
  return started;
}

GRADUS_BODY void session_supervisor::summary_computed(base_session& sess, const summary_values& summary,
                                                      std::optional<std::int64_t> step) {
  if (summary_writer_ == nullptr)
    raise(status::failed_precondition,
          "summary_computed requires a summary writer: the chief has one with a logdir, or the summary_writer it is "
          "given");
  summary_writer_->add_summary(summary, step ? *step : step_of(sess));
}

// --- a session ends

GRADUS_BODY void session_supervisor::end_services() {
  services_.clear();
  if (services_end_ != nullptr) services_end_->cancel("another session is prepared");
  service_loops_.clear();
  services_end_.reset();
}
GRADUS_BODY void session_supervisor::end_threads() {
  end_services();
  loopers_.clear();
  threads_.clear();
  kept_.clear();
}

namespace detail {
// The supervisor of whose managed session a run is at work on this thread.
inline thread_local const session_supervisor* in_run_of = nullptr;
}  // namespace detail

GRADUS_BODY void session_supervisor::stop(const stop_options& o, base_session* saved_last) {
  if (detail::in_run_of == this)
    raise(status::failed_precondition,
          "stop: this thread is in a run of the managed session, for whose end a stop waits; call request_stop() here, "
          "and stop() behind the run");
  coord_.request_stop();
  struct in_the_end {
    session_supervisor* sv;
    bool closes;
    ~in_the_end() noexcept(false) {
      if (sv->managed_.expired()) sv->release();  // the end of the block does it
      auto* const w = sv->summary_writer_.get();
      if (w == nullptr || !closes || !sv->writer_is_open_) return;
      sv->writer_is_open_ = false, sv->writes_graph_ = true;
      const bool failing = std::uncaught_exceptions() > entered;
      try {
        if (const std::string lost = w->lost_events(); !lost.empty()) warnings{}.warning(lost);
        w->add_session_log(session_log_status::stop, 0);
        w->close();
      } catch (...) {
        if (!failing) throw;
      }
    }
    int entered = std::uncaught_exceptions();
  } const last{this, o.close_summary_writer};
  const auto alive =
      coord_.join({.stop_grace_period_secs = o_.stop_grace_secs, .ignore_live_threads = o.ignore_live_threads});
  if (!alive.empty()) return;
  end_threads();
  if (saved_last == nullptr || saver_ == nullptr || o_.logdir.empty()) return;
  if (!global_step_ || step_of(*saved_last) != saved_step_) tick_checkpoint(*saved_last);
}

// --- the block of a managed session

GRADUS_BODY managed_graph_session::managed_graph_session(session_supervisor& sv, std::string_view master,
                                                         const managed_session_options& o)
    : sv_(&sv), o_(o), in_step_(sv.o_.services == service_place::in_step && sv.o_.is_chief) {
  try {
    session_ = sv.prepare(master, {.start_standard_services = o.start_standard_services && !in_step_},
                          sv.o_.save_on_stop || (o.start_standard_services && sv.saves_by_time()));
    if (sv.o_.save_on_stop && sv.is_chief()) sv.managed_ = session_;
    if (!in_step_ || !o.start_standard_services) return;
    if (sv.announces_services(*session_)) sv.services_ = sv.standard_services();
    sv.start_queue_runners(session_);  // before the services: a summary may read what they fill
    for (auto& p : sv.services_) {
      if (p.begin != nullptr) (sv.*p.begin)(*session_);
      p.last = sv.o_.tasks.elapsed(), (sv.*p.tick)(*session_);
    }
  } catch (...) {
    ended_by(std::current_exception(), true);
    finish();
    throw;  // an out_of_range of the preparation is an error too: there is no session
  }
}
GRADUS_BODY managed_graph_session::~managed_graph_session() noexcept(false) {
  if (ended_) return;
  if (std::uncaught_exceptions() == entered_) {
    finish();
    return;
  }
  failed_ = true;
  try {
    finish();
  } catch (...) {  // the error that is being raised goes on
  }
}

GRADUS_BODY run_results managed_graph_session::run(std::span<const fetch> fetches, std::span<const feed> feeds,
                                                   const run_options& o, run_metadata* meta) {
  const std::shared_ptr<cancellation> stops = sv_->coord_.stopping();
  run_options mine = o;
  std::optional<detail::either_cancellation> both;
  if (o.stop != nullptr) both.emplace(*o.stop, *stops);
  mine.stop = both ? both->get() : stops.get();
  // A thread that sees the stop may close a queue first: a call that finds it closed ends as one that is stopped.
  run_results results = [&] {
    const struct in_run {
      const session_supervisor* const outer;
      ~in_run() { detail::in_run_of = outer; }
    } here{std::exchange(detail::in_run_of, sv_)};
    try {
      return session_->run(fetches, feeds, mine, meta);
    } catch (const cancelled&) {
      if (!stops->is_cancelled()) throw;
      raise(stops->kind(), stops->reason());
    }
  }();
  if (in_step_) sv_->serve(*session_);
  return results;
}

GRADUS_BODY void managed_graph_session::ended_by(std::exception_ptr e, bool is_failure) {
  failed_ = is_failure;
  sv_->coord_.stop_on_exception([&] { std::rethrow_exception(e); });  // raises nothing if the body has called `stop`
}

GRADUS_BODY void managed_graph_session::finish() {
  if (std::exchange(ended_, true)) return;
  struct closing {
    managed_graph_session* s;
    ~closing() {
      try {
        if (s->session_ != nullptr) s->session_->leave_cluster(!s->failed_);
      } catch (...) {  // as below
      }
      try {
        if (s->session_ != nullptr) s->session_->close();  // ends the waits of threads in queues
      } catch (...) {                                      // the error that ended the block goes on
      }
      s->sv_->end_threads();
      s->sv_->managed_.reset();
      s->sv_->release();
    }
  } const last{this};
  if (failed_) sv_->managed_.reset();
  const bool saves = sv_->o_.save_on_stop && !failed_ && session_ != nullptr && sv_->is_chief();
  sv_->stop({.close_summary_writer = o_.close_summary_writer, .ignore_live_threads = failed_},
            saves ? session_.get() : nullptr);
}

}  // namespace gradus
