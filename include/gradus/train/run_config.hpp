// A run_config configures a training run apart from its mathematics: where it keeps its files, at which intervals it
// acts, and which task of which cluster it is. Its names, defaults and rules are those of tf.estimator.RunConfig
// (1.15).
//
//   gradus::run_config config{.model_dir = "runs/a", .save_checkpoints_steps = 100};   // one process
//   auto task = gradus::run_config::from_environment(config);     // from TF_CONFIG; train/run_environment.hpp
//   auto often = task.replace({{"save_checkpoints_steps", 10}});  // a copy that differs; the same header
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "../base/contract.hpp"
#include "../base/error.hpp"
#include "../base/or_none.hpp"
#include "../base/state.hpp"
#include "../checkpoint/retention.hpp"
#include "../cluster/distribution_strategy.hpp"
#include "../graph/placed_op.hpp"
#include "../run/session_options.hpp"
#include "../summary/writer.hpp"

namespace gradus::inline GRADUS_BUILD {

class cluster_spec;
struct config_change;

namespace detail {
struct run_place;

// This setting holds a folder, or none. `validate` refuses an empty string.
class folder_setting : public std::string {
public:
  folder_setting() = default;
  folder_setting(none_given) {}
  template <class S>
    requires(std::convertible_to<S, std::string> && !std::same_as<std::remove_cvref_t<S>, folder_setting>)
  folder_setting(S&& folder) : std::string(std::forward<S>(folder)), given_(true) {}
  bool given() const { return given_; }

private:
  bool given_ = false;
};
}  // namespace detail

// This is TensorFlow's DistributeConfig: how a cluster trains. One task evaluates (the evaluator, or the chief), so a
// strategy for evaluation is refused.
struct distribute_config {
  or_none<distribution_strategy> train_distribute = {}, eval_distribute = {};
};

// These settings say where a trainer writes, how often, and from which seed (`tf_random_seed`) it
// starts.
struct run_config {
  using policy_for = kind::configuration;

  detail::folder_setting model_dir = {};       // checkpoints and event files; none: the run leaves nothing behind
  or_none<std::uint64_t> tf_random_seed = {};  // of initializers and of ops that draw (dropout); none is 0
  or_none<double> save_summary_steps = 100;    // what TensorBoard shows, every so many steps; 0, none: never
  interval save_checkpoints_steps = {};        // one of the two; neither: every 600 seconds; none: no checkpoints
  interval save_checkpoints_secs = {};
  // The options of sessions; `none` takes those of the task's role (from_environment). Trainers have no sessions.
  or_none<session_options> session_config = {};
  or_none<int> keep_checkpoint_max = 5;  // 0, none: all
  or_none<double> keep_checkpoint_every_n_hours = 10000;
  keep_best keep_checkpoint_best = {};    // keeps those with the best metric too (trainer.save)
  bool checkpoint_save_graph_def = true;  // graph.pbtxt in model_dir, and a .meta file beside each checkpoint
  // If true and the newest checkpoint is damaged, the run goes on from the newest intact one (a warning names the
  // damaged one, which is kept). If false, it stops with an error, as TensorFlow does.
  bool restore_fallback = false;
  // If true and model_dir holds checkpoints but no state file, the run goes on from the newest intact one. If false,
  // that is an error, and training does not start anew beside them (TensorFlow does).
  bool restore_newest = false;
  // This decides what happens if the newest checkpoint holds the position of another input than the one that training
  // is given: it is an error, or the given input is read from its beginning. A run that was killed continues exactly
  // with if_it_fits, but not with ignored.
  saved_input restore_input = saved_input::required;
  // Of a checkpoint that is read (number of tensors, size after inflation), and of the events of evaluations.
  reader_limits limits = {};
  or_none<double> log_step_count_steps = 100;  // progress, and steps per second for TensorBoard; none: never
  // These options set how training's events are written: flush_secs; max_queue, which moves the writing to a thread;
  // and the reaction to a full queue.
  summary_writer_options summaries = {};
  // How a cluster trains: asynchronous{}, ssp{s}, sync_replicas{} or, beside the policy any_strategy{}
  // (cluster/any_strategy.hpp), all_reduce{}. It takes the place of the policy beside connected{here}.
  or_none<distribution_strategy> train_distribute = {};
  // Returns the device of each node of an estimator's graph, and of each variable of a trainer that is a task of a
  // cluster (cluster/connected.hpp). A trainer without a cluster refuses it.
  or_none<device_function> device_fn = {};
  or_none<std::string> protocol = {};                   // of the server that a task starts: none, "in_process", "grpc"
  or_none<distribution_strategy> eval_distribute = {};  // refused: one task evaluates
  or_none<distribute_config> experimental_distribute = {};
  // The longest delay of workers, which begin one after another; `none` is 60.
  or_none<std::int64_t> experimental_max_worker_delay_secs = {};
  // How long a task of a cluster of processes waits for a run to begin: a worker for parameter servers and the chief, a
  // parameter server for a worker. `none`: without an end.
  or_none<double> session_creation_timeout_secs = 7200;
  // The cluster and task of this process, from TF_CONFIG; null if it is alone. from_environment sets it.
  std::shared_ptr<const detail::run_place> place = {};

  // Takes the task from the environment variable TF_CONFIG and the rest from `given`; without the variable the process
  // is alone. The types involved are in train/run_environment.hpp, with replace and cluster_spec. Raises
  // invalid_argument for invalid JSON or an invalid value, naming it, and the errors of `validate`.
  static run_config from_environment();
  static run_config from_environment(run_config given);
  // Does the same with the text of a TF_CONFIG.
  static run_config from_tf_config(std::string_view json, run_config given);
  // Returns a copy with other values of TensorFlow's seventeen parameters. If one interval gets a number, the other
  // becomes none. Raises invalid_argument for another name ("is not supported"), for a value of another type, and for
  // both intervals, and the errors of `validate`.
  run_config replace(std::initializer_list<config_change> changes) const;

  // Returns the role: "worker" for a process that is alone, otherwise "chief", "worker", "ps", "evaluator", "master" or
  // a job of the cluster's own.
  const std::string& task_type() const;
  int task_id() const;
  bool is_chief() const;
  // Returns the target of a session: "" for this process, otherwise "grpc://host:port" or TF_CONFIG's session_master.
  const std::string& master() const;
  const std::string& evaluation_master() const;
  int num_ps_replicas() const;
  int num_worker_replicas() const;  // workers and the chief
  // Returns this task's number, counted over the chief, then the other jobs by their names, then ps. An evaluator has
  // none.
  or_none<int> global_id_in_cluster() const;
  // Returns the cluster; empty for a process that is alone and for an evaluator.
  const gradus::cluster_spec& cluster_spec() const;
  // Returns the JSON object that TF_CONFIG has under "service", as its text.
  const or_none<std::string>& service() const;
};

// This resolves the two intervals: if neither is given, checkpoints are saved every 600 seconds; if one is given, it is
// used; two numbers are an error.
struct checkpoint_interval {
  interval steps, secs;
};
checkpoint_interval checkpoint_interval_of(const run_config& c);

void validate(const run_config& c);
// Returns the strategy of train_distribute or experimental_distribute, or none if neither has one.
or_none<distribution_strategy> strategy_of(const run_config& c);

namespace detail {
// These are the cluster and task of a process, and the values derived from them.
struct run_place {
  std::string task_type = "worker", master = {}, evaluation_master = {};
  int task_id = 0, num_ps_replicas = 0, num_worker_replicas = 1;
  bool is_chief = true;
  or_none<int> global_id = 0;
  or_none<std::string> service = {};
  std::string environment = {};                              // TF_CONFIG's: "cloud", "google"
  std::shared_ptr<const gradus::cluster_spec> cluster = {};  // null: empty
};
// Validates the configuration, and refuses settings that a trainer cannot honour. `in_cluster` is true if the trainer
// has the steps of a cluster's task.
void validate_for_trainer(const run_config& c, bool in_cluster);
}  // namespace detail

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "run_config.ipp"
#endif
