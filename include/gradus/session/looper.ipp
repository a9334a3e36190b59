// The bodies of looper.hpp.
#pragma once
#include "../base/body.hpp"
#include "looper.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY looper::looper(any_coordinator& coord, std::optional<double> interval_secs, std::function<void()> run_loop,
                           looper_options options, task_system run)
    : coord_(&coord),
      interval_(interval_secs.value_or(0)),
      run_loop_(std::move(run_loop)),
      options_(std::move(options)),
      tasks_(std::move(run)),
      changed_(tasks_) {
  if (!(interval_ >= 0))
    raise(status::invalid_argument, text("a looper's interval must be at least 0 seconds, got ", interval_));
  if (!run_loop_) raise(status::invalid_argument, "a looper needs a function to call");
  registered_ = coord.register_thread(options_.name);
}

GRADUS_BODY looper::~looper() {
  leave_ = true;
  coord_->notify();
}

GRADUS_BODY void looper::start() {
  if (task_.joinable())
    raise(status::failed_precondition, text("the looper \"", options_.name, "\" is started already"));
  task_ = tasks_.start(
      text("the looper \"", options_.name, '"'), "loop less", [this] { work(); }, [this] { registered_.release(); });
  const std::lock_guard lock(mutex_);
  started_ = true;
}

GRADUS_BODY bool looper::is_alive() const {
  const std::lock_guard lock(mutex_);
  return started_ && !ended_;
}
GRADUS_BODY bool looper::join(double timeout_secs) {
  std::unique_lock lock(mutex_);
  if (!started_)
    raise(status::failed_precondition,
          text("the looper \"", options_.name, "\" is not started; call start() before join()"));
  return changed_.wait_for(lock, timeout_secs, [this] { return ended_; });
}

GRADUS_BODY void looper::work() {
  coord_->stop_on_exception([this] { loop(); });
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  registered_.release();  // now, and not when the looper goes
}

GRADUS_BODY void looper::loop() {
  if (options_.start_loop) options_.start_loop();
  double next = tasks_.elapsed();
  while (!coord_->wait_until([this] { return leave_.load(); }, next - tasks_.elapsed()) && !leave_) {
    next += interval_;
    run_loop_();
  }
  if (options_.stop_loop) options_.stop_loop();
}

}  // namespace gradus::detail
