// The bodies of queue.hpp.
#pragma once
#include "../base/body.hpp"
#include "queue.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY event_queue::event_queue(std::mutex& mutex, std::size_t max_events, std::size_t buffer_bytes,
                                     const task_system& run)
    : mutex_(mutex), most_(max_events), enough_bytes_(buffer_bytes), tasks_(run), work_(run), changed_(run) {}

GRADUS_BODY event_queue::~event_queue() {
  lock_type lock(mutex_);
  if (!thread_.joinable()) return;
  error_ = nullptr;
  finish_round(lock, goal::flush);  // writes what it can
  stop(lock);
}

GRADUS_BODY void event_queue::start(appended_file& file) {
  file_ = &file;
  ending_ = false, error_ = nullptr, wanted_ = goal::none;
  for (auto* buffer : {&filling_, &writing_}) buffer->reserve(enough_bytes_ + 4096);
  thread_ = tasks_.start("the summary writer", "say max_queue = 0", [this] { work(); });
}

GRADUS_BODY std::vector<std::byte>* event_queue::room(lock_type& lock, full_queue policy) {
  raise_error();
  if (waiting_ >= most_ && policy == full_queue::reject) return nullptr;
  if (waiting_ >= most_) {
    want(goal::write);
    changed_.wait(lock, [&] { return waiting_ < most_ || error_ || !thread_.joinable() || ending_; });
    raise_error();
  }
  return &filling_;
}

GRADUS_BODY void event_queue::added(bool flush_due) {
  ++filled_, ++waiting_;
  if (flush_due)
    want(goal::flush);
  else if (filling_.size() >= enough_bytes_ || 2 * waiting_ >= most_)
    want(goal::write);
}

GRADUS_BODY void event_queue::drain(lock_type& lock, goal g) {
  error_ = nullptr;  // this is a new attempt, which reports any error that remains
  finish_round(lock, g);
  raise_error();
}

GRADUS_BODY void event_queue::stop(lock_type& lock) {
  ending_ = true;
  work_.notify_one();
  changed_.notify_all();
  task_handle ending = std::move(thread_);
  lock.unlock();
  ending.join();
  lock.lock();
  filling_.clear(), writing_.clear();
  waiting_ = filled_ = 0;
}

GRADUS_BODY void event_queue::raise_error() {
  if (!error_) return;
  work_.notify_one();  // and try again
  std::rethrow_exception(std::exchange(error_, nullptr));
}

GRADUS_BODY void event_queue::want(goal g) {
  if (wanted_ == goal::none) work_.notify_one();  // otherwise it has been notified, or is running and will check
  wanted_ = std::max(wanted_, g);
}

GRADUS_BODY void event_queue::finish_round(lock_type& lock, goal g) {
  want(g);
  work_.notify_one();
  const std::uint64_t round = ++asked_;
  while (done_ < round && !(error_ && failed_ >= round)) {
    if (error_) error_ = nullptr, work_.notify_one();  // from an attempt that began before this one
    changed_.wait(lock);
  }
}

GRADUS_BODY void event_queue::work() {
  lock_type lock(mutex_);
  for (;;) {
    work_.wait(lock, [&] { return ending_ || (wanted_ != goal::none && !error_); });
    if (ending_) return;
    const goal g = std::exchange(wanted_, goal::none);
    const std::uint64_t round = asked_;
    std::swap(filling_, writing_);
    const std::size_t events = std::exchange(filled_, 0);
    lock.unlock();
    bool taken = false;
    std::exception_ptr error;
    try {
      if (!writing_.empty()) {
        file_->flush();  // so that an error from here on comes after the file has taken all events
        taken = true;
        file_->write(writing_);
      }
      if (g == goal::flush) file_->flush();
      if (g == goal::sync) file_->sync();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !taken) {  // back to the front
      writing_.insert(writing_.end(), filling_.begin(), filling_.end());
      std::swap(filling_, writing_);
      filled_ += events;
    } else {
      waiting_ -= events;
    }
    writing_.clear();
    if (error)
      error_ = error, failed_ = round, wanted_ = std::max(wanted_, g);
    else
      done_ = round;
    changed_.notify_all();
  }
}

}  // namespace gradus::detail
