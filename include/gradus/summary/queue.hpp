// This is the queue between the threads that log and the thread that writes; a summary_writer with a thread has one
// (summary_writer_options::max_queue).
//
// Events are encoded by the thread that adds them, one after the other, into one of two buffers; the writing thread
// takes a whole buffer at a time and only writes. It sleeps until a buffer is large enough for a write, half of the
// queue is used, or a thread flushes, so that not every event costs a wake-up.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "../base/error.hpp"
#include "../base/tasks.hpp"
#include "../store/file.hpp"

namespace gradus::inline GRADUS_BUILD {

// What adding an event does while max_queue events are waiting.
enum class full_queue : std::uint8_t {
  reject,  // it returns false, and the lost event is counted: training never waits for a disk
  block    // it waits: nothing is lost (as in TensorFlow)
};

namespace detail {

// Every function is called with `lock` held, a lock on the mutex that the constructor is given. An error of the file in
// the thread is kept, and raised by the next call; unwritten events are kept too, and written by a later attempt.
class event_queue {
public:
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // g++ holds enumerators of a scoped enum against the namespace
  enum class goal : std::uint8_t { none, write, flush, sync };
#pragma GCC diagnostic pop
  using lock_type = std::unique_lock<std::mutex>;

  event_queue(std::mutex& mutex, std::size_t max_events, std::size_t buffer_bytes, const task_system& run = {});
  event_queue(const event_queue&) = delete;
  event_queue& operator=(const event_queue&) = delete;
  ~event_queue();

  // Starts the thread, which writes to `file` until `stop`.
  void start(appended_file& file);

  // Returns the buffer to append one event to; call `added` afterwards. Returns null if the queue is full and the
  // policy is not to wait.
  std::vector<std::byte>* room(lock_type& lock, full_queue policy);
  void added(bool flush_due);

  // Returns when all added events are in the file (flush) or on the disk (sync), or raises the error.
  void drain(lock_type& lock, goal g);
  // Returns whether no added events are waiting; new ones may have been added while `drain` waited.
  bool is_empty() const { return waiting_ == 0; }
  // Ends the thread. Events that were not drained are lost. It releases the lock meanwhile.
  void stop(lock_type& lock);

private:
  void raise_error();
  void want(goal g);
  void finish_round(lock_type& lock, goal g);

  void work();

  std::mutex& mutex_;
  const std::size_t most_, enough_bytes_;
  const task_system tasks_;
  task_condition work_, changed_;
  appended_file* file_ = nullptr;
  std::vector<std::byte> filling_, writing_;
  std::size_t filled_ = 0;   // events in filling_
  std::size_t waiting_ = 0;  // and in writing_
  goal wanted_ = goal::none;
  std::uint64_t asked_ = 0, done_ = 0, failed_ = 0;  // rounds that a thread waits for
  std::exception_ptr error_;
  bool ending_ = false;
  task_handle thread_;
};

}  // namespace detail
}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "queue.ipp"
#endif
