// This hook saves the position of an estimator's input, so that a training that is started again continues to read from
// there. It corresponds to tf.data.experimental.CheckpointInputPipelineHook(estimator, external_state_policy).
//
//   gradus::estimator est(model_fn, {.model_dir = "runs/a"});
//   while (true) {
//     est.train(train_input_fn, {.steps = 1000, .hooks = {gradus::estimator_input_hook(est)}});
//     if (enough(est.evaluate(eval_input_fn))) break;      // without the hook: this input begins anew
//   }
//
// It writes the files of checkpoint_input_pipeline_hook (session/input_checkpoint.hpp), as often as the estimator's
// run_config says, by the estimator's clock. Every call of train continues at the position in the input's checkpoint,
// where the last call ended; after a process was killed, at the position that belongs to the model's checkpoint.
//
// In a task of a synchronous cluster without backups it writes no files: there the position follows from the step, and
// the first run of every call skips the batches that the task has contributed (without the hook: of the first call of
// a process).
#pragma once
#include "../base/build.hpp"

#include <memory>
#include <utility>

#include "../train/hooks/checkpoint_input_pipeline_hook.hpp"
#include "estimator.hpp"

namespace gradus::inline GRADUS_BUILD {

class estimator_input_hook {
public:
  // The estimator must outlive the hook. Raises invalid_argument if its run_config saves no checkpoints, and for a
  // policy that is not "fail", "warn" or "ignore".
  explicit estimator_input_hook(estimator& est, external_state_policy policy = external_state_policy::fail)
      : est_(&est), options_(input_checkpoint_of(est, policy)) {
    options_.log = [est = est_](std::string_view line) { est->warn(std::string(line)); };
  }
  estimator_input_hook(estimator& est, std::string_view policy)
      : estimator_input_hook(est, parse_external_state_policy(policy)) {}

  // Raises failed_precondition outside of a call of the estimator, and for an input that depends on state outside its
  // position if the policy is fail.
  void begin();
  // Moves the input to its saved position before the first read.
  void after_create_session(hooked_session& s);
  void after_run(run_context& c, const run_values&) {
    if (saves_ != nullptr) saves_->after_run(c.session().global_step());
  }
  void end(hooked_session& s) {
    if (saves_ != nullptr) saves_->end(s.global_step());
  }

private:
  estimator* est_;
  input_checkpoint_options options_;
  std::shared_ptr<checkpoint_input_pipeline_hook<posix, task_system>>
      saves_;  // of the running call of train; null: it needs none
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "estimator_input_hook.ipp"
#endif
