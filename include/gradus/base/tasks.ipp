// The bodies of tasks.hpp.
#pragma once
#include "body.hpp"
#include "tasks.hpp"
#if defined(__STDCPP_THREADS__)
#include <cmath>
#if defined(__unix__) || defined(__APPLE__)
#include <time.h>

#include <cerrno>
#else
#include <chrono>
#include <thread>
#endif

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// The system's clocks overflow for longer waits, so a longer wait is made of several.
inline constexpr double longest_wait_secs = 3600;

GRADUS_BODY void sleep_on_the_system(double secs) {
#if defined(__unix__) || defined(__APPLE__)
  const double whole = std::floor(secs);
  timespec left{static_cast<time_t>(whole), static_cast<long>((secs - whole) * 1e9)};
  while (::nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
#else
  std::this_thread::sleep_for(std::chrono::duration<double>(secs));
#endif
}
GRADUS_BODY void wait_on_the_system(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, double secs) {
  changed.wait_for(lock, std::chrono::duration<double>(std::fmin(secs, longest_wait_secs)));
}
}  // namespace detail

GRADUS_BODY std::unique_ptr<task_driver::running> task_driver::start_named(std::string_view /*caller*/,
                                                                           std::function<void()> body) {
  return start(std::move(body));
}

GRADUS_BODY task_handle::task_handle(std::unique_ptr<task_driver::running> other) : other_(std::move(other)) {}
GRADUS_BODY task_handle::~task_handle() {
  if (joinable()) join();
}
GRADUS_BODY task_handle& task_handle::operator=(task_handle&& other) {
  if (joinable()) join();
  thread_ = std::move(other.thread_);
  other_ = std::move(other.other_);
  return *this;
}
GRADUS_BODY void task_handle::join() {
  if (other_ != nullptr) {
    other_->join();
    other_.reset();
  } else {
    thread_.join();
  }
}

GRADUS_BODY double task_system::now() const { return driver_ != nullptr ? driver_->now() : system_clock{}.now(); }
GRADUS_BODY double task_system::elapsed() const {
  return driver_ != nullptr ? driver_->elapsed() : system_clock{}.elapsed();
}
GRADUS_BODY void task_system::sleep(double secs) const {
  if (!(secs > 0)) return;
  if (driver_ != nullptr) return driver_->sleep(secs);
  const double until = elapsed() + secs;
  for (double left = secs; left > 0; left = until - elapsed())
    detail::sleep_on_the_system(std::fmin(left, detail::longest_wait_secs));
}
GRADUS_BODY task_handle task_system::start(std::string_view caller, std::string_view remedy, std::function<void()> body,
                                           const std::function<void()>& otherwise) const {
  if (driver_ == nullptr) return task_handle(start_thread(caller, remedy, std::move(body), otherwise));
#if defined(__cpp_exceptions)
  try {
    return task_handle(driver_->start_named(caller, std::move(body)));
  } catch (const std::system_error& e) {
    otherwise();
    detail::raise_no_thread(caller, remedy, e);
  }
#else
  return task_handle(driver_->start_named(caller, std::move(body)));
#endif
}

GRADUS_BODY task_condition::task_condition(const task_system& of)
    : tasks_(of), meeting_(of.driver() != nullptr ? of.driver()->make_meeting() : nullptr) {}
GRADUS_BODY void task_condition::wait_for(std::unique_lock<std::mutex>& lock, double secs) {
  if (meeting_ != nullptr) return meeting_->wait(lock, secs);
  if (secs == forever) return here_.wait(lock);
  if (secs > 0) detail::wait_on_the_system(here_, lock, secs);
}

}  // namespace gradus
#endif
