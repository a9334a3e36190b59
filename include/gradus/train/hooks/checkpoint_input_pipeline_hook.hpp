// This hook saves the positions of a monitored session's inputs, beside the model and at the intervals of the run's
// configuration. It corresponds to tf.data.experimental.CheckpointInputPipelineHook(estimator, external_state_policy).
// session/input_checkpoint.hpp describes its work.
//
//   auto input = gradus::idx("digits").shuffle(60000).repeat().batch(128);
//   gradus::checkpoint_input_pipeline_hook saves(gradus::input_checkpoint_of(config));
//   saves.add("train", input);
//   gradus::monitored_session sess(chief, {std::ref(saves), gradus::feed_fn_hook([&] { return next_of(input); })});
//
// List it before the hooks that read the inputs, because it restores them in the first before_run of each session; so
// no input may be read before the first run, and a program's loop leaves the reading to a hook, as above.
#pragma once
#include "../../base/build.hpp"

#include <string_view>
#include <type_traits>

#include "../../session/input_checkpoint.hpp"
#include "../any_hook.hpp"
#include "../run_config.hpp"

namespace gradus::inline GRADUS_BUILD {

// Returns the hook's options from a run_config, or from the `config()` of a trainer or an estimator: the directory, the
// interval, how many to keep, which task of how many. The other options may be changed. Raises invalid_argument if the
// configuration saves no checkpoints, or has no model_dir.
template <class Config>
input_checkpoint_options input_checkpoint_of(const Config& c,
                                             external_state_policy policy = external_state_policy::fail) {
  if constexpr (requires { c.config(); }) {
    return input_checkpoint_of(c.config(), policy);
  } else {
    static_assert(std::is_base_of_v<run_config, Config>,
                  "gradus: input_checkpoint_of takes a run_config, or what has one as `config()`.");
    const checkpoint_interval every = checkpoint_interval_of(c);
    input_checkpoint_options o;
    o.model_dir = c.model_dir, o.external_state = policy, o.restore_newest = c.restore_newest,
    o.restore_input = c.restore_input, o.restore_fallback = c.restore_fallback;
    if (every.steps.active()) o.save_steps = every.steps.value();
    if (every.secs.active()) o.save_secs = every.secs.value();
    if (o.model_dir.empty() || (o.save_steps <= 0 && o.save_secs <= 0))
      raise(status::invalid_argument,
            o.model_dir.empty() ? "input_checkpoint_of: the run_config has no model_dir to save the input into"
                                : "input_checkpoint_of: the run_config saves no checkpoints; give it "
                                  "save_checkpoints_steps or save_checkpoints_secs, one of which should be provided");
    o.keep = {.max_to_keep = static_cast<int>(c.keep_checkpoint_max), .limits = c.limits};
    if (const double hours = c.keep_checkpoint_every_n_hours; hours > 0) o.keep.keep_checkpoint_every_n_hours = hours;
    if constexpr (requires { c.num_worker_replicas(); })
      o.task_type = c.task_type(), o.task_id = c.task_id(), o.num_worker_replicas = c.num_worker_replicas();
    return o;
  }
}
// Returns the same with the policy as a word: "fail", "warn" or "ignore". Raises invalid_argument for another.
template <class Config>
input_checkpoint_options input_checkpoint_of(const Config& c, std::string_view external_state) {
  return input_checkpoint_of(c, parse_external_state_policy(external_state));
}

}  // namespace gradus
