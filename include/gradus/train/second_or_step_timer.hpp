// The timer decides when a hook acts: every so many seconds or every so many steps. It corresponds to
// tf.train.SecondOrStepTimer (1.15).
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <optional>

#include "../base/error.hpp"
#include "../base/tasks.hpp"

namespace gradus::inline GRADUS_BUILD {

struct timer_options {
  std::optional<double> every_secs = {};
  std::optional<std::int64_t> every_steps = {};
};

class second_or_step_timer {
public:
  // Raises invalid_argument for both intervals, for none, and for one that is not above 0.
  explicit second_or_step_timer(timer_options o, task_system t = {}) : o_(o), tasks_(std::move(t)) {
    if (o.every_secs.has_value() == o.every_steps.has_value())
      raise(status::invalid_argument, o.every_secs
                                          ? "exactly one of every_secs and every_steps must be provided: both are"
                                          : "exactly one of every_secs and every_steps must be provided: none is");
    if ((o.every_secs && !(*o.every_secs > 0)) || (o.every_steps && *o.every_steps <= 0))
      raise(status::invalid_argument, "every_secs and every_steps must be above 0");
  }

  void reset() { last_step_.reset(), last_secs_.reset(); }
  // Returns true if the hook acts at this step: at the first call; then once the interval has passed since the last
  // update.
  bool should_trigger_for_step(std::int64_t step) const {
    if (!last_step_) return true;
    if (*last_step_ == step) return false;
    if (o_.every_secs) return tasks_.elapsed() >= *last_secs_ + *o_.every_secs;
    return step >= *last_step_ + *o_.every_steps;
  }
  struct elapsed {
    std::optional<double> secs;
    std::optional<std::int64_t> steps;
  };
  // Records that the hook has acted at this step; returns the time and the steps since the last one, or nothing the
  // first time.
  elapsed update_last_triggered_step(std::int64_t step) {
    const double now = tasks_.elapsed();
    elapsed e;
    if (last_step_) e = {now - *last_secs_, step - *last_step_};
    last_step_ = step, last_secs_ = now;
    return e;
  }
  std::optional<std::int64_t> last_triggered_step() const { return last_step_; }

private:
  timer_options o_;
  task_system tasks_;
  std::optional<std::int64_t> last_step_;
  std::optional<double> last_secs_;
};

}  // namespace gradus
