// This hook ends a training by a decision about its evaluations. It corresponds to
// tf.estimator.experimental.make_early_stopping_hook and the four predefined hooks stop_if_no_increase_hook,
// stop_if_no_decrease_hook, stop_if_higher_hook, stop_if_lower_hook (1.15).
//
//   gradus::monitored_session sess(chief, {gradus::stop_if_no_decrease_hook(
//       "loss", 1000, {.eval_dir = "runs/digits/eval", .min_steps = 500, .run_every_steps = 100})});
//
// The evaluations are the scalars in the event files of eval_dir, which an evaluator writes while the training goes on.
// Only the chief reads them. When it decides, it sets the boolean variable signal_early_stopping/STOP and ends its own
// session; every other task gives the same hook with is_chief = false, which fetches that variable in each run.
//
// TensorFlow differs: here the caller gives the directory, since the hook has no estimator; run_every_steps alone
// leaves the seconds out; a metric that is NaN is worse than any number; in a run over the model of a trainer, which
// has no other tasks, the hook requests the stop and makes no variable.
#pragma once
#include "../../base/build.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "../../base/tasks.hpp"
#include "../../store/any_file_system.hpp"
#include "../../store/reader_limits.hpp"
#include "../any_hook.hpp"
#include "../second_or_step_timer.hpp"

namespace gradus::inline GRADUS_BUILD {

struct early_stopping_options {
  std::string eval_dir = {};                          // of the four predefined hooks: the evaluations' events
  std::int64_t min_steps = 0;                         // of the four: evaluations of earlier steps do not count
  std::optional<double> run_every_secs = {};          // how often the chief decides: one of the two;
  std::optional<std::int64_t> run_every_steps = {};   // neither: every 60 seconds
  bool is_chief = true;                               // decides; false: only looks at the variable
  std::function<void(const std::string&)> sink = {};  // gets the reason of a stop, as a line
  any_file_system files = {};                         // where eval_dir is
  task_system tasks = {};                             // its clock is that of run_every_secs
  reader_limits limits = {};                          // of the events: record_bytes, entries
};

class early_stopping_hook {
public:
  // Returns nothing as long as the training goes on, otherwise the reason why it ends.
  using decision = std::function<std::optional<std::string>()>;
  // Raises invalid_argument for both intervals, for one that is not above 0, and for no function.
  early_stopping_hook(decision should_stop, early_stopping_options o);

  void begin() {}
  // Finds or makes the variable. Raises failed_precondition if there is none and the graph is finalized.
  void begin(graph& g);
  void after_create_session(hooked_session& s);
  session_run_args before_run(run_context& c) const;
  void after_run(run_context& c, const run_values& v);
  // Warns if the directory had no evaluation that counts: nothing was decided then, whatever the metric did.
  void end(hooked_session&) const;

private:
  decision should_stop_;
  early_stopping_options o_;
  second_or_step_timer timer_;
  value flag_, raise_flag_;
};

// Makes a hook that stops by the decision of the function, which is called on the thread that trains. Raises the errors
// above.
early_stopping_hook make_early_stopping_hook(std::function<bool()> should_stop, early_stopping_options o = {});

// Make a hook that stops when the metric's best value is this many steps old. All four functions raise invalid_argument
// as above and without an eval_dir; in a run, the hooks raise not_found for evaluations without this metric, and the
// errors of reading the files.
early_stopping_hook stop_if_no_increase_hook(std::string metric_name, std::int64_t max_steps_without_increase,
                                             early_stopping_options o);
early_stopping_hook stop_if_no_decrease_hook(std::string metric_name, std::int64_t max_steps_without_decrease,
                                             early_stopping_options o);
// Make a hook that stops when the metric of any evaluation is above, or below, the threshold.
early_stopping_hook stop_if_higher_hook(std::string metric_name, double threshold, early_stopping_options o);
early_stopping_hook stop_if_lower_hook(std::string metric_name, double threshold, early_stopping_options o);

// Returns the scalars in a directory's event files, by step and tag; if a step has a tag twice, that of the later file.
// The result is empty for a directory that is not there. It corresponds to tf.estimator.experimental.read_eval_metrics.
// Raises resource_exhausted beyond the limits record_bytes and entries.
using eval_metrics = std::map<std::int64_t, std::map<std::string, float, std::less<>>>;
eval_metrics read_eval_metrics(const std::string& eval_dir, const any_file_system& files = {},
                               const reader_limits& limits = {});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "early_stopping_hook.ipp"
#endif
