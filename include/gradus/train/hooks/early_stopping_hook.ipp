// The bodies of early_stopping_hook.hpp.
#pragma once
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "../../base/body.hpp"
#include "../../ops/state.hpp"
#include "../../run/base_session.hpp"
#include "../../session/session_manager.hpp"
#include "../../store/temporary.hpp"
#include "../../summary/reader.hpp"
#include "../progress.hpp"
#include "early_stopping_hook.hpp"
#include "needed_global_step.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
inline constexpr std::string_view stop_flag_ops = "signal_early_stopping";

GRADUS_BODY timer_options stop_timer(const early_stopping_options& o) {
  if (o.run_every_secs && o.run_every_steps)
    raise(status::invalid_argument,
          "early stopping: only one of run_every_secs and run_every_steps can be given; both are");
  timer_options t{.every_secs = o.run_every_secs, .every_steps = o.run_every_steps};
  if (!t.every_secs && !t.every_steps) t.every_secs = 60;
  return t;
}

// Calls `see(step, value)` for every evaluation that counts, in the order of the steps, until it returns true.
template <class See>
bool find_evaluation(const std::string& metric_name, const early_stopping_options& o, See see) {
  for (const auto& [step, metrics] : read_eval_metrics(o.eval_dir, o.files, o.limits)) {
    if (step < o.min_steps) continue;
    const auto found = metrics.find(metric_name);
    if (found == metrics.end()) {
      std::string names;
      for (const auto& [name, number] : metrics) names += text(names.empty() ? "" : ", ", name);
      raise(status::not_found, text("early stopping: the evaluation of step ", step, " in \"", o.eval_dir,
                                    "\" has no metric \"", metric_name, "\"; it has ", names));
    }
    if (see(step, static_cast<double>(found->second))) return true;
  }
  return false;
}

GRADUS_BODY void check_eval_dir(const early_stopping_options& o) {
  if (o.eval_dir.empty())
    raise(status::invalid_argument,
          "early stopping by a metric: give eval_dir, where the events of evaluations are; a trainer's and an "
          "estimator's are in model_dir/eval");
}

GRADUS_BODY early_stopping_hook no_improvement_hook(std::string metric_name, std::int64_t most, bool higher_is_better,
                                                    early_stopping_options o) {
  check_eval_dir(o);
  if (most < 0)
    raise(status::invalid_argument,
          text("early stopping: expected the most steps without ", higher_is_better ? "an increase" : "a decrease",
               " of \"", metric_name, "\" to be 0 or more, got ", most));
  auto decide = [metric_name = std::move(metric_name), most, higher_is_better, o]() -> std::optional<std::string> {
    double best = std::nan("");
    std::optional<std::int64_t> best_step;
    std::string why;
    find_evaluation(metric_name, o, [&](std::int64_t step, double v) {
      const bool first = !best_step || (std::isnan(best) && !std::isnan(v));
      if (first || (higher_is_better ? v > best : v < best)) best = v, best_step = step;
      if (step - *best_step < most) return false;
      why = text("no ", higher_is_better ? "increase" : "decrease", " in metric \"", metric_name, "\" for ",
                 step - *best_step, " steps, which is greater than or equal to max steps (", most, ") configured");
      return true;
    });
    return why.empty() ? std::nullopt : std::optional(why);
  };
  return {std::move(decide), std::move(o)};
}

GRADUS_BODY early_stopping_hook threshold_hook(std::string metric_name, double threshold, bool stops_above,
                                               early_stopping_options o) {
  check_eval_dir(o);
  auto decide = [metric_name = std::move(metric_name), threshold, stops_above, o]() -> std::optional<std::string> {
    std::string why;
    find_evaluation(metric_name, o, [&](std::int64_t step, double v) {
      if (!(stops_above ? v > threshold : v < threshold)) return false;
      why = text("at step ", step, ", metric \"", metric_name, "\" has value ", v, " which is ",
                 stops_above ? "greater" : "less", " than the threshold (", threshold, ") configured");
      return true;
    });
    return why.empty() ? std::nullopt : std::optional(why);
  };
  return {std::move(decide), std::move(o)};
}
}  // namespace detail

GRADUS_BODY eval_metrics read_eval_metrics(const std::string& eval_dir, const any_file_system& files,
                                           const reader_limits& limits) {
  eval_metrics all;
  std::vector<std::string> names;
  const int listed = detail::uninterrupted([&] { return files.list(eval_dir, names); });
  if (listed == ENOENT) return all;
  if (listed != 0) raise(file_problem{.error = listed, .operation = "list", .path = eval_dir});
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (name.find(".tfevents.") == std::string::npos) continue;
    detail::any_summary_iterator events(join_path(eval_dir, name), files, limits);
    for (event e; events.next(e);)
      for (const summary_value& v : e.values)
        if (v.kind == value_kind::simple_value) all[e.step][v.tag] = v.simple_value;
  }
  return all;
}

GRADUS_BODY early_stopping_hook::early_stopping_hook(decision should_stop, early_stopping_options o)
    : should_stop_(std::move(should_stop)), o_(std::move(o)), timer_(detail::stop_timer(o_), o_.tasks) {
  if (!should_stop_)
    raise(status::invalid_argument, "make_early_stopping_hook: expected a function that says whether to stop");
}

// The hook that begins first makes the variable and its op, for all hooks that share the graph.
GRADUS_BODY void early_stopping_hook::begin(graph& g) {
  const int found = g.find(detail::stop_flag_name);
  raise_flag_ = {};
  g.for_each_in(detail::stop_flag_ops, [&](value v) { raise_flag_ = v; });
  if (found >= 0 && raise_flag_) {
    flag_ = {&g, found};
    return;
  }
  if (g.is_finalized())
    raise(status::failed_precondition,
          text("early stopping adds the variable \"", detail::stop_flag_name,
               "\", and the graph is finalized: make the monitored session before anything finalizes the graph"));
  flag_ = g.variable(detail::stop_flag_name, {}, {.init = zeros, .trainable = false, .type = boolean});
  raise_flag_ = assign(flag_, g.constant(1, boolean));
  g.add_to(detail::stop_flag_ops, raise_flag_);
}

// A session that is made again may begin at a lower step. Other sessions, such as those of a trainer's calls, leave the
// interval as it is.
GRADUS_BODY void early_stopping_hook::after_create_session(hooked_session& s) {
  if (o_.is_chief && timer_.last_triggered_step() > s.global_step()) timer_.reset();
}

GRADUS_BODY session_run_args early_stopping_hook::before_run(run_context& c) const {
  if (c.session().raw_session() == nullptr) return {};
  return {.fetches = {o_.is_chief ? detail::needed_global_step(c.session(), "early stopping") : flag_}};
}

GRADUS_BODY void early_stopping_hook::after_run(run_context& c, const run_values& v) {
  base_session* const raw = c.session().raw_session();
  if (!o_.is_chief) {
    if (raw != nullptr && v.results[0].as<bool>()[0]) c.request_stop();
    return;
  }
  const std::int64_t step = raw != nullptr ? detail::step_in(v.results[0]) : v.global_step;
  if (!timer_.should_trigger_for_step(step)) return;
  timer_.update_last_triggered_step(step);
  const auto why = should_stop_();
  if (!why) return;
  if (o_.sink) o_.sink(text("requesting early stopping at global step ", step, why->empty() ? "" : ": ", *why));
  if (raw != nullptr) raw->run(raise_flag_);
  c.request_stop();
}

GRADUS_BODY void early_stopping_hook::end(hooked_session&) const {
  if (!o_.is_chief || o_.eval_dir.empty()) return;
  std::string what;
  try {
    const eval_metrics all = read_eval_metrics(o_.eval_dir, o_.files, o_.limits);
    if (all.lower_bound(o_.min_steps) != all.end()) return;
    what = text("has no evaluation", o_.min_steps > 0 ? text(" of step ", o_.min_steps, " or later") : "",
                ", so nothing was decided; look at eval_dir, and whether an evaluator writes there");
  } catch (const error& e) {  // the training is over, and other hooks have to end
    what = text("was not read at the end: ", e.what());
  }
  what = text("early stopping: \"", o_.eval_dir, "\" ", what);
  if (o_.sink)
    o_.sink(what);
  else
    warnings{}.warning(what);
}

GRADUS_BODY early_stopping_hook make_early_stopping_hook(std::function<bool()> should_stop, early_stopping_options o) {
  if (!should_stop) return {early_stopping_hook::decision(), std::move(o)};
  return {[f = std::move(should_stop)] { return f() ? std::optional<std::string>("") : std::nullopt; }, std::move(o)};
}
GRADUS_BODY early_stopping_hook stop_if_no_increase_hook(std::string metric_name,
                                                         std::int64_t max_steps_without_increase,
                                                         early_stopping_options o) {
  return detail::no_improvement_hook(std::move(metric_name), max_steps_without_increase, true, std::move(o));
}
GRADUS_BODY early_stopping_hook stop_if_no_decrease_hook(std::string metric_name,
                                                         std::int64_t max_steps_without_decrease,
                                                         early_stopping_options o) {
  return detail::no_improvement_hook(std::move(metric_name), max_steps_without_decrease, false, std::move(o));
}
GRADUS_BODY early_stopping_hook stop_if_higher_hook(std::string metric_name, double threshold,
                                                    early_stopping_options o) {
  return detail::threshold_hook(std::move(metric_name), threshold, true, std::move(o));
}
GRADUS_BODY early_stopping_hook stop_if_lower_hook(std::string metric_name, double threshold,
                                                   early_stopping_options o) {
  return detail::threshold_hook(std::move(metric_name), threshold, false, std::move(o));
}

}  // namespace gradus
