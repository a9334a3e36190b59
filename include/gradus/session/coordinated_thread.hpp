// A coordinated_thread is a thread that a coordinator waits for and that is started later; TensorFlow's loopers and
// queue runners are made of such threads.
#pragma once
#include "../base/build.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "../base/tasks.hpp"
#include "coordinator.hpp"

namespace gradus::inline GRADUS_BUILD {

// A coordinated_thread is registered with its coordinator from construction on, so start it before the join. The
// destructor of a started one waits for its end.
class coordinated_thread {
public:
  // Error messages name the thread by `kind` and `name`, such as: the looper "save". `coord` is null for a thread
  // without a coordinator.
  coordinated_thread(std::string kind, std::string name, any_coordinator* coord, task_system run,
                     std::function<void()> body);
  coordinated_thread(coordinated_thread&&) noexcept;
  coordinated_thread& operator=(coordinated_thread&&) noexcept;
  ~coordinated_thread();

  const std::string& name() const;
  // Raises failed_precondition if it was started before; resource_exhausted if no thread can be created.
  void start();
  // Returns true if it was started and has not ended.
  bool is_alive() const;
  // Waits at most `timeout_secs` for the thread's end (it does not wait if that is below 0) and returns whether the
  // thread has ended. It does not request a stop. Raises failed_precondition if the thread was not started.
  bool join(double timeout_secs = task_condition::forever);

private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "coordinated_thread.ipp"
#endif
