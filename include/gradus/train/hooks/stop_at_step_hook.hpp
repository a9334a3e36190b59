// This hook stops a monitored session at a global step. It corresponds to tf.train.StopAtStepHook (1.15).
#pragma once
#include "../../base/build.hpp"

#include <cstdint>
#include <optional>

#include "../any_hook.hpp"
#include "needed_global_step.hpp"

namespace gradus::inline GRADUS_BUILD {

struct stop_at_step_options {
  std::optional<std::int64_t> num_steps = {};  // after the step at which the first session began
  std::optional<std::int64_t> last_step = {};
};

class stop_at_step_hook {
public:
  // Raises invalid_argument unless exactly one of the two is given.
  explicit stop_at_step_hook(stop_at_step_options o) : num_steps_(o.num_steps), last_step_(o.last_step) {
    if (o.num_steps.has_value() == o.last_step.has_value())
      raise(status::invalid_argument, o.num_steps
                                          ? "stop_at_step_hook: only one of num_steps and last_step can be given"
                                          : "stop_at_step_hook: one of num_steps and last_step must be given");
  }
  // The last step does not change when a session is made again.
  void after_create_session(hooked_session& s) {
    step_ = detail::needed_global_step(s, "stop_at_step_hook");
    if (!last_step_) last_step_ = s.global_step() + *num_steps_;
  }
  session_run_args before_run(run_context&) const { return {.fetches = {step_}}; }
  // A fetched step may be from before the run or after it, so the hook reads the step again when it may be the last.
  void after_run(run_context& c, const run_values& v) const {
    if (detail::step_in(v.results[0]) + 1 < *last_step_) return;
    if (c.session().global_step() >= *last_step_) c.request_stop();
  }

private:
  std::optional<std::int64_t> num_steps_, last_step_;
  value step_;
};

}  // namespace gradus
