// The bodies of monitored_session.hpp.
#pragma once
#include <utility>

#include "../base/body.hpp"
#include "../base/pause.hpp"
#include "../session/global_step.hpp"
#include "monitored_session.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// This is the kind of the error that is being handled.
enum class run_error { preemption, clean, other };
GRADUS_BODY run_error kind_of_current() {
  try {
    throw;
  } catch (const cluster_is_lost&) {  // no new session of this task can go on
    return run_error::other;
  } catch (const aborted&) {
    return run_error::preemption;
  } catch (const unavailable&) {
    return run_error::preemption;
  } catch (const out_of_range&) {
    return run_error::clean;
  } catch (const stop_iteration&) {
    return run_error::clean;
  } catch (...) {
    return run_error::other;
  }
}
GRADUS_BODY std::int64_t step_of(base_session& s) {
  const value step = get_global_step(s.of());
  return step ? global_step(s, step) : 0;
}
GRADUS_BODY const_tensor_view variable_of(base_session& s, std::string_view name) { return s.variable(name); }
}  // namespace detail

GRADUS_BODY run_results step_context::run_with_hooks(std::span<const fetch> fetches,
                                                     std::span<const feed> feeds) const {
  return monitored_->run_once(fetches, feeds, {}, nullptr);
}
GRADUS_BODY run_result step_context::run_with_hooks(const fetch& f, std::initializer_list<feed> feeds) const {
  return run_result(run_with_hooks(std::span(&f, 1), std::span(feeds.begin(), feeds.size())));
}
GRADUS_BODY void step_context::request_stop() const { throw stop_iteration(); }

GRADUS_BODY monitored_session::monitored_session(session_creator& creator, std::vector<any_hook> hooks,
                                                 monitored_session_options o)
    : creator_(&creator), hooks_(std::move(hooks)), o_(std::move(o)) {
  locks_.add(std::exchange(o_.holds, nullptr));
  for (const any_hook& h : hooks_) h.lock_directories(locks_);
  const bool was_open = creator.of() != nullptr && !creator.of()->is_finalized();
  for (const any_hook& h : hooks_) h.begin(creator.of());
  ready();
  graph_ = &session_->of();
  reopens_graph_ = was_open;
}

GRADUS_BODY monitored_session::~monitored_session() noexcept(false) {
  if (closed_) return;
  if (std::uncaught_exceptions() == entered_)
    close_internal(true);
  else
    close_after_error(clean_error_);
}

GRADUS_BODY void monitored_session::open() {
  session_ = creator_->create_session();
  coord_ = std::make_unique<any_coordinator>(coordinator_options{.clean_stop = {}}, o_.tasks);
  threads_ = start_queue_runners(*session_, coord_.get());
  calls_.bind(*session_, &detail::step_of, &detail::variable_of, coord_.get());
  for (const any_hook& h : hooks_) h.after_create_session(calls_.session());
}

// Makes a session if there is none, or raises the reason why it cannot.
GRADUS_BODY void monitored_session::ready() {
  if (closed_) raise(status::failed_precondition, "Session is already closed; make another monitored session");
  for (int tries = 0; session_ == nullptr; ++tries) {
    try {
      open();
    } catch (...) {
      const bool again = o_.recovers && detail::kind_of_current() == detail::run_error::preemption;
      leave_session();
      if (!again || (tries > 0 && !detail::pause(o_.tasks, o_.recovery_wait_secs, o_.stop.get()))) throw;
    }
  }
}

GRADUS_BODY void monitored_session::leave_session() {
  if (coord_ != nullptr) {
    coord_->request_stop();
    try {
      coord_->join({.stop_grace_period_secs = o_.stop_grace_period_secs, .ignore_live_threads = true});
    } catch (...) {  // the session is lost, and with it the work of its threads
    }
  }
  try {
    if (session_ != nullptr) session_->leave_cluster(false), session_->close();
  } catch (...) {
  }
  threads_.clear();
  coord_.reset(), session_.reset();
}

// Is called in an exception handler. Returns true if the run is to be made again, on a new session. The error that the
// coordinator holds may be the cause.
GRADUS_BODY bool monitored_session::recover_from_current() {
  const bool was_stopped = std::exchange(was_stopped_, false);
  auto kind = detail::kind_of_current();
  if (kind != detail::run_error::preemption && coord_ != nullptr) {
    try {
      coord_->raise_requested_exception();
    } catch (...) {
      if (detail::kind_of_current() == detail::run_error::preemption) {
        if (!o_.recovers) throw;
        kind = detail::run_error::preemption;
      }
    }
  }
  clean_error_ = kind == detail::run_error::clean;
  if (kind != detail::run_error::preemption || !o_.recovers || was_stopped) return false;
  leave_session();
  return true;
}

GRADUS_BODY run_results monitored_session::run(std::span<const fetch> fetches, std::span<const feed> feeds,
                                               const run_options& o, run_metadata* meta) {
  for (;;) {
    ready();
    try {
      return run_once(fetches, feeds, o, meta);
    } catch (...) {
      was_stopped_ = o.stop != nullptr && o.stop->is_cancelled();  // whatever kind of error it gives
      if (in_step_ || !recover_from_current()) throw;
    }
  }
}
GRADUS_BODY run_result monitored_session::run(const fetch& f, std::initializer_list<feed> feeds, const run_options& o,
                                              run_metadata* meta) {
  return run_result(run(std::span(&f, 1), std::span(feeds.begin(), feeds.size()), o, meta));
}

GRADUS_BODY run_results monitored_session::run_once(std::span<const fetch> fetches, std::span<const feed> feeds,
                                                    const run_options& o, run_metadata* meta) {
  if (stop_) raise(status::failed_precondition, "Run called even after should_stop requested.");
  clean_error_ = false;  // an end of the input that the program has caught is not what ends its block
  // These are kept from run to run, so that their memory is used again.
  session_run_args &original = original_, &all = all_;
  original.fetches.assign(fetches.begin(), fetches.end()), original.feeds.assign(feeds.begin(), feeds.end());
  original.options = o;
  all = original;
  const auto id_of = [&](const feed& f) { return f.g != nullptr ? f.id : graph_->find(f.name); };
  calls_.clear_stop(), calls_.asked(&original);
  std::vector<std::size_t>& ends = ends_;
  ends.clear();
  for (const any_hook& h : hooks_) {
    const session_run_args mine = h.before_run(calls_.context());
    for (const feed& f : mine.feeds)
      for (std::size_t i = 0; i < all.feeds.size(); ++i)
        if (id_of(f) >= 0 && id_of(all.feeds[i]) == id_of(f))  // the session names one that is not there
          raise(
              status::failed_precondition,
              text("Same tensor is fed by ", i < feeds.size() ? "a SessionRunHook and the caller of run" : "two hooks",
                   ": \"", graph_->name_of(id_of(f)), "\"; feed it in one place"));
    all.fetches.insert(all.fetches.end(), mine.fetches.begin(), mine.fetches.end());
    all.feeds.insert(all.feeds.end(), mine.feeds.begin(), mine.feeds.end());
    all.options = merged_options(all.options, mine.options);
    ends.push_back(all.fetches.size());
  }
  const std::shared_ptr<cancellation> stops = coord_->stopping();
  std::optional<detail::either_cancellation> both;
  if (all.options.stop != nullptr) both.emplace(*all.options.stop, *stops);
  all.options.stop = both ? both->get() : stops.get();
  run_metadata here;
  run_metadata& shown = meta != nullptr ? *meta : here;
  run_results results = session_->run(all.fetches, all.feeds, all.options, &shown);
  std::size_t first = fetches.size();
  for (std::size_t i = 0; i < hooks_.size(); first = ends[i++]) {
    run_values& values = calls_.values();
    values.results = std::span<const const_tensor_view>(results).subspan(first, ends[i] - first);
    values.options = &all.options, values.metadata = &shown;
    hooks_[i].after_run(calls_.context(), values);
  }
  stop_ = stop_ || calls_.context().stop_requested();
  return {std::move(results), fetches.size()};
}

GRADUS_BODY bool monitored_session::should_stop() {
  if (closed_ || session_ == nullptr || stop_) return true;
  try {
    coord_->raise_requested_exception();
  } catch (...) {
    if (!o_.recovers) throw;
    if (detail::kind_of_current() != detail::run_error::preemption) return true;
    if (in_step_) throw;  // a step holds the session: run_step_fn makes another one, and the step again
    leave_session();
    ready();
    return false;
  }
  return coord_->should_stop();
}

GRADUS_BODY void monitored_session::close() { close_internal(true); }

GRADUS_BODY void monitored_session::close_internal(bool tells_hooks) {
  if (closed_) raise(status::failed_precondition, "Session is already closed.");
  closed_ = true;
  std::exception_ptr first;
  const auto attempt = [&](auto&& part) {
    try {
      part();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  };
  if (session_ != nullptr) {
    attempt([&] { coord_->raise_requested_exception(); });  // the error of a thread came before one of a hook's end
    if (tells_hooks)
      attempt([&] {
        for (const any_hook& h : hooks_) h.end(calls_.session());
      });
    attempt([&] {
      coord_->request_stop();
      coord_->join({.stop_grace_period_secs = o_.stop_grace_period_secs, .ignore_live_threads = true});
    });
    attempt([&] { session_->leave_cluster(tells_hooks); });
    attempt([&] { session_->close(); });
    threads_.clear();
    coord_.reset(), session_.reset();
  }
  locks_.release();
  if (reopens_graph_) graph_->unsafe_unfinalize();
  if (first) std::rethrow_exception(first);
}

GRADUS_BODY void monitored_session::close_after_error(bool tells_hooks) noexcept {
  try {
    close_internal(tells_hooks);
  } catch (...) {  // the first error goes on
  }
}

}  // namespace gradus
