// This hook reports how many steps a monitored session makes in a second, as a line and for TensorBoard. It corresponds
// to tf.train.StepCounterHook (1.15).
#pragma once
#include "../../base/build.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "../../summary/writer.hpp"
#include "../any_hook.hpp"
#include "../second_or_step_timer.hpp"
#include "needed_global_step.hpp"

namespace gradus::inline GRADUS_BUILD {

struct step_counter_options {
  std::optional<std::int64_t> every_n_steps = 100;  // exactly one of the two
  std::optional<double> every_n_secs = {};
  std::shared_ptr<detail::any_summary_writer> summary_writer = nullptr;  // of "<global step's name>/sec"; or
  std::string output_dir = {};                                  // the writer of this directory; neither: no events
  std::function<void(const std::string& line)> sink = nullptr;  // of the lines; default: none
  std::int64_t steps_per_run = 1;                               // by how much a run may raise the global step
  task_system tasks = {};
};

class step_counter_hook {
public:
  // Raises invalid_argument unless exactly one interval is given.
  explicit step_counter_hook(step_counter_options o = {});

  void begin();
  void after_create_session(hooked_session& s);
  session_run_args before_run(run_context&) const { return {.fetches = {step_}}; }
  void after_run(run_context& c, const run_values& v);
  void end(hooked_session&);

private:
  step_counter_options o_;
  second_or_step_timer timer_;
  value step_;
  std::string tag_;
  std::optional<std::int64_t> last_;
  int unchanged_ = 0;

  void say(const std::string& line) const {
    if (o_.sink) o_.sink(line);
  }
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "step_counter_hook.ipp"
#endif
