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
  saves_ = std::make_shared<checkpoint_input_pipeline_hook<>>(options_);
  saves_->add("input", *batches);
  saves_->begin();
}

}  // namespace gradus
