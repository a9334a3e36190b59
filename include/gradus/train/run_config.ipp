// The bodies of run_config.hpp.
#pragma once
#include "../base/body.hpp"
#include "run_config.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY checkpoint_interval checkpoint_interval_of(const run_config& c) {
  const interval &steps = c.save_checkpoints_steps, &secs = c.save_checkpoints_secs;
  if (!steps.given() && !secs.given()) return {none, 600.0};
  if (steps.has_value() && secs.has_value())
    raise(status::invalid_argument, text("run_config: save_checkpoints_steps (", steps.value(),
                                         ") and save_checkpoints_secs (", secs.value(), ") are both given; keep one"));
  return {steps, secs};
}

GRADUS_BODY void validate(const run_config& c) {
  checkpoint_interval_of(c);
  const auto refuse_below = [](std::string_view name, double value, double least, bool open) {
    if (open ? !(value > least) : !(value >= least))
      raise(status::invalid_argument,
            text("run_config: ", name, " must be ", open ? "above " : "at least ", least, ", got ", value));
  };
  refuse_below("save_summary_steps", c.save_summary_steps, 0, false);
  if (c.save_checkpoints_steps.has_value())
    refuse_below("save_checkpoints_steps", c.save_checkpoints_steps.value(), 0, false);
  if (c.save_checkpoints_secs.has_value())
    refuse_below("save_checkpoints_secs", c.save_checkpoints_secs.value(), 0, false);
  refuse_below("keep_checkpoint_max", c.keep_checkpoint_max, 0, false);
  refuse_below("keep_checkpoint_every_n_hours", c.keep_checkpoint_every_n_hours, 0, true);
  refuse_below("log_step_count_steps", c.log_step_count_steps, 0, true);
  refuse_below("summaries.flush_secs", c.summaries.flush_secs, 0, false);
}

}  // namespace gradus
