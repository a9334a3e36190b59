// The bodies of supervisor.hpp.
#pragma once
#include "../base/body.hpp"
#include "supervisor.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY loop_settings loop_settings_of(const supervisor_options& o) {
  loop_settings s;
  s.directory = o.logdir, s.basename = o.checkpoint_basename;
  s.saves = s.has_files() && bool(o.saver);
  s.publishes_graph = true;
  if (s.has_files() && o.summary_writer) s.events = *o.summary_writer;
  s.summary_secs = o.summary_op && o.services == service_place::in_step ? o.save_summaries_secs : 0;
  s.log_steps = o.log_step_count_steps;
  s.restore_fallback = o.restore_fallback, s.restore_newest = o.restore_newest;
  s.restore_input = o.restore_input;
  s.seed = o.tf_random_seed;
  s.keeps_best = o.saver ? (*o.saver).best.count : 0, s.keeps_best_by = "saver_options::best";
  return s;
}

}  // namespace gradus::detail
