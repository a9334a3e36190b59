// The bodies of estimator_input_hook.hpp.
#pragma once
#include "../base/body.hpp"
#include "estimator_input_hook.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY void estimator_input_hook::begin() {
  any_batches* const batches = est_->running_batches();
  if (batches == nullptr)
    raise(
        status::failed_precondition,
        "estimator_input_hook: the estimator reads no input now; give the hook to est.train(input_fn, {.hooks = ...})");
  const std::string outside = batches->external_state();
  if (options_.external_state == external_state_policy::fail && !outside.empty())
    raise(status::failed_precondition,
          text("estimator_input_hook: the input depends on state outside its position: ", outside,
               "; give external_state_policy::ignore, or warn, as the hook's second argument if a training that is "
               "started again may continue differently"));
  saves_ = std::make_shared<checkpoint_input_pipeline_hook<posix, task_system>>(options_, posix{}, est_->tasks());
  saves_->add("input", *batches);
  saves_->begin();
}

GRADUS_BODY void estimator_input_hook::after_create_session(hooked_session& s) {
  if (saves_ == nullptr) return;
  if (s.raw_session() != nullptr && s.raw_session()->counts_batches()) {
    est_->input_at_work()->skip_contributed(est_->config().restore_input);
    saves_.reset();
    return;
  }
  saves_->after_create_session();
  saves_->before_run(s.global_step());
}

}  // namespace gradus
