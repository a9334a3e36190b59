// This hook writes summaries of a monitored session for TensorBoard. It corresponds to tf.train.SummarySaverHook
// (1.15).
#pragma once
#include "../../base/build.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../../session/scaffold.hpp"
#include "../../summary/writer.hpp"
#include "../any_hook.hpp"
#include "../graph_summary.hpp"
#include "../second_or_step_timer.hpp"
#include "needed_global_step.hpp"

namespace gradus::inline GRADUS_BUILD {

struct summary_saver_options {
  std::optional<std::int64_t> save_steps = {};  // exactly one of the two
  std::optional<double> save_secs = {};
  std::shared_ptr<detail::any_summary_writer> summary_writer = nullptr;  // or
  std::string output_dir = {};                                           // the writer of this directory
  scaffold* parts = nullptr;      // all that the graph shows (g.summary_scalar, ...); or
  graph_summary summary_op = {};  // this
  task_system tasks = {};
};

class summary_saver_hook {
public:
  // Raises invalid_argument unless exactly one interval, and one of scaffold and summary_op, is given.
  explicit summary_saver_hook(summary_saver_options o);

  void begin();
  void after_create_session(hooked_session& s);
  session_run_args before_run(run_context&);
  void after_run(run_context&, const run_values& v);
  void end(hooked_session&);

private:
  summary_saver_options o_;
  second_or_step_timer timer_;
  value step_;
  graph_summary shown_;
  std::optional<std::int64_t> next_step_;
  bool due_ = false;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "summary_saver_hook.ipp"
#endif
