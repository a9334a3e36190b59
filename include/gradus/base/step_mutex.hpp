// This is the lock around a training step, for a thread that makes steps without a pause and others that want to read
// in between. A reader is let in behind the current step: a plain mutex would let the same thread have it again and
// again.
#pragma once
#include <atomic>
#include <mutex>
#include <thread>

#include "build.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// The thread that has it may lock it again, either way.
class step_mutex {
public:
  // For a step.
  class stepping {
  public:
    explicit stepping(step_mutex& m) : m_(m) {
      if (m.guests_.load(std::memory_order_relaxed) != 0 && !m.is_mine()) const std::lock_guard wait(m.gate_);
      m.take();
    }
    stepping(const stepping&) = delete;
    ~stepping() { m_.leave(); }

  private:
    step_mutex& m_;
  };
  // Readers use this: a save, a summary.
  class visiting {
  public:
    explicit visiting(step_mutex& m) : m_(m) {
      if (m.is_mine()) {
        m.take();
        return;
      }
      const std::lock_guard first(m.gate_);
      m.guests_.fetch_add(1, std::memory_order_relaxed);
      m.take();
      m.guests_.fetch_sub(1, std::memory_order_relaxed);
    }
    visiting(const visiting&) = delete;
    ~visiting() { m_.leave(); }

  private:
    step_mutex& m_;
  };

private:
  std::mutex gate_;  // a guest has it until it is in
  std::atomic<int> guests_{0};
  std::recursive_mutex mutex_;
  std::atomic<std::thread::id> owner_{};
  int depth_ = 0;

  bool is_mine() const { return owner_.load(std::memory_order_relaxed) == std::this_thread::get_id(); }
  void take() {
    mutex_.lock();
    if (depth_++ == 0) owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  }
  void leave() {
    if (--depth_ == 0) owner_.store({}, std::memory_order_relaxed);
    mutex_.unlock();
  }
};

}  // namespace gradus::detail
