// The bodies of step_counter_hook.hpp.
#pragma once
#include <limits>

#include "../../base/body.hpp"
#include "../../summary/shared_writer.hpp"
#include "step_counter_hook.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY step_counter_hook::step_counter_hook(step_counter_options o)
    : o_(std::move(o)), timer_({.every_secs = o_.every_n_secs, .every_steps = o_.every_n_steps}, o_.tasks) {
  if (o_.summary_writer != nullptr) o_.output_dir.clear();
}

GRADUS_BODY void step_counter_hook::begin() {
  if (!o_.output_dir.empty()) o_.summary_writer = detail::shared_summary_writer(o_.output_dir);
}
GRADUS_BODY void step_counter_hook::after_create_session(hooked_session& s) {
  step_ = detail::needed_global_step(s, "step_counter_hook");
  tag_ = text(step_.g->name_of(step_.id), "/sec");
  // A session that is made again may begin at a lower step. Calls of a training that go on are sessions too.
  if (timer_.last_triggered_step() > s.global_step()) timer_.reset();
  last_.reset(), unchanged_ = 0;
}

GRADUS_BODY void step_counter_hook::after_run(run_context& c, const run_values& v) {
  constexpr int runs_until_warning = 20;
  const std::int64_t stale = detail::step_in(v.results[0]);
  if (timer_.should_trigger_for_step(stale + o_.steps_per_run)) {
    const std::int64_t now = c.session().global_step();
    if (timer_.should_trigger_for_step(now)) {
      const auto passed = timer_.update_last_triggered_step(now);
      if (passed.secs) {
        const double rate = *passed.secs > 0 ? static_cast<double>(*passed.steps) / *passed.secs
                                             : std::numeric_limits<double>::infinity();
        if (o_.summary_writer != nullptr) o_.summary_writer->add_scalar(tag_, static_cast<float>(rate), now);
        say(text(tag_, ": ", rate));
      }
    }
  }
  unchanged_ = last_ == stale ? unchanged_ + 1 : 0;
  last_ = stale;
  if (unchanged_ < runs_until_warning) return;
  unchanged_ = 0;
  say(text("It seems that global step (\"", step_.g->name_of(step_.id), "\") has not been increased. Current value: ",
           stale, ", for ", runs_until_warning, " runs; give minimize or apply_gradients {.global_step = step}"));
}
GRADUS_BODY void step_counter_hook::end(hooked_session&) {
  if (o_.summary_writer != nullptr) o_.summary_writer->flush();
}

}  // namespace gradus
