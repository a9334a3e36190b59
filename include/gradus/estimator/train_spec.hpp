// These specs say how train_and_evaluate trains and evaluates, as tf.estimator.TrainSpec and EvalSpec do (1.15).
//
//   gradus::train_spec training(input_fn, {.max_steps = 20'000});
//   gradus::eval_spec evaluating(eval_input_fn, {.steps = {}, .throttle_secs = 60});
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../train/hooks/checkpoint_saver_hook.hpp"
#include "estimator_input.hpp"
#include "exporter.hpp"

namespace gradus::inline GRADUS_BUILD {

struct train_spec_options {
  std::optional<std::int64_t> max_steps = {};  // unset: until the input ends; in a cluster, for ever
  std::vector<any_hook> hooks = {};
  std::vector<any_saving_listener> saving_listeners = {};
};
class train_spec {
public:
  // Raises invalid_argument for max_steps that are not above 0, and without a function.
  explicit train_spec(input_function input_fn, train_spec_options o = {});

  const input_function& input_fn() const { return input_fn_; }
  const std::optional<std::int64_t>& max_steps() const { return o_.max_steps; }
  const std::vector<any_hook>& hooks() const { return o_.hooks; }
  const std::vector<any_saving_listener>& saving_listeners() const { return o_.saving_listeners; }

private:
  input_function input_fn_;
  train_spec_options o_;
};

struct eval_spec_options {
  std::optional<std::int64_t> steps = 100;  // batches; {}: until the input ends
  std::string name = {};                    // events go to model_dir/eval_<name>; empty: to model_dir/eval
  std::vector<any_hook> hooks = {};         // of each evaluation
  exporter_list exporters = {};             // called after each evaluation
  double start_delay_secs = 120;            // of an evaluator, after its start
  double throttle_secs = 600;               // the least time from the start of one evaluation to the start of the next
};
class eval_spec {
public:
  // Raises invalid_argument for steps that are not above 0, for negative seconds, for exporters with the same name or
  // an empty one, and without a function.
  explicit eval_spec(input_function input_fn, eval_spec_options o = {});

  const input_function& input_fn() const { return input_fn_; }
  const std::optional<std::int64_t>& steps() const { return o_.steps; }
  const std::string& name() const { return o_.name; }
  const std::vector<any_hook>& hooks() const { return o_.hooks; }
  const exporter_list& exporters() const { return o_.exporters; }
  double start_delay_secs() const { return o_.start_delay_secs; }
  double throttle_secs() const { return o_.throttle_secs; }

private:
  input_function input_fn_;
  eval_spec_options o_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "train_spec.ipp"
#endif
