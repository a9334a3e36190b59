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

namespace detail {
template <class Setting>
void refuse_below(std::string_view name, const Setting& setting, double least, bool open) {
  if (!setting.has_value()) return;
  const double value = static_cast<double>(setting.value());
  if (open ? !(value > least) : !(value >= least))
    raise(status::invalid_argument,
          text("run_config: ", name, " must be ", open ? "above " : "at least ", least, ", got ", value));
}

GRADUS_BODY void refuse_strategy(std::string_view name, const or_none<distribution_strategy>& strategy,
                                 bool evaluates) {
  if (!strategy.has_value()) return;
  if (!strategy.value().is_known())
    raise(status::unimplemented,
          text("run_config: ", name, " is \"", strategy.value().name(),
               "\", a strategy that this library does not have; ",
               evaluates ? "leave it out: one task evaluates"
                         : "give gradus::asynchronous{}, ssp{s}, sync_replicas{} or all_reduce{}"));
  if (evaluates)
    raise(status::unimplemented,
          text("run_config: ", name, " says how a cluster evaluates, and one task does that; leave it out"));
}

GRADUS_BODY const run_place& place_of(const run_config& c) {
  static const run_place alone;
  return c.place != nullptr ? *c.place : alone;
}
}  // namespace detail

GRADUS_BODY void validate(const run_config& c) {
  using detail::refuse_below;
  if (c.model_dir.given() && c.model_dir.empty())
    raise(status::invalid_argument,
          "run_config: model_dir must not be empty; leave it out, or give none, for a run without files");
  checkpoint_interval_of(c);
  refuse_below("save_summary_steps", c.save_summary_steps, 0, false);
  refuse_below("save_checkpoints_steps", c.save_checkpoints_steps, 0, false);
  refuse_below("save_checkpoints_secs", c.save_checkpoints_secs, 0, false);
  refuse_below("keep_checkpoint_max", c.keep_checkpoint_max, 0, false);
  refuse_below("keep_checkpoint_every_n_hours", c.keep_checkpoint_every_n_hours, 0, true);
  refuse_below("log_step_count_steps", c.log_step_count_steps, 0, true);
  refuse_below("session_creation_timeout_secs", c.session_creation_timeout_secs, 0, true);
  refuse_below("summaries.flush_secs", or_none<double>(c.summaries.flush_secs), 0, false);
  if (c.device_fn.has_value() && !c.device_fn.value())
    raise(status::invalid_argument, "run_config: device_fn must be callable; give none instead of an empty function");
  if (c.experimental_distribute.has_value()) {
    const distribute_config& d = c.experimental_distribute.value();
    if ((c.train_distribute.has_value() && d.train_distribute.has_value()) ||
        (c.eval_distribute.has_value() && d.eval_distribute.has_value()))
      raise(status::invalid_argument,
            "run_config: a strategy stands in experimental_distribute and in train_distribute or eval_distribute; keep "
            "one");
    detail::refuse_strategy("experimental_distribute.train_distribute", d.train_distribute, false);
    detail::refuse_strategy("experimental_distribute.eval_distribute", d.eval_distribute, true);
  }
  detail::refuse_strategy("train_distribute", c.train_distribute, false);
  detail::refuse_strategy("eval_distribute", c.eval_distribute, true);
  if (const std::string& p = c.protocol; c.protocol.has_value() && p != "in_process" && p != "grpc") {
    if (p == "grpc+verbs")
      raise(status::unimplemented, text("run_config: the protocol \"", p,
                                        "\" takes a transport, which servers do not have; give \"grpc\" or "
                                        "\"in_process\""));
    raise(status::invalid_argument,
          text("run_config: protocol must be none, \"in_process\", \"grpc\" or \"grpc+verbs\", got \"", p, '"'));
  }
}

GRADUS_BODY or_none<distribution_strategy> strategy_of(const run_config& c) {
  if (c.train_distribute.has_value() || !c.experimental_distribute.has_value()) return c.train_distribute;
  return c.experimental_distribute.value().train_distribute;
}

GRADUS_BODY void detail::validate_for_trainer(const run_config& c, bool in_cluster) {
  validate(c);
  if (!in_cluster && strategy_of(c).has_value())
    raise(status::failed_precondition,
          "run_config: train_distribute says how a cluster trains, and this run has none; add the policy "
          "connected{server} (cluster/connected.hpp), or leave it out");
  if (!in_cluster && c.protocol.has_value() && static_cast<const std::string&>(c.protocol) == "grpc")
    raise(status::unimplemented,
          "run_config: the protocol \"grpc\" is of a server, and this run has none; add the policy connected{server}, "
          "with a server that was given gradus::grpc (cluster/grpc.hpp), or leave protocol out");
  if (!in_cluster && c.device_fn.has_value())
    raise(
        status::failed_precondition,
        "run_config: device_fn gives the variables of a cluster, and the nodes of an estimator's graph, their devices, "
        "and this run has one device; add the policy connected{server} (cluster/connected.hpp), or leave it out");
}

GRADUS_BODY const std::string& run_config::task_type() const { return detail::place_of(*this).task_type; }
GRADUS_BODY int run_config::task_id() const { return detail::place_of(*this).task_id; }
GRADUS_BODY bool run_config::is_chief() const { return detail::place_of(*this).is_chief; }
GRADUS_BODY const std::string& run_config::master() const { return detail::place_of(*this).master; }
GRADUS_BODY const std::string& run_config::evaluation_master() const {
  return detail::place_of(*this).evaluation_master;
}
GRADUS_BODY int run_config::num_ps_replicas() const { return detail::place_of(*this).num_ps_replicas; }
GRADUS_BODY int run_config::num_worker_replicas() const { return detail::place_of(*this).num_worker_replicas; }
GRADUS_BODY or_none<int> run_config::global_id_in_cluster() const { return detail::place_of(*this).global_id; }
GRADUS_BODY const or_none<std::string>& run_config::service() const { return detail::place_of(*this).service; }

}  // namespace gradus
