// The bodies of summary_saver_hook.hpp.
#pragma once
#include "../../base/body.hpp"
#include "summary_saver_hook.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY summary_saver_hook::summary_saver_hook(summary_saver_options o)
    : o_(std::move(o)), timer_({.every_secs = o_.save_secs, .every_steps = o_.save_steps}, o_.tasks) {
  if ((o_.parts != nullptr) == !o_.summary_op.empty())
    raise(status::invalid_argument, "summary_saver_hook: exactly one of scaffold and summary_op must be provided");
}

GRADUS_BODY void summary_saver_hook::begin() {
  if (o_.summary_writer == nullptr && !o_.output_dir.empty())
    o_.summary_writer = std::make_shared<gradus::summary_writer<>>(o_.output_dir);
  next_step_.reset();
}
GRADUS_BODY void summary_saver_hook::after_create_session(hooked_session& s) {
  step_ = detail::needed_global_step(s, "summary_saver_hook");
  graph& g = *step_.g;
  auto summaries = o_.summary_op;
  if (o_.parts != nullptr)
    for (const output& out : g.outputs)
      if (out.kind == output::summary) summaries.emplace_back(g.text_at(out.name), value{&g, out.node});
  tags_.clear(), scalars_.clear();
  for (const auto& [tag, v] : summaries) {
    if (v.dims().rank != 0 || !is_float(v.type()))
      raise(status::invalid_argument, text("summary_saver_hook: expected a float scalar for \"", tag, "\", got ",
                                           name_of(v.type()), " ", to_text(v.dims())));
    tags_.push_back(tag), scalars_.emplace_back(v);
  }
}

GRADUS_BODY session_run_args summary_saver_hook::before_run(run_context&) {
  due_ = !next_step_ || timer_.should_trigger_for_step(*next_step_);
  session_run_args args{.fetches = {step_}};
  if (due_) args.fetches.insert(args.fetches.end(), scalars_.begin(), scalars_.end());
  return args;
}
GRADUS_BODY void summary_saver_hook::after_run(run_context&, const run_values& v) {
  const std::int64_t step = detail::step_in(v.results[0]);  // as it was when the run ended
  if (o_.summary_writer != nullptr && !next_step_) o_.summary_writer->add_session_log(session_log_status::start, step);
  if (due_) {
    timer_.update_last_triggered_step(step);
    std::vector<scalar_value> scalars;
    for (std::size_t i = 0; i < tags_.size(); ++i) {
      const const_tensor_view& x = v.results[1 + i];
      scalars.push_back({tags_[i], x.type == float32 ? x.as<float>()[0] : static_cast<float>(x.as<double>()[0])});
    }
    if (o_.summary_writer != nullptr && !scalars.empty()) o_.summary_writer->add_summary(scalars, step);
  }
  next_step_ = step + 1;
}
GRADUS_BODY void summary_saver_hook::end(hooked_session&) {
  if (o_.summary_writer != nullptr) o_.summary_writer->flush();
}

}  // namespace gradus
