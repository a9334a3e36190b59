// The bodies of summary_saver_hook.hpp.
#pragma once
#include "../../base/body.hpp"
#include "../../summary/shared_writer.hpp"
#include "summary_saver_hook.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY summary_saver_hook::summary_saver_hook(summary_saver_options o)
    : o_(std::move(o)), timer_({.every_secs = o_.save_secs, .every_steps = o_.save_steps}, o_.tasks) {
  if ((o_.parts != nullptr) == !o_.summary_op.empty())
    raise(status::invalid_argument, "summary_saver_hook: exactly one of scaffold and summary_op must be provided");
  if (o_.summary_writer != nullptr) o_.output_dir.clear();
}

GRADUS_BODY void summary_saver_hook::begin() {
  if (!o_.output_dir.empty()) o_.summary_writer = detail::shared_summary_writer(o_.output_dir);
}
// A session that is made again may begin at a lower step; its START takes back the events behind that step. It comes
// before the first run, so that it takes back no event of another hook that has the same writer.
GRADUS_BODY void summary_saver_hook::after_create_session(hooked_session& s) {
  step_ = detail::needed_global_step(s, "summary_saver_hook");
  shown_ = o_.parts != nullptr ? merge_all(*step_.g) : o_.summary_op;
  next_step_.reset(), timer_.reset();
  if (o_.summary_writer != nullptr) o_.summary_writer->start(s.global_step() + 1);
}

GRADUS_BODY session_run_args summary_saver_hook::before_run(run_context&) {
  due_ = !next_step_ || timer_.should_trigger_for_step(*next_step_);
  session_run_args args{.fetches = {step_}};
  if (due_) args.fetches.insert(args.fetches.end(), shown_.fetches().begin(), shown_.fetches().end());
  return args;
}
GRADUS_BODY void summary_saver_hook::after_run(run_context&, const run_values& v) {
  const std::int64_t step = detail::step_in(v.results[0]);  // as it was when the run ended
  if (due_) {
    timer_.update_last_triggered_step(step);
    if (o_.summary_writer != nullptr && !shown_.empty())
      o_.summary_writer->add_summary(shown_.values(v.results.subspan(1)), step);
  }
  next_step_ = step + 1;
}
GRADUS_BODY void summary_saver_hook::end(hooked_session&) {
  if (o_.summary_writer != nullptr) o_.summary_writer->flush();
}

}  // namespace gradus
