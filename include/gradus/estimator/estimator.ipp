// The bodies of estimator.hpp.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "../base/body.hpp"
#include "../base/optional_library.hpp"
#include "../cluster/spec.hpp"
#include "../cpu/device.hpp"
#include "../ops/broadcast.hpp"
#include "../session/global_step.hpp"
#include "../session/session_creator.hpp"
#include "../store/directory_lock.hpp"
#include "../summary/shared_writer.hpp"
#include "../summary/values.hpp"
#include "../train/hooks/final_ops_hook.hpp"
#include "../train/hooks/logging_tensor_hook.hpp"
#include "../train/hooks/nan_tensor_hook.hpp"
#include "../train/hooks/step_counter_hook.hpp"
#include "../train/hooks/stop_at_step_hook.hpp"
#include "../train/hooks/summary_saver_hook.hpp"
#include "../train/loop_settings.hpp"
#include "../train/monitored_session.hpp"
#include "../train/progress.hpp"
#include "../train/run_environment.hpp"
#include "../train/run_log.hpp"
#include "checkpoint_values.hpp"
#include "estimator.hpp"
#include "estimator_call.hpp"
#include "estimator_prediction.hpp"
#include "export_signatures.hpp"
#include "training_call.hpp"

namespace gradus::inline GRADUS_BUILD {

struct estimator::eval_events : detail::evaluation_logs<posix, system_clock> {};

namespace detail {

GRADUS_BODY std::int64_t whole(double every) { return static_cast<std::int64_t>(every); }

GRADUS_BODY void check_positive(std::string_view what, std::optional<std::int64_t> n) {
  if (n && *n <= 0) raise(status::invalid_argument, text("Must specify ", what, " > 0, given: ", *n));
}

// Raises the error again with what it means for an estimator.
[[noreturn]] GRADUS_BODY void raise_modes_disagree(const error& e, gradus::mode m) {
  raise(e.kind(), text("the model_fn for mode ", name_of(m),
                       " does not have the variables of the checkpoint, which "
                       "mode train wrote: ",
                       e.what(), ". Make the same variables, with the same shapes, in every mode"));
}

// Ends an evaluation after so many batches.
struct stop_after_evals {
  std::int64_t left;
  void after_run(run_context& c, const run_values&) {
    if (--left <= 0) c.request_stop();
  }
};

}  // namespace detail

// ---- construction

GRADUS_BODY estimator_options estimator::checked(estimator_options o) {
  validate(o.config);
  if (!o.model_dir.empty() && !o.config.model_dir.empty() && o.model_dir != o.config.model_dir)
    raise(status::invalid_argument,
          text("model_dir are set both in constructor and RunConfig, but with different values. In constructor: \"",
               o.model_dir, "\", in RunConfig: \"", o.config.model_dir, "\""));
  if (o.model_dir.empty()) o.model_dir = o.config.model_dir;
  return o;
}

GRADUS_BODY void estimator::find_model_dir() {
  if (o_.sessions == nullptr) {
    o_.sessions = estimator_sessions();
    reaches_no_other_ =
        o_.config.num_ps_replicas() > 0 || (!o_.config.is_chief() && o_.config.task_type() != "evaluator");
  }
  if (o_.model_dir.empty()) {
    std::string path = (std::filesystem::temp_directory_path() / "gradus-estimator-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr)
      raise(status::unavailable, text("an estimator without a model_dir takes a temporary directory, and \"", path,
                                      "\" could not be made; give a model_dir"));
    o_.model_dir = path;
    warn(text("Using temporary folder as model directory: ", path));
  }
  o_.config.model_dir = o_.model_dir;
  reading_ = {o_.codec, o_.config.limits};
  o_.warm_start_from = o_.warm_start_from.read_with(o_.codec);
}
GRADUS_BODY detail::checkpoint_reading estimator::reading_for(const detail::estimator_call& b) const {
  return b.parts->saver() == nullptr ? reading_
                                     : detail::checkpoint_reading{b.parts->saver()->codec(), reading_.limits};
}

GRADUS_BODY void estimator::say(const std::string& line) const {
  if (o_.log) o_.log(line);
}
GRADUS_BODY void estimator::warn(const std::string& line) const {
  if (o_.log)
    o_.log(text("WARNING: ", line));
  else
    std::fprintf(stderr, "gradus: %s\n", line.c_str());
}

GRADUS_BODY std::string estimator::eval_dir(std::string_view name) const {
  return join_path(o_.model_dir, name.empty() ? std::string("eval") : text("eval_", name));
}

// ---- graphs

GRADUS_BODY detail::estimator_call estimator::build(gradus::mode m, const input_function& input_fn) const {
  if (!input_fn) raise(status::invalid_argument, "input_fn must be given: this one holds no function");
  detail::estimator_call b{.g = std::make_unique<graph>(m), .input = {}, .spec = {}, .step = {}, .parts = {}};
  // As in TensorFlow, only the nodes of training get devices; the global step takes the first turn.
  const auto placed = b.g->device(m == gradus::mode::train ? device_function_of(o_.config) : device_function());
  b.step = create_global_step(*b.g);
  estimator_input batches = input_fn({m, params_, o_.config});
  if (o_.stage) batches = o_.stage(std::move(batches), m);
  b.input = std::make_shared<running_input>(*b.g, std::move(batches), m != gradus::mode::predict);
  b.spec = model_fn_({b.input->features(), b.input->labels(), m, o_.config});
  validate(b.spec, m, *b.g);
  if (b.spec.loss && b.spec.loss.dims().rank != 0) b.spec.loss = reshape(b.spec.loss, {});
  b.parts = detail::parts_of(b.spec);
  return b;
}

// ---- train

GRADUS_BODY estimator& estimator::train(const input_function& input_fn, const estimator_train_options& o) {
  const run_config& c = o_.config;
  if (c.task_type() == "evaluator" || c.task_type() == "ps")
    raise(status::invalid_argument,
          text("Train has been called wrong configuration. Please use train_and_evaluate, which calls the proper "
               "function for the role \"",
               c.task_type(), "\" of this process"));
  if (o.steps && o.max_steps)
    raise(status::invalid_argument,
          text("Can not provide both steps (", *o.steps, ") and max_steps (", *o.max_steps, "); give one of them"));
  detail::check_positive("steps", o.steps), detail::check_positive("max_steps", o.max_steps);
  if (const auto step = o.max_steps ? detail::step_in_directory(o_.model_dir, reading_) : -1;
      o.max_steps && *o.max_steps <= step) {
    warn(text("Skipping training since max_steps has already saved: global_step is ", step, ", max_steps ",
              *o.max_steps, "; raise max_steps, or give steps"));
    return *this;
  }
  const bool chief = c.is_chief();
  std::shared_ptr<detail::held_directory> alone;
  if (chief)
    alone =
        detail::hold_role(o_.model_dir, o_.model_dir, bool(c.cluster_spec()) ? c.task_type() : std::string("training"));

  detail::estimator_call b = build(gradus::mode::train, input_fn);
  graph& g = *b.g;
  const bool in_cluster = b.spec.optimizers.in_cluster();
  if (reaches_no_other_ && !in_cluster)
    raise(status::unimplemented, text("the variables of this cluster are in another process than this ", c.task_type(),
                                      ", and the model's optimizer updates its own; give the optimizer "
                                      "gradus::connected{server}, train with a cluster of a chief and an evaluator, or "
                                      "give estimator_options::sessions that reach them"));
  if (detail::leaves_updates_out(g, b.spec.train_op))
    warn(
        "the moving averages of the model (batch_norm) are not updated: their ops, in collection::update_ops, are no "
        "part of train_op; let train_op be a g.group of the optimizer's op and of these");
  if (!detail::shows(g, "loss")) g.summary_scalar("loss", b.spec.loss);
  g.add_to(collection::losses, b.spec.loss);
  reading_ = reading_for(b);  // later calls have no saver of a scaffold, and read what it writes
  bool keeps_best = chief && b.parts->saver() == nullptr && c.keep_checkpoint_best.count > 0;
  if (b.parts->saver() == nullptr)
    b.parts->give_saver(
        std::make_shared<detail::any_saver>(detail::saver_options_for(c), o_.codec, any_file_system(), o_.tasks));

  // Hooks are in TensorFlow's order (train/hook.hpp): the hook that saves sees a step before the hook that checks it
  // for a NaN.
  std::vector<any_hook> of_all{std::ref(*b.input)};
  of_all.insert(of_all.end(), o.hooks.begin(), o.hooks.end());
  if (o.steps || o.max_steps) of_all.push_back(stop_at_step_hook({.num_steps = o.steps, .last_step = o.max_steps}));
  of_all.push_back(nan_tensor_hook(b.spec.loss));
  if (o_.log && c.log_step_count_steps > 0)
    of_all.push_back(logging_tensor_hook({{"loss", b.spec.loss}, {"step", b.step}},
                                         {.every_n_iter = detail::whole(c.log_step_count_steps),
                                          .sink = [this](const std::string& line) { say(line); },
                                          .tasks = o_.tasks}));
  of_all.insert(of_all.end(), b.spec.training_hooks.begin(), b.spec.training_hooks.end());

  std::vector<any_hook> hooks;
  checkpoint_saver_hook* saves = nullptr;
  for (const auto* list : {&of_all, &b.spec.training_chief_hooks})
    for (const any_hook& h : *list)
      if (saves == nullptr) saves = h.get_if<checkpoint_saver_hook>();
  if (keeps_best && b.spec.scaffold == nullptr) {
    if (saves == nullptr) warn(detail::best_of_nothing(c));  // a hook of the program's may have a saver of its own
    keeps_best = false;
  }
  const bool writes = chief && writes_events();
  if (writes && train_events_ == nullptr) train_events_ = detail::shared_summary_writer(o_.model_dir, c.summaries);
  const std::shared_ptr<detail::any_summary_writer> writer = writes ? train_events_ : nullptr;
  detail::events_of_call log(writer.get(), [this](const std::string& line) { warn(line); });
  detail::graph_noted graph_file{&graph_file_, writer.get()};
  const checkpoint_interval when = checkpoint_interval_of(c);
  std::shared_ptr<checkpoint_saver_hook> mine;
  if (saves == nullptr && (when.steps.active() || when.secs.active())) {
    mine = std::make_shared<checkpoint_saver_hook>(
        o_.model_dir,
        checkpoint_saver_options{
            .save_secs = when.secs.active() ? std::optional(when.secs.value()) : std::nullopt,
            .save_steps = when.steps.active() ? std::optional(detail::whole(when.steps.value())) : std::nullopt,
            .parts = b.parts.get(),
            .summary_writer = writer,
            .write_graph = c.checkpoint_save_graph_def,
            .tasks = o_.tasks,
            .adds_graph = writer != nullptr && writer->path() != graph_file_});
    saves = mine.get();
    graph_file.hook = mine;
  }
  if (!o.saving_listeners.empty() && saves == nullptr)
    raise(status::invalid_argument,
          "There should be a CheckpointSaverHook to use saving_listeners. Please set one of the "
          "run_config.save_checkpoints_steps or save_checkpoints_secs.");
  const detail::listeners_of_call added(saves);
  for (const any_saving_listener& l : o.saving_listeners) saves->add_listener(l);
  if (writer != nullptr && saves != nullptr) saves->add_listener(detail::events_before_saves{writer.get()});
  std::int64_t saves_made = 0, saved_step = 0;
  if (keeps_best && saves != nullptr) saves->add_listener(detail::counted_saves{&saves_made, &saved_step});
  if (chief) {
    // TensorFlow differs: what writes events comes before what saves, so that the events of a step are on file before
    // its checkpoint is. A run that is killed between the two begins again behind that step.
    if (c.log_step_count_steps > 0)
      hooks.push_back(step_counter_hook(
          {.every_n_steps = detail::whole(c.log_step_count_steps), .summary_writer = writer, .tasks = o_.tasks}));
    if (c.save_summary_steps > 0)
      hooks.push_back(summary_saver_hook({.save_steps = detail::whole(c.save_summary_steps),
                                          .summary_writer = writer,
                                          .parts = b.parts.get(),
                                          .tasks = o_.tasks}));
    if (mine != nullptr) hooks.push_back(mine);
    hooks.insert(hooks.end(), b.spec.training_chief_hooks.begin(), b.spec.training_chief_hooks.end());
  }
  hooks.insert(hooks.end(), of_all.begin(), of_all.end());

  const auto restore = [&](base_session& s) {
    if (in_cluster && !chief) return false;  // it gets the chief's values
    state_list list;
    s.remembers(list);
    restore_options how{.fallback = c.restore_fallback,
                        .restore_newest = c.restore_newest,
                        .prefix = saves != nullptr ? saves->checkpoint_basename() : detail::loop_settings().basename};
    auto found = b.parts->saver()->restore_latest(list, o_.model_dir, how);
    // A saver of the program's may have given its checkpoints another name.
    if (!found) how.prefix.clear(), found = b.parts->saver()->restore_latest(list, o_.model_dir, how);
    if (found)
      for (const std::string& w : detail::warnings_of(*found)) warn(w);
    return found.has_value();
  };
  if (!has_trained_) b.input->skip_contributed(c.restore_input);
  detail::estimator_creator creator(
      [&] { return o_.sessions(g, b.spec.optimizers); }, g, c.tf_random_seed, b.parts, restore,
      detail::warm_starter(o_.warm_start_from, g, [this](const std::string& l) { say(l); }), o_.tasks);
  const detail::listed_while at_work(running_, b.input.get());
  std::int64_t runs = 0;
  double last_loss = 0;
  std::optional<std::int64_t> first_step;
  std::int64_t step_now = 0;
  bool data_ended = false;
  hooks.push_back(detail::steps_seen{&first_step, &step_now});
  monitored_session sess(creator, hooks, {.tasks = o_.tasks, .holds = alone});
  sess.within([&] {
    try {
      while (!sess.should_stop()) {
        const run_results r = sess.run({b.spec.train_op, b.spec.loss, b.step});
        last_loss = detail::number_in(r[1]), ++runs;
      }
    } catch (const out_of_range&) {
      data_ended = !sess.coord().should_stop();
      throw;
    }
  });
  log.close();
  has_trained_ = true;
  if (runs == 0 && b.input->skipped() != 0)
    warn(text("Training with estimator made no steps: this task skipped the ", b.input->skipped(),
              " batches that it has contributed already, and the input has no more. Add .repeat() to it; "
              "run_config{.restore_input = saved_input::ignored} reads it from its beginning"));
  else if (runs == 0)
    warn("Training with estimator made no steps. Perhaps input is empty or misspecified.");
  else
    say(text("Loss for final step: ", last_loss, "."));
  const std::int64_t last = o.max_steps ? *o.max_steps : o.steps ? first_step.value_or(0) + *o.steps : 0;
  if (runs > 0 && data_ended && step_now < last)
    warn(detail::data_ended(step_now, last, runs, "add .repeat() to what input_fn gives to go on"));
  if (const detail::loop_settings best{.keeps_best = c.keep_checkpoint_best.count}; keeps_best) {
    checkpoint_state kept;
    if (!try_read_state(any_file_system(), join_path(o_.model_dir, state_file_name), kept) && kept.best.empty())
      if (const auto said = detail::unranked_checkpoints(best, saves_made, saved_step); !said.empty()) warn(said);
  }
  return *this;
}

// ---- evaluate

GRADUS_BODY evaluation_result estimator::evaluate(const input_function& input_fn, const estimator_evaluate_options& o) {
  detail::check_positive("steps", o.steps);
  const std::string path = o.checkpoint_path.empty() ? latest_checkpoint() : o.checkpoint_path;
  if (path.empty())
    warn(text("Could not find trained model in model_dir: ", o_.model_dir, ", running initialization to evaluate."));
  // Looked at now: a training may save another one meanwhile.
  const bool is_newest = is_newest_checkpoint(any_file_system(), o_.model_dir, o.checkpoint_path);

  detail::estimator_call b = build(gradus::mode::evaluate, input_fn);
  if (!o.steps && o.hooks.empty() && b.spec.evaluation_hooks.empty() &&  // hooks may stop it
      b.input->batches().cardinality() == infinite_cardinality)
    detail::refuse_endless_evaluation();
  graph& g = *b.g;
  std::vector<std::string> names;
  std::vector<value> results;
  std::vector<fetch> updates;
  value batches;
  {
    const auto scope = g.name_scope("evaluation");
    b.spec.eval_metric_ops["loss"] = metrics::mean(b.spec.loss, {.name = "loss"});
    batches = g.variable("eval_step", {}, {.init = zeros, .trainable = false, .local = true, .type = int64});
    updates.emplace_back(assign_add(batches, g.constant(1, int64)));
  }
  for (const auto& [name, m] : b.spec.eval_metric_ops) {
    names.push_back(name), results.push_back(m.result), updates.emplace_back(m.update);
  }
  results.push_back(b.step), results.push_back(batches);

  final_ops_hook last(results);
  std::vector<any_hook> hooks{std::ref(*b.input)};
  hooks.insert(hooks.end(), o.hooks.begin(), o.hooks.end());
  if (o.steps) hooks.push_back(detail::stop_after_evals{*o.steps});
  hooks.insert(hooks.end(), b.spec.evaluation_hooks.begin(), b.spec.evaluation_hooks.end());
  hooks.push_back(std::ref(last));
  run_once(b, path, hooks, [&](monitored_session& sess) {
    while (!sess.should_stop()) sess.run(updates);
  });

  evaluation_result found;
  const datum& values = last.final_ops_values();
  for (std::size_t i = 0; i < names.size(); ++i) found.set(names[i], values[i]);
  found.set_global_step(detail::step_in(values[names.size()]));
  if (detail::step_in(values[names.size() + 1]) == 0)  // TensorFlow returns these numbers too, without a warning
    warn("evaluate: the input gave no batch, so these are the first values of the metrics; look at the input_fn");
  try {
    write_evaluation(eval_dir(o.name), found, path, is_newest);
  } catch (const permission_denied& e) {  // the values of a run that may only be read are not lost
    warn(text("evaluate: the events of this evaluation are not written: ", e.what()));
  }
  return found;
}

GRADUS_BODY void estimator::run_once(detail::estimator_call& b, const std::string& checkpoint,
                                     const std::vector<any_hook>& hooks,
                                     const std::function<void(monitored_session&)>& body) {
  detail::estimator_creator creator = creator_of(b, checkpoint);
  const detail::listed_while at_work(running_, b.input.get());
  monitored_session sess(creator, hooks, {.tasks = o_.tasks});
  sess.within([&] { body(sess); });
}

GRADUS_BODY void estimator::write_evaluation(const std::string& logdir, const evaluation_result& found,
                                             const std::string& checkpoint, bool is_newest) {
  const std::int64_t step = found.global_step();
  std::string line;
  for (const auto& [name, v] : found) {
    if (v.size() != 1) {
      line += text(line.empty() ? "" : ", ", name, " = ", v.size(), " numbers, which TensorBoard does not show");
      continue;
    }
    line += text(line.empty() ? "" : ", ", name, " = ", v.number());
  }
  if (writes_events()) {
    summary_values all = detail::summaries_of(found);
    if (!checkpoint.empty()) all.push_back(text_summary("checkpoint_path", checkpoint).front());
    if (events_ == nullptr) events_ = std::make_shared<eval_events>();
    events_->add(logdir, all, step, is_newest);
  }
  say(text("Saving dict for global step ", step, ": ", line));
}

GRADUS_BODY bool estimator::writes_events() const { return detail::has_protozero || o_.config.save_summary_steps > 0; }

GRADUS_BODY detail::estimator_creator estimator::creator_of(detail::estimator_call& b, const std::string& checkpoint,
                                                            bool from_warm_start) const {
  const gradus::mode m = b.g->mode();
  detail::checkpoint_reading how = reading_for(b);
  if (from_warm_start)
    if (const auto& given = o_.warm_start_from.given_codec()) how.own = *given;
  const auto restore = [checkpoint, m, how = std::move(how), seed = o_.config.tf_random_seed](base_session& s) {
    if (checkpoint.empty()) return false;
    // Before the try: a file that is not there is no fault of the model_fn.
    static_cast<void>(detail::find_checkpoint(checkpoint, how.own));
    try {
      detail::restore_variables(s, checkpoint, seed, how);
    } catch (const not_found& e) {
      detail::raise_modes_disagree(e, m);
    } catch (const invalid_argument& e) {
      detail::raise_modes_disagree(e, m);
    }
    return true;
  };
  return {[this, &b] { return o_.sessions(*b.g, b.spec.optimizers); },
          *b.g,
          o_.config.tf_random_seed,
          b.parts,
          restore,
          detail::warm_starter(o_.warm_start_from, *b.g, [this](const std::string& l) { say(l); }),
          o_.tasks};
}

// ---- export

GRADUS_BODY detail::estimator_call estimator::build_to_export(gradus::mode m, const serving_input_function& serving,
                                                              serving_input& in) const {
  if (!serving) raise(status::invalid_argument, "a serving function must be given: this one holds no function");
  detail::estimator_call b{.g = std::make_unique<graph>(m), .input = {}, .spec = {}, .step = {}, .parts = {}};
  b.step = create_global_step(*b.g);
  in = serving(*b.g);
  b.spec = model_fn_({in.features, in.labels, m, o_.config});
  validate(b.spec, m, *b.g);
  if (b.spec.loss && b.spec.loss.dims().rank != 0) b.spec.loss = reshape(b.spec.loss, {});
  b.parts = detail::parts_of(b.spec);
  return b;
}

GRADUS_BODY std::string estimator::export_saved_model(const std::string& base, const serving_input_function& serving,
                                                      const saved_model_options& o) {
  return export_all_saved_models(base, {{gradus::mode::predict, serving}}, o);
}

GRADUS_BODY std::string estimator::export_all_saved_models(const std::string& base,
                                                           const std::map<gradus::mode, serving_input_function>& inputs,
                                                           const saved_model_options& o) {
  if (inputs.empty()) detail::raise_no_modes();
  std::string path = o.checkpoint_path.empty() ? latest_checkpoint() : o.checkpoint_path;
  const bool from_warm_start = path.empty() && o_.warm_start_from;
  if (from_warm_start) path = o_.warm_start_from.settings().ckpt_to_initialize_from;
  if (path.empty())
    raise(status::not_found, text("Couldn't find trained model at \"", o_.model_dir, "\": train first"));
  std::vector<detail::estimator_call> all;
  std::vector<export_graph> graphs;
  for (const auto& [m, serving] : inputs) {  // in the order of modes
    serving_input in;
    all.push_back(build_to_export(m, serving, in));
    graphs.push_back(
        {all.back().g.get(), detail::signatures_of(all.back().spec, in), {std::string(detail::export_tag(m))}});
  }
  const auto s = creator_of(all.front(), path, from_warm_start).create_session();
  std::string written = gradus::export_saved_model(
      base, *s, graphs,
      {.assets_extra = o.assets_extra, .features = o.features, .source = o.source, .tasks = o_.tasks});
  say(text("SavedModel written to: ", written));
  return written;
}

// ---- the contents of model_dir

GRADUS_BODY std::string estimator::latest_checkpoint() const {
  return gradus::latest_checkpoint(any_file_system(), o_.model_dir);
}
GRADUS_BODY std::vector<std::string> estimator::get_variable_names() const {
  return detail::variables_in(detail::needed_checkpoint(latest_checkpoint(), o_.model_dir), reading_);
}
GRADUS_BODY owned_tensor estimator::get_variable_value(std::string_view name) const {
  return detail::variable_in(detail::needed_checkpoint(latest_checkpoint(), o_.model_dir), name, reading_);
}

// ---- predict

GRADUS_BODY prediction_range estimator::predict(const input_function& input_fn, const estimator_predict_options& o) {
  const auto path = std::make_shared<std::string>(o.checkpoint_path);
  return prediction_range(std::make_shared<detail::prediction_of_estimator>(
      detail::prediction_parts{.build =
                                   [this, input_fn, path] {
                                     if (path->empty()) *path = latest_checkpoint();
                                     if (path->empty())
                                       warn(text("Could not find trained model in model_dir: ", model_dir(),
                                                 ", running initialization to predict."));
                                     return build(gradus::mode::predict, input_fn);
                                   },
                               .creator = [this, path](detail::estimator_call& b) { return creator_of(b, *path); },
                               .running = &running_,
                               .predict_keys = o.predict_keys,
                               .hooks = o.hooks,
                               .single_examples = o.yield_single_examples,
                               .tasks = o_.tasks}));
}

}  // namespace gradus
