// The bodies of run_hooks.hpp.
#pragma once
#include "../base/body.hpp"
#include "run_hooks.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void run_time_hooks::start(const step_source& from, const state_list& list, std::int64_t step) {
  from_ = from, list_ = &list, stop_ = false;
  bind(list, step, from.steps, from.number);
  for (const any_hook& h : hooks_) h.after_create_session(session());
}

GRADUS_BODY const_tensor_view run_time_hooks::find(std::string_view name, bool after_step) {
  if (const const_tensor_view v = from_.output(from_.steps, name, after_step, nullptr); v.data != nullptr) return v;
  const state_entry* e = list_->find(name);
  if (e != nullptr && e->dynamic == nullptr) return {e->type, e->dims, e->bytes.data()};
  const auto number = [](const double& x) {
    return const_tensor_view(float64, {}, reinterpret_cast<const std::byte*>(&x));
  };
  if (name == "learning_rate") return number(rate_);
  if (name == "gradient_norm") return number(norm_);
  return {};
}

GRADUS_BODY void run_time_hooks::before_run() {
  clear_stop();
  asked_.clear(), asks_norm_ = false;
  for (const any_hook& h : hooks_) {
    asked_.push_back(h.before_run(context()));
    const session_run_args& args = asked_.back();
    if (!args.feeds.empty())
      raise(status::invalid_argument, text("a hook feeds a step of ", from_.owner, ", whose placeholders are fed by ",
                                           from_.fed_by, "; add what is fed there, or feed in a monitored session"));
    if (args.options.trace != trace_level::no_trace)
      raise(status::invalid_argument, text("a hook requests a trace of a step of ", from_.owner,
                                           "; trainer.profile(data) says where the time of a step goes"));
    for (const fetch& f : args.fetches) {
      if (f.g != nullptr)
        raise(status::invalid_argument, text("a hook fetches a tensor of a graph from ", from_.owner,
                                             ", whose model is not that graph; give its name, \"", f.g->name_of(f.id),
                                             "\", and let the model name it with g.add_output"));
      if (find(f.name, false).data != nullptr) {
        asks_norm_ = asks_norm_ || f.name == "gradient_norm";
        continue;
      }
      std::string names;
      from_.output(from_.steps, {}, false, &names);
      for (const auto& e : list_->entries())
        if (e.dynamic == nullptr) names += text(names.empty() ? "" : ", ", e.name);
      raise(status::not_found, text("a hook fetches \"", f.name, "\", which the model does not keep; of a step can be ",
                                    "fetched: ", names, ", learning_rate, gradient_norm. What else is computed can be ",
                                    "fetched once the model names it with g.add_output"));
    }
  }
}

GRADUS_BODY void run_time_hooks::after_run(std::int64_t step, double loss, double rate) {
  at(step);
  rate_ = rate;
  if (asks_norm_) norm_ = from_.gradient_norm(from_.steps);  // reads all gradients, unless a clip has done so
  run_values& v = values();
  v.global_step = step, v.loss = loss, v.learning_rate = rate;
  for (std::size_t i = 0; i < hooks_.size(); ++i) {
    results_.clear();
    for (const fetch& f : asked_[i].fetches) results_.push_back(find(f.name, true));
    v.results = results_, v.options = &asked_[i].options;
    hooks_[i].after_run(context(), v);
  }
  v.results = {}, v.options = nullptr;
  stop_ = stop_ || context().stop_requested();
}

GRADUS_BODY void raise_no_saves() {
  raise(status::failed_precondition,
        "saving_listeners of a run that saves nothing: give run_config a model_dir and an interval of saves, "
        "save_checkpoints_steps or save_checkpoints_secs");
}
GRADUS_BODY void run_time_listeners::begin() const {
  for (const any_saving_listener& l : all_) l.begin();
}
GRADUS_BODY void run_time_listeners::before_save(std::int64_t step) {
  at(step);
  for (const any_saving_listener& l : all_) l.before_save(session(), step);
}
GRADUS_BODY bool run_time_listeners::after_save(std::int64_t step) {
  bool stop = false;
  for (const any_saving_listener& l : all_) stop = l.after_save(session(), step) || stop;
  return stop;
}
GRADUS_BODY void run_time_listeners::end(std::int64_t step) {
  at(step);
  for (const any_saving_listener& l : all_) l.end(session(), step);
}

GRADUS_BODY void run_time_hooks::end(std::int64_t step) {
  at(step);
  for (const any_hook& h : hooks_) h.end(session());
}

}  // namespace gradus::detail
