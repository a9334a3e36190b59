// The bodies of train_and_evaluate.hpp.
#pragma once
#include <algorithm>
#include <charconv>
#include <optional>
#include <tuple>

#include "../base/body.hpp"
#include "../cluster/spec.hpp"
#include "../store/directory_lock.hpp"
#include "../train/hooks/early_stopping_hook.hpp"
#include "../train/run_environment.hpp"
#include "checkpoint_values.hpp"
#include "train_and_evaluate.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Evaluates the newest checkpoint once, and passes it to the exporters.
class checkpoint_evaluator {
public:
  // `memory` is the directory of the evaluations for an evaluator that continues where an earlier process was killed;
  // else it is empty.
  checkpoint_evaluator(const estimator_face& e, const eval_spec& spec, std::optional<std::int64_t> max_steps,
                       const task_system& t, std::string memory = {})
      : e_(&e), spec_(&spec), max_steps_(max_steps), tasks_(t), memory_(std::move(memory)) {
    recall();
  }
  // Returns whether a checkpoint of the last step was evaluated.
  bool has_seen_the_last() const { return max_steps_ && last_step_ && *last_step_ >= *max_steps_; }

  std::pair<eval_outcome, std::vector<std::string>> evaluate_and_export() {
    const std::string newest = e_->latest_checkpoint();
    if (newest.empty()) {
      warn("Estimator is not trained yet. Will start an evaluation when a checkpoint is ready.");
      return {{.status = eval_outcome::missing_checkpoint}, {}};
    }
    if (newest == last_ || file_name_of(newest) == remembered_) {
      warn(
          "No new checkpoint ready for evaluation. Skip the current evaluation pass as evaluation results are expected "
          "to be same for the same checkpoint.");
      return {{.status = eval_outcome::no_new_checkpoint}, {}};
    }
    try {
      return evaluate_and_export(newest);
    } catch (const not_found&) {
      // A training that saves faster than this process works removes the checkpoint that it has chosen.
      if (e_->latest_checkpoint() == newest) throw;
      warn(text("The checkpoint ", newest,
                " was removed before it was evaluated and exported; the newest one is next. "
                "Raise keep_checkpoint_max to have more of them evaluated."));
      return {{.status = eval_outcome::no_new_checkpoint}, {}};
    }
  }

private:
  std::pair<eval_outcome, std::vector<std::string>> evaluate_and_export(const std::string& newest) {
    eval_outcome found{.status = eval_outcome::evaluated, .metrics = known(newest), .checkpoint_path = newest};
    if (found.metrics.empty())
      found.metrics = e_->evaluate(
          spec_->input_fn(),
          {.steps = spec_->steps(), .hooks = spec_->hooks(), .checkpoint_path = newest, .name = spec_->name()});
    if (found.metrics.empty())
      raise(status::invalid_argument, "an estimator's evaluate should never return empty metrics");
    if (!found.metrics.contains("global_step"))
      raise(status::invalid_argument, "the result of an estimator's evaluate should have \"global_step\"");
    const bool is_final = max_steps_ && found.metrics.global_step() >= *max_steps_;
    std::vector<std::string> exported;
    // A process that was killed before it noted this checkpoint may have exported it: a save finds that by the source.
    decltype(export_call::save) save;
    if (e_->save)
      save = [this, source = text(found.metrics.global_step(), ' ', file_name_of(newest))](
                 const std::string& base, const serving_input_function& serving, saved_model_options o) {
        if (o.source.empty()) o.source = source;
        return e_->save(base, serving, o);
      };
    for (const any_exporter& x : spec_->exporters())
      exported.push_back(x.export_model({.model_dir = e_->model_dir,
                                         .export_path = join_path(join_path(e_->model_dir, "export"), x.name()),
                                         .checkpoint_path = newest,
                                         .eval_result = found.metrics,
                                         .is_the_final_export = is_final,
                                         .save = save,
                                         .limits = e_->config->limits}));
    warned_.reset();
    last_ = newest, last_step_ = found.metrics.global_step();
    if (!memory_.empty())
      publish(any_file_system(), join_path(memory_, memory_name), text(*last_step_, ' ', file_name_of(newest)));
    return {std::move(found), std::move(exported)};
  }

  const estimator_face* e_;
  const eval_spec* spec_;
  std::optional<std::int64_t> max_steps_;
  task_system tasks_;
  std::string memory_, remembered_, last_;
  std::optional<std::int64_t> last_step_;
  std::optional<double> warned_;
  bool looked_ = false;

  // The file holds, for instance, "150 model-150.ckpt": the last checkpoint that was evaluated and exported.
  static constexpr std::string_view memory_name = "evaluated";

  void recall() {
    std::vector<std::byte> bytes;
    if (memory_.empty() || try_read(any_file_system(), join_path(memory_, memory_name), 4096, bytes)) return;
    const std::string_view said(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::int64_t step = 0;
    const auto [end, problem] = std::from_chars(said.data(), said.data() + said.size(), step);
    if (problem != std::errc() || end == said.data() + said.size()) return;
    last_step_ = step, remembered_ = std::string(end + 1, said.data() + said.size());
  }
  // Returns the results of this evaluation by a process that was killed after it; the checkpoint may not have been
  // exported.
  evaluation_result known(const std::string& checkpoint) {
    evaluation_result found;
    if (std::exchange(looked_, true) || memory_.empty()) return found;
    const auto step = checkpoint_step(checkpoint);
    // What is recorded was exported, too; an earlier step is of a training that began anew.
    if (step && last_step_ && *step <= *last_step_) return found;
    const auto all = evaluations_in(memory_, e_->config->limits);
    return step && all.contains(*step) ? all.at(*step) : found;
  }

  void warn(const std::string& line) {
    const double now = tasks_.elapsed();
    if (warned_ && now - *warned_ <= 600) return;
    warned_ = now;
    e_->warn(line);
  }
};

GRADUS_BODY bool asks_to_go_on(const continuous_eval_listener& l) { return !l.before_eval || l.before_eval(); }
GRADUS_BODY bool tells_to_go_on(const continuous_eval_listener& l, const eval_outcome& found) {
  return !l.after_eval || l.after_eval(found);
}

// Evaluates after the saves of a training, on the thread of the training.
class evaluating_listener {
public:
  evaluating_listener(checkpoint_evaluator& evaluator, const estimator_face& e, const eval_spec& spec,
                      const train_and_evaluate_options& o)
      : evaluator_(&evaluator), e_(&e), o_(&o), throttle_(spec.throttle_secs()) {}

  void begin() { first_ = true, last_step_.reset(), last_begun_.reset(); }
  bool after_save(hooked_session&, std::int64_t step) {
    if (std::exchange(first_, false)) return false;  // nothing is trained yet
    if (!asks_to_go_on(o_->listener)) {
      e_->say("Exiting training and evaluation loop, as requested by before_eval.");
      return true;
    }
    if (last_step_ == step) return false;
    if (last_begun_ && o_->tasks.elapsed() < *last_begun_ + throttle_) {
      e_->say(text("Skip the current checkpoint eval due to throttle secs (", throttle_, " secs)."));
      return false;
    }
    evaluate(step);
    if (tells_to_go_on(o_->listener, outcome)) return false;
    e_->say("Exiting evaluation, as requested by after_eval.");
    return true;
  }
  void end(hooked_session&, std::int64_t step) { evaluate_last(step); }
  void evaluate_last(std::int64_t step) {
    if (last_step_ == step || !asks_to_go_on(o_->listener)) return;
    evaluate(step);
    tells_to_go_on(o_->listener, outcome);
  }

  eval_outcome outcome;
  std::vector<std::string> exported;

private:
  checkpoint_evaluator* evaluator_;
  const estimator_face* e_;
  const train_and_evaluate_options* o_;
  double throttle_;
  bool first_ = true;
  std::optional<std::int64_t> last_step_;
  std::optional<double> last_begun_;

  void evaluate(std::int64_t step) {
    last_step_ = step, last_begun_ = o_->tasks.elapsed();
    std::tie(outcome, exported) = evaluator_->evaluate_and_export();
    if (outcome.status != eval_outcome::evaluated)
      raise(
          status::failed_precondition,
          "There was no new checkpoint after the training: checkpoints must be written into the estimator's model_dir");
  }
};

class role_runner {
public:
  role_runner(const estimator_face& e, const train_spec& train, const eval_spec& eval,
              const train_and_evaluate_options& o)
      : e_(&e), train_(&train), eval_(&eval), o_(&o) {}

  train_and_evaluate_result run() {
    const run_config& c = *e_->config;
    const std::string& type = c.task_type();
    if (type == "evaluator" && c.task_id() > 0)
      raise(status::invalid_argument,
            text("For distributed training, there can only be one `evaluator` task (with task id 0). Given task id ",
                 c.task_id()));
    check_task(c);
    if (!c.cluster_spec() && type != "evaluator") return train_with_evaluations({});
    if (type == "local")
      raise(status::invalid_argument,
            "`task.type` in TF_CONFIG cannot be `local`. Leaving `cluster` and `task` out of TF_CONFIG trains and "
            "evaluates in this process alone.");
    if (type == "evaluator") {
      evaluate_continuously();
      return {};
    }
    if (type == "ps") {
      const auto server = start_server();
      if (server.join) server.join();
      return {};
    }
    if (type == "master") {
      const auto server = start_server();
      auto found = train_with_evaluations({});
      if (o_->here != nullptr) o_->here->finish();
      return found;
    }
    if (type == "chief" || type == "worker") {
      // The server starts before a worker sleeps, since the servers of a cluster wait for each other.
      const auto server = start_server();
      if (type == "worker") sleep_before_training();
      train(train_->saving_listeners());
      if (o_->here != nullptr) o_->here->finish();
      return {};
    }
    raise(status::invalid_argument,
          text("Task type \"", type,
               "\" is not supported. Supported task types are chief, evaluator, master, ps, worker"));
  }

private:
  using running_server = train_and_evaluate_options::running_server;
  const estimator_face* e_;
  const train_spec* train_;
  const eval_spec* eval_;
  const train_and_evaluate_options* o_;

  void train(const std::vector<any_saving_listener>& listeners) const {
    e_->train(train_->input_fn(),
              {.max_steps = train_->max_steps(), .hooks = train_->hooks(), .saving_listeners = listeners});
  }
  train_and_evaluate_result train_with_evaluations(std::vector<any_saving_listener> listeners) const {
    checkpoint_evaluator evaluator(*e_, *eval_, train_->max_steps(), o_->tasks);
    const auto behind = std::make_shared<evaluating_listener>(evaluator, *e_, *eval_, *o_);
    listeners = train_->saving_listeners();
    listeners.emplace_back(behind);
    const auto step = checkpoint_step(e_->latest_checkpoint());
    const bool was_over = train_->max_steps() && step && *step >= *train_->max_steps();
    train(listeners);
    if (was_over) behind->evaluate_last(*step);
    if (!evaluator.has_seen_the_last()) warn_of_no_final_export();
    return {std::move(behind->outcome.metrics), std::move(behind->exported)};
  }

  void warn_of_no_final_export() const {
    const auto until = train_->max_steps(), ended = checkpoint_step(e_->latest_checkpoint());
    if (until && ended && *ended >= *until) return;  // a listener has refused the evaluation
    for (const any_exporter& x : eval_->exporters())
      if (x.waits_for_the_final_export())
        e_->warn(text("The exporter \"", x.name(), "\" exported nothing: it waits for the evaluation of max_steps",
                      until ? text(" (", *until, ")") : ", which the train_spec does not have",
                      ended ? text(", and the training ended at step ", *ended) : "",
                      ". export_saved_model exports the newest checkpoint."));
  }

  // The configuration and the server have to say the same of this task.
  void check_task(const run_config& c) const {
    if (o_->here == nullptr || o_->here->network() == nullptr) return;
    const server_def& d = o_->here->def();
    if (c.cluster_spec() && c.task_type() == d.job_name && c.task_id() == d.task_index) return;
    raise(status::invalid_argument,
          text("the server of train_and_evaluate is ", d.job_name, " ", d.task_index,
               " of its cluster, and the run_config ",
               c.cluster_spec() ? text("says ", c.task_type(), " ", c.task_id()) : std::string("has no cluster"),
               "; make both from one TF_CONFIG (run_config::from_environment), or in a local_cluster by "
               "run_config::from_tf_config"));
  }
  running_server start_server() const {
    if (const server* const here = o_->here; here != nullptr) return {[here] { here->join(); }, nullptr};
    const run_config& c = *e_->config;
    if (c.place != nullptr && c.place->environment == "google" && c.task_type() != "ps") return {};
    if (c.master().empty()) {
      const auto jobs = c.cluster_spec().jobs();
      const bool alone = jobs.size() == 1 && c.cluster_spec().num_tasks(jobs[0]) == 1;
      if (!alone || c.task_type() == "ps")
        raise(status::failed_precondition, text("Could not start server of ", c.task_type(),
                                                ": the run_config has no master for this task; set "
                                                "TF_CONFIG, with an address for it"));
      e_->say("Skip starting Tensorflow server as there is only one node in the cluster.");
      return {};
    }
    e_->say("Start Tensorflow server.");
    if (o_->start_server) return o_->start_server(c);
    if (c.num_ps_replicas() > 0)
      e_->warn(text("the server of this ", c.task_type(),
                    " reaches no other task; where tasks train together, pass the server of the task, which its "
                    "optimizer is connected to: train_and_evaluate(..., {.here = &here})"));
    const auto here = std::make_shared<gradus::server>(
        server_def{.cluster = c.cluster_spec(), .job_name = c.task_type(), .task_index = c.task_id()}, true, o_->tasks);
    return {[here] { here->join(); }, here};
  }
  void sleep_before_training() const {
    const run_config& c = *e_->config;
    const auto& most = c.experimental_max_worker_delay_secs;
    const std::int64_t secs =
        std::min<std::int64_t>(most.has_value() ? most.value() : 60, 5 * (std::int64_t{c.task_id()} + 1));
    if (secs <= 0) return;
    e_->say(text("Waiting ", secs, " secs before starting training."));
    o_->tasks.sleep(static_cast<double>(secs));
  }

  void evaluate_continuously() const {
    const std::string directory =
        join_path(e_->model_dir, eval_->name().empty() ? std::string("eval") : text("eval_", eval_->name()));
    const std::shared_ptr<held_directory> alone = hold_role(directory, e_->model_dir, "evaluator");
    if (eval_->start_delay_secs() > 0) {
      e_->say(text("Waiting ", eval_->start_delay_secs(), " secs before starting eval."));
      o_->tasks.sleep(eval_->start_delay_secs());
    }
    checkpoint_evaluator evaluator(*e_, *eval_, train_->max_steps(), o_->tasks, directory);
    for (;;) {
      const double began = o_->tasks.elapsed();
      if (!asks_to_go_on(o_->listener)) return e_->say("Exiting evaluation, as requested by before_eval.");
      const eval_outcome found = evaluator.evaluate_and_export().first;
      if (!tells_to_go_on(o_->listener, found)) return e_->say("Exiting evaluation, as requested by after_eval.");
      const bool evaluated = found.status == eval_outcome::evaluated;
      if (found.status != eval_outcome::missing_checkpoint && evaluator.has_seen_the_last())
        return e_->say(
            text("Exiting evaluation: a checkpoint of max_steps (", *train_->max_steps(), ") was evaluated"));
      double left = eval_->throttle_secs() - (o_->tasks.elapsed() - began);
      if (!evaluated && eval_->throttle_secs() == 0) left = 1;
      if (left > 0) o_->tasks.sleep(left);
    }
  }
};

GRADUS_BODY train_and_evaluate_result train_and_evaluate_by(const estimator_face& e, const train_spec& train,
                                                            const eval_spec& eval,
                                                            const train_and_evaluate_options& o) {
  return role_runner(e, train, eval, o).run();
}

}  // namespace gradus::detail
