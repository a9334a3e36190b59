// A validation evaluates the model on other data every so many steps while a trainer trains; its result may end the
// training, which may end with the best parameters.
//
//   trainer.train(data, {.max_steps = 5000,
//                        .validation = {.data = test_set,
//                                       .every_n_steps = 100,
//                                       .stop_when = gradus::when_no_decrease("loss", 500),
//                                       .restore_best = true}});
//
// The checkpoint holds the state of the validation: the best value and its step, the last value, the position of the
// validation's data and, with restore_best, the best parameters, which make it twice as large. So a run that is killed
// and run again validates at the same steps and ends with the same bits. A run that its rule has ended does not go on
// when it is run again, unless the new rule allows more steps. Either all runs of a directory validate, or none does.
//
// Evaluations are written to model_dir/eval, as trainer.evaluate writes them. keep_checkpoint_best ranks checkpoints by
// the rule's metric, and a schedule that observes a value, reduce_on_plateau, is given it.
// hooks/early_stopping_hook.hpp has early stopping while an evaluator runs beside the training.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../checkpoint/retention.hpp"
#include "../input/any_dataset.hpp"
#include "run_hooks.hpp"

namespace gradus::inline GRADUS_BUILD {

// A stop rule defines when a validation ends the training, and which of two evaluations is the better. A metric that is
// NaN is the worst.
struct stop_condition {
  std::string metric = "loss";
  bool higher_is_better = false;
  std::int64_t max_steps = 0;            // without a better value; 0: no limit
  std::optional<double> threshold = {};  // ends once the value is better than this, not equal to it
};
stop_condition when_no_decrease(std::string metric, std::int64_t most_steps);
stop_condition when_no_increase(std::string metric, std::int64_t most_steps);
stop_condition when_lower(std::string metric, double threshold);
stop_condition when_higher(std::string metric, double threshold);

struct train_validation {
  // A batched dataset. It is copied in, or moved if it cannot be copied, and each evaluation reads it to its end.
  mutable any_units<true> data;
  std::int64_t every_n_steps = 0;  // above 0
  stop_condition stop_when = {};   // by default nothing ends the training early
  // If true, a run that reached its last step, or that the rule ended, ends with the variables, slots and averages of
  // its best evaluation; only the step is not put back. The last checkpoint holds them. Unimplemented in a cluster.
  bool restore_best = false;
  evaluate_options evaluation = {};  // of each evaluation; with `steps`, all read the same first batches
};

struct validated_train_options {
  std::int64_t max_steps = 0;  // as in train_options
  std::int64_t steps = 0;
  std::vector<any_hook> hooks = {};  // this and the next as in run_hooks.hpp
  std::vector<any_saving_listener> saving_listeners = {};
  train_validation validation;
};

namespace detail {
// This holds the kept values of a model: the bytes of a list's entries.
class kept_values final : public blob {
public:
  void keep(const state_list& from);
  // Sums of accumulated gradients stay as they are, since they belong to the count of steps, which stays. Raises
  // data_loss for the values of another model, and changes nothing then.
  void put_back(const state_list& to) const;
  bool empty() const { return bytes_.empty(); }
  void save(std::vector<std::byte>& out) const override;
  void load(std::span<const std::byte> in) override;

private:
  std::vector<std::byte> bytes_;  // of each entry: their number, then the bytes
};

// This is the validation's state in the checkpoint.
struct validation_state {
  double best = std::numeric_limits<double>::quiet_NaN(), last = best;
  std::int64_t best_step = -1, last_step = -1;  // -1: no evaluation yet
  std::int64_t waits = 0;                       // evaluations since the best one
  std::int64_t ended_step = -1;                 // the step at which the best values were put back
  kept_values best_values = {};

  void remembers(state_list& list);
  // Returns true if it is the best so far.
  bool take(double value, std::int64_t step, bool higher_is_better);
  bool ends(const stop_condition& c) const;
};

// These are the trainer's functions that a validation calls.
struct validation_calls {
  std::function<evaluation()> evaluate;
  std::function<void()> settle;                            // waits for saves that read the state
  std::function<void(std::optional<double> metric)> save;  // saves now, ranked by the metric if there is one
  std::function<void(double value)> measured, watch;       // ranks the newest checkpoint; gives a schedule the value
  std::function<void(double value)> begin_better;          // the best value of an earlier run, for when_better
  // The optimizer's state is that of step `from`, while the count of steps stays.
  std::function<void(std::int64_t from, std::int64_t step)> stay_at;
  std::function<void(const std::string&)> say, warn;
};

// Raises invalid_argument for a validation that would keep the worst checkpoints.
void check_validation(const train_validation& v, const keep_best& kept, bool saves_other_way);
// Raises invalid_argument for a schedule to which lower values are better where they are worse by the rule, or higher.
[[noreturn]] void refuse_other_way(const stop_condition& c);
[[noreturn]] void refuse_best_in_cluster();

class validated_steps {
public:
  // Raises invalid_argument for settings without a meaning.
  validated_steps(const train_validation& v, validation_state& s, state_list model, validation_calls calls);

  void remembers(state_list& list);
  bool is_over() const { return s_->ends(v_->stop_when); }
  bool is_pending(std::int64_t step, std::int64_t last) const {
    return (is_due(step) && s_->last_step != step) || puts_back(step, last);
  }
  void start(std::int64_t step) {
    if (s_->best_step >= 0) calls_.begin_better(s_->best);
    look(step);  // evaluates for a run that was killed before its evaluation
  }
  void look(std::int64_t step) {
    if (is_due(step) && s_->last_step != step) validate(step);
  }
  void finish(std::int64_t step, std::int64_t last);
  const char* left_for_the_last_step() const {
    return v_->restore_best ? "; the best values are put back at the last step only, so max_steps has to be reached"
                            : "";
  }

private:
  const train_validation* v_;
  validation_state* s_;
  state_list model_;  // the state of which the best values are kept
  validation_calls calls_;
  bool changed_ = false;

  bool is_due(std::int64_t step) const { return step > 0 && step % v_->every_n_steps == 0; }
  bool puts_back(std::int64_t step, std::int64_t last) const {
    return v_->restore_best && (step >= last || is_over()) && !s_->best_values.empty() && s_->ended_step != step;
  }
  void validate(std::int64_t step);
};

template <class Steps, class Loop>
struct validated_run : hooked_run<Steps, Loop> {
  using hooked = hooked_run<Steps, Loop>;
  validated_steps validation;

  validated_run(Steps& s, Loop& l, const validated_train_options& o, validated_steps v)
      : hooked(s, l, o.hooks, o.saving_listeners), validation(std::move(v)) {}
  void remembers(state_list& list) {
    validation.remembers(list);
    hooked::remembers(list);
  }
  bool is_over() const { return validation.is_over(); }
  bool is_pending(std::int64_t step, std::int64_t last) const { return validation.is_pending(step, last); }
  void start(const state_list& list, std::int64_t step) {
    hooked::start(list, step);
    validation.start(step);
  }
  void after_run(std::int64_t step) {
    hooked::after_run(step);
    validation.look(step);
  }
  bool should_stop() const { return hooked::should_stop() || validation.is_over(); }
  void finish(std::int64_t step, std::int64_t last) { validation.finish(step, last); }
  // Returns what a warning adds if the data end before the last step.
  const char* left_for_the_last_step() const { return validation.left_for_the_last_step(); }
};
}  // namespace detail

template <class Source, class... Policies>
template <class Dataset>
  requires detail::batches_to_change<Dataset>
void trainer<Source, Policies...>::train(Dataset&& data, const validated_train_options& options) {
  if (validation_ == nullptr) validation_ = std::make_shared<detail::validation_state>();
  const train_validation& v = options.validation;
  detail::validation_calls calls;
  if constexpr (composition::in_cluster)
    if (v.restore_best && stepper_.is_in_cluster()) detail::refuse_best_in_cluster();
  detail::check_validation(v, config_.keep_checkpoint_best, loop_.saves_other_way(v.stop_when.higher_is_better));
  calls.evaluate = [&] {
    loop_.settle_saves();                         // they read the validation's state, which is about to change
    if (v.evaluation.steps > 0) v.data.rewind();  // the same batches each time, as TensorFlow's input_fn gives them
    return evaluate(v.data, v.evaluation);
  };
  calls.settle = [&] { loop_.settle_saves(); };
  calls.save = [&](std::optional<double> metric) {
    if (loop_.saves()) loop_.save(metric);
  };
  calls.measured = [&](double value) {
    loop_.measured(value, stepper_.global_step());  // the decision about saves may use it too
  };
  calls.watch = [&]([[maybe_unused]] double value) {
    if constexpr (update_type::watches) watch(value);
  };
  calls.begin_better = [&](double value) { loop_.begin_better(value); };
  calls.stay_at = [&]([[maybe_unused]] std::int64_t from, [[maybe_unused]] std::int64_t step) {
    if constexpr (requires { stepper_.optimizer(); }) stepper_.optimizer().stay_at(from, step);
  };
  calls.warn = [&](const std::string& what) { loop_.warn_of(what); };
  if constexpr (update_type::watches)
    if (stepper_.optimizer().observes_other_way(v.stop_when.higher_is_better)) detail::refuse_other_way(v.stop_when);
  calls.say = [&](const std::string& line) { loop_.say(line); };
  detail::validated_run<stepper_type, decltype(loop_)> more(
      stepper_, loop_, options, detail::validated_steps(v, *validation_, state(), std::move(calls)));
  train_with(data, {options.max_steps, options.steps}, more);
}

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "validation.ipp"
#endif
