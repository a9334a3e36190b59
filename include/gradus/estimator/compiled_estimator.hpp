// make_estimator returns an estimator of a model that is built at compile time: it has the train, evaluate and predict
// of estimator.hpp, made of a trainer's steps. Params are constants of the model, the rule is a policy.
//
//   auto digits = gradus::make_estimator<model>(gradus::adam{.rate = 1e-3}, gradus::run_config{.model_dir = "runs/a"});
//   digits.train([] { return training(); }, {.max_steps = 5000});
//   digits.evaluate([] { return tests(); })["accuracy"];
//
// The numbers are those of make_trainer with the same policies. The input_fn returns a batched dataset, of its own
// type, and takes mode, config, both or neither; its components go to the placeholders of the same names, so labels are
// not listed. As with a trainer, the position of the input is in the checkpoint, and an evaluation's loss is the mean
// over examples. A warm start is a policy: estimator_warm_start, whose source is chosen when the program runs, or
// warm_start_from. For an export the model function is called once more. Only `estimator` has hooks of an evaluation,
// and computes no more predictions than predict_keys asks for.
#pragma once
#include "../base/build.hpp"

#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../train/run_hooks.hpp"
#include "../train/trainer.hpp"
#include "checkpoint_values.hpp"
#include "estimator_input.hpp"
#include "evaluation_result.hpp"
#include "export_signatures.hpp"
#include "prediction_range.hpp"

namespace gradus::inline GRADUS_BUILD {

struct compiled_train_options {
  std::optional<std::int64_t> steps = {};  // of this call; give at most one of the two; neither: until the input ends
  std::optional<std::int64_t> max_steps = {};  // of all calls
  std::vector<any_hook> hooks = {};            // train/run_hooks.hpp
  std::vector<any_saving_listener> saving_listeners = {};
};
struct compiled_evaluate_options {
  std::optional<std::int64_t> steps = {};  // batches; left out: until the input ends
  std::string name = {};                   // events go to model_dir/eval_<name>; empty: to model_dir/eval
  // The checkpoint to evaluate, by a separate trainer, so that it may be done during a training; empty: the newest, or
  // the trained values.
  std::string checkpoint_path = {};
};
struct compiled_predict_options {
  std::vector<std::string> predict_keys = {};  // names of predictions; empty: all
  bool yield_single_examples = true;           // false: a prediction is a batch
};

namespace detail {
// Gives a reader one batch of another dataset, then ends; after a rewind it gives the next batch.
class one_batch_at_a_time final : public composable<one_batch_at_a_time> {
public:
  explicit one_batch_at_a_time(any_batches from) : from_(std::move(from)) {}
  const components& element_spec() const { return from_.element_spec(); }
  std::int64_t batch_size() const { return from_.batch_size(); }
  std::int64_t pull(std::span<const tensor_view> out, std::int64_t first, std::int64_t n) {
    return std::exchange(given_, true) ? 0 : from_.pull(out, first, n);
  }
  void rewind() { given_ = false; }
  void define(std::string& to) const { from_.define(to); }
  void write(position_writer& to) const { from_.write(to); }
  void read(position_reader& from) { from_.read(from); }

private:
  any_batches from_;
  bool given_ = false;
};

// Splits the predictions of a batch into views of single examples.
class batch_of_predictions : public prediction_run {
public:
  batch_of_predictions(std::vector<std::string> keys, bool single) : keys_(std::move(keys)), single_(single) {}
  void begin() final {
    if (!std::exchange(begun_, true)) next_batch();
  }
  bool ended() const final { return ended_; }
  void next() final {
    if (single_ && ++at_ < length_)
      show();
    else
      next_batch();
  }

protected:
  // Reads the next batch; false: there is none.
  virtual bool read(std::vector<std::pair<std::string, owned_tensor>>& into) = 0;

private:
  std::vector<std::string> keys_;
  bool single_, begun_ = false, ended_ = false;
  std::int64_t at_ = 0, length_ = 0;
  std::vector<std::pair<std::string, owned_tensor>> batch_;

  void next_batch();
  void show();
};
}  // namespace detail

template <class Trainer, auto Model>
class compiled_estimator {
public:
  explicit compiled_estimator(Trainer made) : trainer_(std::make_unique<Trainer>(std::move(made))) {}
  template <class Make>
    requires std::same_as<std::invoke_result_t<const Make&>, Trainer>
  explicit compiled_estimator(Make make)
      : trainer_(new Trainer(make())), make_([make] { return std::unique_ptr<Trainer>(new Trainer(make())); }) {}

  // Raises invalid_argument if both numbers of steps are given or one is not positive; failed_precondition for saving
  // listeners of a run that saves nothing; and the errors of the trainer's train.
  template <class InputFn>
  compiled_estimator& train(InputFn input_fn, const compiled_train_options& o = {}) {
    if (o.steps && o.max_steps)
      raise(status::invalid_argument,
            text("Can not provide both steps (", *o.steps, ") and max_steps (", *o.max_steps, "); give one of them"));
    check_positive("steps", o.steps), check_positive("max_steps", o.max_steps);
    if (const auto step = o.max_steps ? detail::step_in_directory(model_dir(), reading()) : -1;
        o.max_steps && *o.max_steps <= step) {
      trainer_->warn(detail::stood_there(step, *o.max_steps));
      return *this;
    }
    auto data = batches_of(input_fn, mode::train);
    hooked_train_options how{.max_steps = o.max_steps.value_or(0),
                             .steps = o.steps.value_or(0),
                             .hooks = o.hooks,
                             .saving_listeners = o.saving_listeners};
    if (!o.steps && !o.max_steps) how.max_steps = std::numeric_limits<std::int64_t>::max();
    trainer_->train(data, how);
    return *this;
  }
  // Raises failed_precondition before there is a checkpoint, and the errors of the trainer's evaluate.
  template <class InputFn>
  evaluation_result evaluate(InputFn input_fn, const compiled_evaluate_options& o = {}) {
    check_positive("steps", o.steps);
    auto data = batches_of(input_fn, mode::evaluate);
    const std::string name = o.name.empty() ? std::string("eval") : text("eval_", o.name);
    Trainer& by = o.checkpoint_path.empty() ? *trainer_ : evaluator();
    const evaluation found =
        by.evaluate(data, {.steps = o.steps.value_or(0), .name = name, .checkpoint_path = o.checkpoint_path});
    evaluation_result all;
    for (const auto& [key, v] : found.values()) all.set(key, const_tensor_view(std::span<const double>(&v, 1), {}));
    all.set_global_step(found.global_step());
    return all;
  }
  // Returns a range that is read once; each batch is computed when the range reaches it. The estimator must outlive it.
  template <class InputFn>
  prediction_range predict(InputFn input_fn, const compiled_predict_options& o = {}) {
    return prediction_range(std::make_shared<predicting<InputFn>>(*this, std::move(input_fn), o));
  }

  // Writes `<base>/<ten digits of seconds>`, a SavedModel of the newest checkpoint, or of a given one. Its inputs are
  // the model's placeholders, by their names, as far as the outputs need them; "serving_default" gives the predictions.
  // Raises not_found without a checkpoint; invalid_argument for a model without predictions, and for variables that the
  // checkpoint lacks; and the errors of gradus::export_saved_model.
  std::string export_saved_model(const std::string& base, const saved_model_options& o = {}) const {
    return export_all_saved_models(base, {gradus::mode::predict}, o);
  }
  // Does the same with a graph for each mode; the signatures "train" and "eval" are those of
  // estimator::export_all_saved_models.
  std::string export_all_saved_models(const std::string& base, const std::set<gradus::mode>& modes,
                                      const saved_model_options& o = {}) const {
    const std::string path =
        o.checkpoint_path.empty() ? detail::needed_checkpoint(latest_checkpoint(), model_dir()) : o.checkpoint_path;
    std::vector<detail::model_to_export> all;
    for (const gradus::mode m : modes) {
      auto g = std::make_unique<graph>(m);
      // A copy: two files may each have a model of this name, and clang 19 merges the objects of template arguments.
      constexpr auto build = Model;
      const model_spec made = build(*g);
      all.push_back(detail::export_of_model(std::move(g), made));
    }
    return detail::export_checkpoint(base, path, all, o, reading());
  }

  std::string latest_checkpoint() const { return gradus::latest_checkpoint(any_file_system(), model_dir()); }
  std::vector<std::string> get_variable_names() const {
    return detail::variables_in(detail::needed_checkpoint(latest_checkpoint(), model_dir()), reading());
  }
  owned_tensor get_variable_value(std::string_view name) const {
    return detail::variable_in(detail::needed_checkpoint(latest_checkpoint(), model_dir()), name, reading());
  }
  const std::string& model_dir() const { return config().model_dir; }
  const run_config& config() const { return trainer_->config(); }
  Trainer& trainer() { return *trainer_; }
  // Writes a line to the trainer's log sink.
  void say(std::string_view line) { trainer_->say(line); }
  void warn(std::string_view line) { trainer_->warn(line); }

private:
  std::unique_ptr<Trainer> trainer_, evaluator_;
  std::function<std::unique_ptr<Trainer>()> make_;

  detail::checkpoint_reading reading() const { return {trainer_->codec(), config().limits}; }
  // Returns a trainer that never trains, so that an evaluation does not change the values of a running training.
  Trainer& evaluator() {
    if (evaluator_ == nullptr && make_) evaluator_ = make_();
    return evaluator_ != nullptr ? *evaluator_ : *trainer_;
  }

  static void check_positive(std::string_view what, std::optional<std::int64_t> n) {
    if (n && *n <= 0) raise(status::invalid_argument, text("Must specify ", what, " > 0, given: ", *n));
  }
  template <class InputFn>
  auto batches_of(InputFn& f, mode m) const {
    if constexpr (std::is_invocable_v<InputFn&, mode, const run_config&>)
      return f(m, config());
    else if constexpr (std::is_invocable_v<InputFn&, mode>)
      return f(m);
    else if constexpr (std::is_invocable_v<InputFn&, const run_config&>)
      return f(config());
    else
      return f();
  }

  template <class InputFn>
  class predicting final : public detail::batch_of_predictions {
  public:
    predicting(compiled_estimator& e, InputFn f, const compiled_predict_options& o)
        : batch_of_predictions(o.predict_keys, o.yield_single_examples), e_(&e), f_(std::move(f)) {}

  private:
    compiled_estimator* e_;
    InputFn f_;
    std::optional<detail::one_batch_at_a_time> data_;
    detail::values_seen seen_;  // one checkpoint is read for all batches

    bool read(std::vector<std::pair<std::string, owned_tensor>>& into) override {
      if (!data_) data_.emplace(any_batches(e_->batches_of(f_, mode::predict)));
      into.clear();
      e_->trainer_->predict(
          *data_,
          [&](const predictions& p) {
            p.for_each(
                [&](std::string_view name, const const_tensor_view& v) { into.emplace_back(name, owned_tensor(v)); });
          },
          &seen_);
      return !into.empty();
    }
  };
};

// Takes the policies of make_trainer, in any order. make_trainer rejects those that do not fit.
template <auto Model, class... Policies>
auto make_estimator(const Policies&... policies) {
  return compiled_estimator<decltype(make_trainer<Model>(policies...)), Model>(
      [policies...] { return make_trainer<Model>(policies...); });
}

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "compiled_estimator.ipp"
#endif
