// The queue between who logs and the thread that writes: what summary_writer has inside if it is asked for a thread
// (summary_writer_options::max_queue).
//
// Events are encoded by whoever adds them, one behind the other, into one of two buffers; the thread takes a buffer
// full of them at a time and only writes. It sleeps until a buffer is worth a write, half of the queue is taken, or
// someone flushes: an event does not cost a wake-up.
#pragma once
#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "../base/error.hpp"
#include "../base/thread.hpp"
#include "../store/file.hpp"

namespace gradus::inline GRADUS_BUILD {

// What adding does while max_queue events wait already.
enum class full_queue : std::uint8_t {
  reject,  // it returns false, and the loss is counted: training never waits for a disk
  block    // it waits: nothing is lost (TensorFlow's)
};

namespace detail {

// Every function is called with `lock` held, which is on the mutex given here. What the file raised in the thread is
// kept, and raised by the next call; what could not be written is kept too, and written by a later try.
template <file_system FileSystem>
class event_queue {
public:
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // g++ holds enumerators of a scoped enum against the namespace
  enum class goal : std::uint8_t { none, write, flush, sync };
#pragma GCC diagnostic pop
  using lock_type = std::unique_lock<std::mutex>;

  event_queue(std::mutex& mutex, std::size_t max_events, std::size_t buffer_bytes)
      : mutex_(mutex), most_(max_events), enough_bytes_(buffer_bytes) {}
  event_queue(const event_queue&) = delete;
  event_queue& operator=(const event_queue&) = delete;
  ~event_queue() {
    lock_type lock(mutex_);
    if (!thread_.joinable()) return;
    error_ = nullptr;
    finish_round(lock, goal::flush);  // what it can
    stop(lock);
  }

  // Begins the thread, which writes to `file` until `stop`.
  void start(append_file<FileSystem>& file) {
    file_ = &file;
    ending_ = false, error_ = nullptr, wanted_ = goal::none;
    for (auto* buffer : {&filling_, &writing_}) buffer->reserve(enough_bytes_ + 4096);
    thread_ = start_thread<std::thread>("the summary writer", "say max_queue = 0", [this] { work(); });
  }

  // Where to append one event; `added` afterwards. Null if the queue is full, and is not to be waited for.
  std::vector<std::byte>* room(lock_type& lock, full_queue policy) {
    raise_error();
    if (waiting_ >= most_ && policy == full_queue::reject) return nullptr;
    if (waiting_ >= most_) {
      want(goal::write);
      changed_.wait(lock, [&] { return waiting_ < most_ || error_ || !thread_.joinable() || ending_; });
      raise_error();
    }
    return &filling_;
  }
  void added(bool flush_due) {
    ++filled_, ++waiting_;
    if (flush_due)
      want(goal::flush);
    else if (filling_.size() >= enough_bytes_ || 2 * waiting_ >= most_)
      want(goal::write);
  }

  // All that was added is in the file (flush) or on the disk (sync) when this returns; else it raises why not.
  void drain(lock_type& lock, goal g) {
    error_ = nullptr;  // this is a new try, which tells what is still wrong
    finish_round(lock, g);
    raise_error();
  }
  // Of events that were added; others may have come while `drain` waited.
  bool is_empty() const { return waiting_ == 0; }
  // Ends the thread. What was not drained is lost. It lets go of the lock meanwhile.
  void stop(lock_type& lock) {
    ending_ = true;
    work_.notify_one();
    changed_.notify_all();
    std::thread ending = std::move(thread_);
    lock.unlock();
    ending.join();
    lock.lock();
    filling_.clear(), writing_.clear();
    waiting_ = filled_ = 0;
  }

private:
  void raise_error() {
    if (!error_) return;
    work_.notify_one();  // and try again
    std::rethrow_exception(std::exchange(error_, nullptr));
  }
  void want(goal g) {
    if (wanted_ == goal::none) work_.notify_one();  // else it was told, or is at work and will look
    wanted_ = std::max(wanted_, g);
  }
  void finish_round(lock_type& lock, goal g) {
    want(g);
    work_.notify_one();
    const std::uint64_t round = ++asked_;
    while (done_ < round && !(error_ && failed_ >= round)) {
      if (error_) error_ = nullptr, work_.notify_one();  // of a try that began before this one
      changed_.wait(lock);
    }
  }

  void work() {
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
          file_->flush();  // so that an error from here on is one after the file took all
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

  std::mutex& mutex_;
  const std::size_t most_, enough_bytes_;
  std::condition_variable work_, changed_;
  append_file<FileSystem>* file_ = nullptr;
  std::vector<std::byte> filling_, writing_;
  std::size_t filled_ = 0;   // events in filling_
  std::size_t waiting_ = 0;  // and in writing_
  goal wanted_ = goal::none;
  std::uint64_t asked_ = 0, done_ = 0, failed_ = 0;  // rounds that somebody waits for
  std::exception_ptr error_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace detail
}  // namespace gradus
