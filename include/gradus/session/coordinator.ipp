// The bodies of coordinator.hpp.
#pragma once
#include <algorithm>

#include "../base/body.hpp"
#include "coordinator.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY registration::registration(std::shared_ptr<detail::coordination> with, std::string name)
    : shared_(std::move(with)),
      member_(std::make_shared<detail::coordination::member>(detail::coordination::member{std::move(name), true})) {
  const std::lock_guard lock(shared_->mutex);
  // Ended threads are removed, so that a long run that starts many threads does not accumulate them.
  std::erase_if(shared_->members, [](const auto& m) { return !m->alive; });
  shared_->members.push_back(member_);
}

GRADUS_BODY registration& registration::operator=(registration&& other) noexcept {
  std::swap(shared_, other.shared_), std::swap(member_, other.member_);
  return *this;
}

GRADUS_BODY void registration::release() {
  if (!member_) return;
  {
    const std::lock_guard lock(shared_->mutex);
    member_->alive = false;
    shared_->changed.notify_all();
  }
  member_.reset();
}

GRADUS_BODY any_coordinator::any_coordinator(coordinator_options options, gradus::task_system run)
    : options_(std::move(options)), tasks_(std::move(run)), state_(std::make_shared<detail::coordination>(tasks_)) {}

GRADUS_BODY void any_coordinator::request_stop(std::exception_ptr error) { stop_by(std::move(error), true); }

// Once the mutex is free, a thread that waited may destroy the coordinator, hence the copy of state_. The cancellation
// is marked together with the stop, so that a call that waits ends by the stop, whatever a thread that sees the stop
// then closes.
GRADUS_BODY void any_coordinator::stop_by(std::exception_ptr error, bool raises_after_join) {
  if (is_clean(error)) error = nullptr;
  const auto state = state_;
  std::shared_ptr<cancellation> stops;
  {
    const std::lock_guard lock(state->mutex);
    if (!state->joined || !error || !raises_after_join) {
      if (!state->stop)
        state->error = error;
      else if (error)
        state->suppressed.push_back(error);
      state->stop = true;
      error = nullptr;
      stops = state->stopping;
      stops->mark("a stop was requested", status::out_of_range);
    }
  }
  if (stops != nullptr) stops->call();
  {
    const std::lock_guard lock(state->mutex);
    state->changed.notify_all();
  }
  if (error) std::rethrow_exception(error);
}

GRADUS_BODY std::shared_ptr<cancellation> any_coordinator::stopping() const {
  const std::lock_guard lock(state_->mutex);
  return state_->stopping;
}

GRADUS_BODY bool any_coordinator::should_stop() const {
  const std::lock_guard lock(state_->mutex);
  return state_->stop;
}
GRADUS_BODY void any_coordinator::wait_for_stop() const {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->stop; });
}
GRADUS_BODY bool any_coordinator::wait_for_stop(double timeout_secs) {
  return wait_until([] { return false; }, timeout_secs);
}
GRADUS_BODY void any_coordinator::notify() {
  const std::lock_guard lock(state_->mutex);  // no thread is between its check and its wait
  state_->changed.notify_all();
}

GRADUS_BODY void any_coordinator::clear_stop() {
  const std::lock_guard lock(state_->mutex);
  if (state_->stop) state_->stopping = std::make_shared<cancellation>();
  state_->stop = state_->joined = false;
  state_->error = nullptr;
  state_->suppressed.clear();
}

GRADUS_BODY void any_coordinator::raise_requested_exception() const {
  std::unique_lock lock(state_->mutex);
  if (const auto error = state_->error) {
    lock.unlock();
    std::rethrow_exception(error);
  }
}
GRADUS_BODY std::vector<std::exception_ptr> any_coordinator::suppressed() const {
  const std::lock_guard lock(state_->mutex);
  return state_->suppressed;
}

GRADUS_BODY std::vector<std::string> any_coordinator::join(const join_options& options) {
  std::unique_lock lock(state_->mutex);
  const auto members = state_->members;
  const auto all_ended = [&] {
    return std::none_of(members.begin(), members.end(), [](const auto& m) { return m->alive; });
  };
  state_->changed.wait(lock, [&] { return state_->stop || all_ended(); });
  state_->changed.wait_for(lock, options.stop_grace_period_secs, all_ended);

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
          text("a stop was requested, and these threads still run after ", options.stop_grace_period_secs,
               " seconds: ", names, "; let them look at should_stop(), or give a longer stop_grace_period_secs"));
  }
  return live;
}
GRADUS_BODY bool any_coordinator::joined() const {
  const std::lock_guard lock(state_->mutex);
  return state_->joined;
}

GRADUS_BODY bool any_coordinator::is_clean(const std::exception_ptr& error) const {
  if (!error) return false;
  try {
    std::rethrow_exception(error);
  } catch (const gradus::error& e) {
    return std::find(options_.clean_stop.begin(), options_.clean_stop.end(), e.kind()) != options_.clean_stop.end();
  } catch (...) {
    return false;
  }
}

}  // namespace gradus
