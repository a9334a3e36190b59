// This header has the lock around a training step, for one thread that makes steps without a pause and others that want
// to read in between. A reader gets the lock after the current step; with a plain mutex the stepping thread could take
// it again and again.
#pragma once
#include "build.hpp"

#include <atomic>
#include <mutex>
#include <thread>

namespace gradus::inline GRADUS_BUILD::detail {

// The thread that holds the lock may lock it again, as a step or as a reader.
class step_mutex {
public:
  // This is the lock for a step.
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
  // This is the lock for readers, such as a save or a summary.
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
  std::mutex gate_;  // a reader holds it until it has the lock
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
