// Delays the first run until the global step is so far: workers start one after another.
// tf.train.GlobalStepWaiterHook (1.15).
#pragma once
#include <cstdint>
#include <utility>

#include "../any_hook.hpp"
#include "needed_global_step.hpp"

namespace gradus::inline GRADUS_BUILD {

class global_step_waiter_hook {
public:
  static constexpr double poll_secs = 0.5;
  // 0 and below: it does not wait.
  explicit global_step_waiter_hook(std::int64_t wait_until_step, task_system t = {})
      : until_(wait_until_step), tasks_(std::move(t)) {}

  void after_create_session(hooked_session& s) const {
    if (until_ > 0) detail::needed_global_step(s, "global_step_waiter_hook");
  }
  void before_run(run_context& c) {
    while (!started_ && until_ > 0 && c.session().global_step() < until_) tasks_.sleep(poll_secs);
    started_ = true;
  }

private:
  std::int64_t until_;
  task_system tasks_;
  bool started_ = false;
};

}  // namespace gradus
