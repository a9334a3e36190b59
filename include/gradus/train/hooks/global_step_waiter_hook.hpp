// This hook delays the first run until the global step reaches a number, so that workers start one after another. A
// stop of the session's coordinator ends the wait with out_of_range, as it ends a run that waits in a queue; closing
// the session ends it with cancelled. The hook corresponds to tf.train.GlobalStepWaiterHook (1.15).
#pragma once
#include "../../base/build.hpp"

#include <cstdint>
#include <memory>
#include <utility>

#include "../../base/pause.hpp"
#include "../../session/coordinator.hpp"
#include "../any_hook.hpp"
#include "needed_global_step.hpp"

namespace gradus::inline GRADUS_BUILD {

class global_step_waiter_hook {
public:
  static constexpr double poll_secs = 0.5;
  // If `wait_until_step` is 0 or below, the hook does not wait.
  explicit global_step_waiter_hook(std::int64_t wait_until_step, task_system t = {})
      : until_(wait_until_step), tasks_(std::move(t)) {}

  void after_create_session(hooked_session& s) const {
    if (until_ > 0) detail::needed_global_step(s, "global_step_waiter_hook");
  }
  void before_run(run_context& c) {
    while (!started_ && until_ > 0 && c.session().global_step() < until_) pause(c.session());
    started_ = true;
  }

private:
  std::int64_t until_;
  task_system tasks_;
  bool started_ = false;

  void pause(hooked_session& s) const {
    const std::shared_ptr<cancellation> stops = s.coord() != nullptr ? s.coord()->stopping() : nullptr;
    cancellation* const closing = s.raw_session() != nullptr ? &s.raw_session()->closing() : nullptr;
    if (detail::pause(tasks_, poll_secs, stops.get(), closing)) return;
    const cancellation& by = closing != nullptr && closing->is_cancelled() ? *closing : *stops;
    raise(by.kind(), text("global_step_waiter_hook: waiting for global step ", until_, " ended: ", by.reason()));
  }
};

}  // namespace gradus
