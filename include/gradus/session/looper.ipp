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
      tasks_(std::move(run)) {
  if (!(interval_ >= 0))
    raise(status::invalid_argument, text("a looper's interval must be at least 0 seconds, got ", interval_));
  if (!run_loop_) raise(status::invalid_argument, "a looper needs a function to call");
  thread_.emplace("looper", options_.name, &coord, tasks_, [this] { coord_->stop_on_exception([this] { loop(); }); });
}

GRADUS_BODY looper::~looper() {
  leave_ = true;
  if (thread_ && thread_->is_alive()) coord_->notify();  // else the coordinator may be gone
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
