// The bodies of trainer.hpp.
#pragma once
#include "../base/body.hpp"
#include "trainer.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY loop_settings loop_settings_of(const run_config& c, bool decides_itself) {
  const checkpoint_interval every = checkpoint_interval_of(c);
  loop_settings s;
  s.directory = c.model_dir;
  s.saves = s.has_files() && (decides_itself || every.steps.active() || every.secs.active());
  s.publishes_graph = c.checkpoint_save_graph_def;
  if (s.has_files() && c.save_summary_steps > 0) s.events = c.summaries;
  s.summary_steps = c.save_summary_steps;
  s.log_steps = c.log_step_count_steps;
  s.restore_fallback = c.restore_fallback, s.restore_newest = c.restore_newest;
  s.restore_input = c.restore_input;
  s.seed = c.tf_random_seed;
  s.keeps_best = c.keep_checkpoint_best.count;
  return s;
}

GRADUS_BODY run_config trainer_config(const run_config* given, bool in_cluster, bool has_files) {
  run_config c = given != nullptr ? *given : run_config{};
  validate_for_trainer(c, in_cluster);
  if (!has_files) c.model_dir = none;
  return c;
}

GRADUS_BODY saver_options saver_options_of(const run_config& c) {
  return {.max_to_keep = c.keep_checkpoint_max,
          .keep_checkpoint_every_n_hours = c.keep_checkpoint_every_n_hours,
          .best = c.keep_checkpoint_best,
          .limits = c.limits};
}

}  // namespace gradus::detail
