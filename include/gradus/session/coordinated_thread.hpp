// A coordinated_thread is a thread that a coordinator waits for and that is started later; TensorFlow's loopers and
// queue runners are made of such threads.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "../base/tasks.hpp"
#include "coordinator.hpp"

namespace gradus::inline GRADUS_BUILD {

// It is registered from construction on, so start it before the join. Destroying one that was started waits for its
// end.
class coordinated_thread {
public:
  // Errors name it by `kind` and `name`: the looper "save". `coord` null: it has no coordinator.
  coordinated_thread(std::string kind, std::string name, any_coordinator* coord, task_system run,
                     std::function<void()> body);
  coordinated_thread(coordinated_thread&&) noexcept;
  coordinated_thread& operator=(coordinated_thread&&) noexcept;
  ~coordinated_thread();

  const std::string& name() const;
  // Error: failed_precondition if it was started before; resource_exhausted if no thread can be created.
  void start();
  // True if it was started and has not ended.
  bool is_alive() const;
  // Waits for its end, at most so many seconds (below 0: none), and returns whether it has ended. It does not request a
  // stop. Error: failed_precondition if it was not started.
  bool join(double timeout_secs = task_condition::forever);

private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "coordinated_thread.ipp"
#endif
