// The bodies of monitored_training_session.hpp.
#pragma once
#include "../base/body.hpp"
#include "../base/optional_library.hpp"
#include "../summary/shared_writer.hpp"
#include "monitored_training_session.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Returns when something is due by a pair of intervals.
GRADUS_BODY timer_options timer_of(interval steps, interval secs, interval default_steps, interval default_secs) {
  if (!steps.given() && !secs.given()) steps = default_steps, secs = default_secs;
  timer_options t;
  if (steps.active()) t.every_steps = static_cast<std::int64_t>(steps.value());
  if (secs.active()) t.every_secs = secs.value();
  return t;
}
// The same for checkpoints; nothing if none are saved.
GRADUS_BODY std::optional<timer_options> saves_when(const monitored_training_options& o) {
  const timer_options when = timer_of(o.save_checkpoint_steps, o.save_checkpoint_secs, none, 600.0);
  if (!o.is_chief || o.checkpoint_dir.empty() || (!when.every_steps && !when.every_secs)) return std::nullopt;
  return when;
}

GRADUS_BODY training_parts::training_parts(graph& g, session_factory open, const monitored_training_options& o)
    : parts(o.parts) {
  if (saves_when(o))
    alone = hold_directory(parts.saver() != nullptr ? parts.saver()->disk() : any_file_system(), o.checkpoint_dir);
  if (o.is_chief)
    creator =
        std::make_unique<chief_session_creator>(std::move(open), g, parts,
                                                chief_session_options{.checkpoint_dir = o.checkpoint_dir,
                                                                      .restore_newest = o.restore_newest,
                                                                      .restore_fallback = o.restore_fallback,
                                                                      .checkpoint_basename = o.checkpoint_basename},
                                                o.tasks);
  else
    creator = std::make_unique<worker_session_creator>(
        std::move(open), g, parts, worker_session_options{.max_wait_secs = o.max_wait_secs, .stop = o.stop}, o.tasks);
}

GRADUS_BODY std::vector<any_hook> training_hooks(scaffold& parts, const monitored_training_options& o) {
  if (!o.is_chief) return o.hooks;
  const std::string events = o.summary_dir.empty() ? o.checkpoint_dir : o.summary_dir;
  std::vector<any_hook> all = o.chief_only_hooks;
  std::shared_ptr<any_summary_writer> writer;
  const timer_options summaries = timer_of(o.save_summaries_steps, o.save_summaries_secs, 100.0, none);
  const bool has_summaries = summaries.every_steps || summaries.every_secs;
  if (!events.empty() && (has_protozero || o.log_step_count_steps > 0 || has_summaries)) {
    writer = shared_summary_writer(events);
    if (o.log_step_count_steps > 0)
      all.push_back(step_counter_hook({.every_n_steps = static_cast<std::int64_t>(o.log_step_count_steps),
                                       .summary_writer = writer,
                                       .tasks = o.tasks}));
    if (has_summaries)
      all.push_back(summary_saver_hook({.save_steps = summaries.every_steps,
                                        .save_secs = summaries.every_secs,
                                        .summary_writer = writer,
                                        .parts = &parts,
                                        .tasks = o.tasks}));
  }
  if (const auto when = saves_when(o))
    all.push_back(checkpoint_saver_hook(o.checkpoint_dir, {.save_secs = when->every_secs,
                                                           .save_steps = when->every_steps,
                                                           .parts = &parts,
                                                           .checkpoint_basename = o.checkpoint_basename,
                                                           .summary_writer = writer,
                                                           .write_graph = true,
                                                           .tasks = o.tasks}));
  all.insert(all.end(), o.hooks.begin(), o.hooks.end());
  return all;
}

}  // namespace gradus::detail
