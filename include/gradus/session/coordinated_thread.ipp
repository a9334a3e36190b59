// The bodies of coordinated_thread.hpp.
#pragma once
#include "../base/body.hpp"
#include "coordinated_thread.hpp"

namespace gradus::inline GRADUS_BUILD {

struct coordinated_thread::state {
  state(std::string k, std::string n, any_coordinator* coord, task_system run, std::function<void()> f)
      : kind(std::move(k)), name(std::move(n)), tasks(std::move(run)), body(std::move(f)), changed(tasks) {
    if (coord != nullptr) registered = coord->register_thread(name);
  }
  void work() {
    body();
    {
      const std::lock_guard lock(mutex);
      ended = true;
      changed.notify_all();
    }
    registered.release();  // now, and not when the thread is destroyed
  }

  std::string kind, name;
  task_system tasks;
  std::function<void()> body;
  registration registered;
  std::mutex mutex;
  task_condition changed;
  bool started = false, ended = false;
  task_handle task;  // last, so that it ends before the members that it uses
};

GRADUS_BODY coordinated_thread::coordinated_thread(std::string kind, std::string name, any_coordinator* coord,
                                                   task_system run, std::function<void()> body)
    : state_(std::make_unique<state>(std::move(kind), std::move(name), coord, std::move(run), std::move(body))) {}
GRADUS_BODY coordinated_thread::coordinated_thread(coordinated_thread&&) noexcept = default;
GRADUS_BODY coordinated_thread& coordinated_thread::operator=(coordinated_thread&&) noexcept = default;
GRADUS_BODY coordinated_thread::~coordinated_thread() = default;

GRADUS_BODY const std::string& coordinated_thread::name() const { return state_->name; }

GRADUS_BODY void coordinated_thread::start() {
  state& s = *state_;
  if (s.task.joinable())
    raise(status::failed_precondition, text("the ", s.kind, " \"", s.name, "\" is started already"));
  s.task = s.tasks.start(
      text("the ", s.kind, " \"", s.name, '"'), text("start fewer threads than one ", s.kind, " each"),
      [&s] { s.work(); }, [&s] { s.registered.release(); });
  const std::lock_guard lock(s.mutex);
  s.started = true;
}

GRADUS_BODY bool coordinated_thread::is_alive() const {
  const std::lock_guard lock(state_->mutex);
  return state_->started && !state_->ended;
}

GRADUS_BODY bool coordinated_thread::join(double timeout_secs) {
  state& s = *state_;
  std::unique_lock lock(s.mutex);
  if (!s.started)
    raise(status::failed_precondition,
          text("the ", s.kind, " \"", s.name, "\" is not started; call start() before join()"));
  return s.changed.wait_for(lock, timeout_secs, [&s] { return s.ended; });
}

}  // namespace gradus
