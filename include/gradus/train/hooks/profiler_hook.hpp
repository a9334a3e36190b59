// This hook writes a profile of a run every so many steps or seconds: a timeline for a browser's tracing page
// (chrome://tracing, Perfetto), and run metadata for TensorBoard. It corresponds to tf.train.ProfilerHook (1.15).
#pragma once
#include "../../base/build.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "../../run/run_options.hpp"
#include "../../store/file.hpp"
#include "../../summary/writer.hpp"
#include "../any_hook.hpp"
#include "../second_or_step_timer.hpp"
#include "needed_global_step.hpp"

namespace gradus::inline GRADUS_BUILD {

struct profiler_options {
  std::optional<std::int64_t> save_steps = {};  // exactly one of the two
  std::optional<double> save_secs = {};
  std::string output_dir = {};  // of timeline-<step>.json
  std::shared_ptr<detail::any_summary_writer> summary_writer =
      nullptr;  // of the run metadata "step_<step>", "step_<step>_2" of a second session; null: none
  any_file_system files = posix{};
  task_system tasks = {};
};

// The first run is never traced, since kernels are chosen and memory is allocated in it.
class profiler_hook {
public:
  // Raises invalid_argument unless exactly one interval is given.
  explicit profiler_hook(profiler_options o)
      : o_(std::move(o)), timer_({.every_secs = o_.save_secs, .every_steps = o_.save_steps}, o_.tasks) {}

  // A session that is made again may begin at a lower step, and its first run is not traced either.
  void after_create_session(hooked_session& s) {
    step_ = detail::needed_global_step(s, "profiler_hook");
    next_step_.reset(), timer_.reset(), ++sessions_;
  }
  session_run_args before_run(run_context&);
  void after_run(run_context&, const run_values& v);

private:
  profiler_options o_;
  second_or_step_timer timer_;
  value step_;
  std::optional<std::int64_t> next_step_;
  std::int64_t traced_ = -1;  // the highest step of a trace
  int sessions_ = 0;
  bool due_ = false;
};

namespace detail {
// Writes the trace of a run as the JSON of Chrome's tracing page: complete events in microseconds.
std::string timeline_of(const run_metadata& meta);
}  // namespace detail

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "profiler_hook.ipp"
#endif
