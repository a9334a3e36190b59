// An estimator is a model as a function of its features: it trains, evaluates and predicts, each in a graph and a
// session of its own. It corresponds to tf.estimator.Estimator (1.15).
//
//   gradus::estimator_spec model_fn(const gradus::named_tensors& features, gradus::value labels, gradus::mode m);
//   gradus::estimator digits(model_fn, {.model_dir = "runs/digits"});
//   digits.train([] { return gradus::labelled(training().repeat().batch(128), {"label"}); }, {.steps = 5000});
//   const auto found = digits.evaluate([] { return gradus::labelled(tests().batch(128), {"label"}); });
//   std::printf("%f\n", found["accuracy"]);
//   for (const auto& p : digits.predict([&] { return unknown().batch(32); })) use(p["classes"].as<std::int32_t>()[0]);
//
// The values of variables are kept in model_dir alone: each call restores the newest checkpoint, and train writes new
// ones.
//
// As in TensorFlow the position of the input is in no checkpoint (a trainer keeps it: docs/composition.md). TensorFlow
// differs: here only warnings are printed, unless `log` is given; and only one process, with one training at a time,
// may train into a model_dir.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../codec/flat.hpp"
#include "../run/session.hpp"
#include "../train/hooks/checkpoint_saver_hook.hpp"
#include "estimator_input.hpp"
#include "estimator_spec.hpp"
#include "evaluation_result.hpp"
#include "model_function.hpp"
#include "owned_tensor.hpp"
#include "prediction_range.hpp"
#include "serving_input.hpp"
#include "warm_start_source.hpp"

namespace gradus::inline GRADUS_BUILD {

// Makes a session of a graph with its optimizers.
using session_maker = std::function<std::unique_ptr<base_session>(graph&, const any_optimizers&)>;
// Returns a maker of sessions with these policies (run/session.hpp): estimator_sessions(threads{4}, ops<&mine>).
template <class Device = default_device, class... Policies>
session_maker estimator_sessions(Policies... policies) {
  return [policies...](graph& g, const any_optimizers& all) -> std::unique_ptr<base_session> {
    return std::make_unique<session<Device, any_optimizers, Policies...>>(g, all, policies...);
  };
}

// A stage between every input_fn and the model_fn, such as the columns of a canned estimator.
using input_stage = std::function<estimator_input(estimator_input, gradus::mode)>;

struct estimator_options {
  std::string model_dir = {};  // or config.model_dir; neither: a temporary directory, which stays
  run_config config = {};
  estimator_warm_start warm_start_from = {};  // where model_dir has no checkpoint yet
  any_codec codec = flat_binary{};   // of the checkpoints; flat_binary, safetensors, TensorFlow are also recognized
  session_maker sessions = nullptr;  // null: estimator_sessions()
  input_stage stage = nullptr;       // null: model_fn reads the output of input_fn
  // Gets warnings, the loss every log_step_count_steps steps, and results; null: warnings go to stderr.
  std::function<void(const std::string& line)> log = nullptr;
  task_system tasks = {};  // of hooks, saves and waits; default: the system's threads and clock
};

struct estimator_train_options {
  std::optional<std::int64_t> steps = {};  // of this call; give at most one of the two; neither: until the input ends
  std::optional<std::int64_t> max_steps = {};  // of all calls
  std::vector<any_hook> hooks = {};
  std::vector<any_saving_listener> saving_listeners = {};
};
struct estimator_evaluate_options {
  std::optional<std::int64_t> steps = {};  // batches; left out: until the input ends
  std::vector<any_hook> hooks = {};
  std::string checkpoint_path = {};  // empty: the newest
  std::string name = {};             // of the evaluation: its events go to model_dir/eval_<name>, else model_dir/eval
};
struct estimator_predict_options {
  std::vector<std::string> predict_keys = {};  // empty: all
  std::vector<any_hook> hooks = {};
  std::string checkpoint_path = {};
  bool yield_single_examples = true;  // false: a prediction is a batch
};

class monitored_session;
namespace detail {
class estimator_creator;
struct estimator_call;
}

class estimator {
public:
  // model_function.hpp describes model_fn. Params is any struct; it is copied, and model_fn and input_fn get it
  // unchanged. Raises invalid_argument for a model_fn that holds no function, for two model_dirs that differ, and for a
  // run_config that `validate` rejects.
  template <class ModelFn>
  explicit estimator(ModelFn model_fn, estimator_options o = {})
      : estimator(std::move(model_fn), std::move(o), no_params{}) {}
  template <class ModelFn, class Params>
  estimator(ModelFn model_fn, estimator_options o, Params params)
      : estimator(std::make_shared<const Params>(std::move(params)), std::move(model_fn), std::move(o)) {}

  // Trains from the newest checkpoint on, if there is one. Returns at once, and calls no function, if max_steps is
  // already reached. Warns if the data end before the last step, and of a keep_checkpoint_best whose metric nothing can
  // measure. Raises invalid_argument if both numbers of steps are
  // given or one is not positive, in the role evaluator or ps, and for saving listeners without a saver; unimplemented
  // for a task whose variables are in another process; failed_precondition if another training writes to model_dir; and
  // the errors of model_fn, input_fn, hooks and runs.
  estimator& train(const input_function& input_fn, const estimator_train_options& o = {});
  // Evaluates the newest checkpoint, or the given one; without any, variables with their initial values. Raises
  // invalid_argument for a number of steps that is not positive; not_found where the checkpoint lacks a variable that
  // the model has in mode evaluate, and invalid_argument where the variable has another dtype or shape.
  evaluation_result evaluate(const input_function& input_fn, const estimator_evaluate_options& o = {});
  // Returns a range that is read once; all work begins when its begin() is called. The estimator must outlive it.
  // begin() and reading the range raise the errors of evaluate, and invalid_argument for keys that do not exist, and
  // for single examples of predictions whose batches are not equally long.
  prediction_range predict(const input_function& input_fn, const estimator_predict_options& o = {});

  // Writes `<base>/<ten digits of seconds>`, a SavedModel (train/export_saved_model.hpp) of the newest checkpoint, or
  // of a given one; without any, of the source of the warm start. Its signatures are the spec's export_outputs; if
  // there is a single one, it is also "serving_default". Returns the path. Raises not_found without a checkpoint;
  // invalid_argument for several export_outputs of which none is "serving_default"; and the errors of evaluate and of
  // gradus::export_saved_model.
  std::string export_saved_model(const std::string& base, const serving_input_function& serving,
                                 const saved_model_options& o = {});
  // Does the same with a graph for each mode that has an input: train, evaluate, predict, in this order. The variables
  // are those of the first graph. Graphs to train and to evaluate have the signatures "train" and "eval", with the
  // loss, predictions/<key>, and for each of the spec's eval_metric_ops metrics/<name>/value and
  // metrics/<name>/update_op, which adds a batch to the metric. Raises unimplemented, with the name, for a metric that
  // TensorFlow's ops cannot compute. It corresponds to tf.estimator.Estimator.experimental_export_all_saved_models.
  std::string export_all_saved_models(const std::string& base,
                                      const std::map<gradus::mode, serving_input_function>& inputs,
                                      const saved_model_options& o = {});

  // These read the newest checkpoint. They raise not_found if there is none.
  std::vector<std::string> get_variable_names() const;
  owned_tensor get_variable_value(std::string_view name) const;
  // Returns the path of the newest checkpoint; empty if there is none.
  std::string latest_checkpoint() const;

  const std::string& model_dir() const { return o_.model_dir; }
  const run_config& config() const { return o_.config; }
  // Returns the directory where an evaluation of this name writes its events.
  std::string eval_dir(std::string_view name = {}) const;
  // Returns the batches that the current call reads, the innermost of nested ones, for a hook that saves their
  // position; null between calls.
  any_batches* running_batches() const { return running_.empty() ? nullptr : &running_.back()->batches(); }
  // Returns the input of that call, or null.
  running_input* input_at_work() const { return running_.empty() ? nullptr : running_.back(); }
  // Returns the clock and the waits of its calls, for a hook of them.
  const task_system& tasks() const { return o_.tasks; }
  // Writes a line to the log.
  void say(const std::string& line) const;
  void warn(const std::string& line) const;

private:
  template <class ModelFn, class Params>
  estimator(std::shared_ptr<const Params> params, ModelFn model_fn, estimator_options o)
      : params_(params), o_(checked(std::move(o))) {
    model_fn_ = make_model_function(std::move(model_fn), std::move(params));
    find_model_dir();
  }
  static estimator_options checked(estimator_options o);
  void find_model_dir();

  struct eval_events;
  detail::estimator_call build(gradus::mode m, const input_function& input_fn) const;
  detail::estimator_call build_to_export(gradus::mode m, const serving_input_function& serving,
                                         serving_input& in) const;
  detail::estimator_creator creator_of(detail::estimator_call& b, const std::string& checkpoint,
                                       bool from_warm_start = false) const;
  void run_once(detail::estimator_call& b, const std::string& checkpoint, const std::vector<any_hook>& hooks,
                const std::function<void(monitored_session&)>& body);
  // How to read a checkpoint for this graph, whose scaffold may have a saver of its own.
  detail::checkpoint_reading reading_for(const detail::estimator_call& b) const;
  // Returns false in a program without protozero whose save_summary_steps is 0: it has no event files.
  bool writes_events() const;
  void write_evaluation(const std::string& logdir, const evaluation_result& found, const std::string& checkpoint,
                        bool is_newest);

  any_params params_;
  estimator_options o_;
  model_function model_fn_;
  detail::checkpoint_reading reading_;
  std::shared_ptr<eval_events> events_;                       // null until an evaluation writes some
  std::shared_ptr<detail::any_summary_writer> train_events_;  // null until a training writes some
  std::string graph_file_;                                    // the last file of these that has the graph
  std::vector<running_input*> running_;                       // by the calls at work
  bool has_trained_ = false;                                  // in this process
  bool reaches_no_other_ = false;  // sessions are the default, and the cluster's variables are in other processes
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "estimator.ipp"
#endif
