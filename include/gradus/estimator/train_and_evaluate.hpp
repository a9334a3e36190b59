// train_and_evaluate trains, evaluates and exports, as the role of this process requires. It corresponds to
// tf.estimator.train_and_evaluate (1.15).
//
//   gradus::train_and_evaluate(est, gradus::train_spec(input_fn, {.max_steps = 20'000}), gradus::eval_spec(eval_fn));
//
//   role                  its work
//   alone                 trains, and evaluates its checkpoints: not more often than throttle_secs, but the last step
//                         in any case; returns the last evaluation and its exports
//   chief                 starts its server and trains; the evaluator of the cluster evaluates
//   worker i              starts its server, waits min(D, 5 (i + 1)) seconds, trains; D = 60, or
//                         experimental_max_worker_delay_secs
//   ps                    starts its server, which serves until it is stopped; in a cluster that trains, until the
//                         last worker has left
//   evaluator             waits start_delay_secs; then looks every throttle_secs and evaluates each newest checkpoint,
//                         until one of max_steps or later was evaluated
//   master                trains as chief, and evaluates as a process that is alone
//
// Tasks that train together are given their server, through which the estimator is also connected (docs/cluster.md):
//
//   const gradus::server here(gradus::grpc{gradus::mtls{"certs"}}, config);
//   auto est = gradus::make_estimator<model>(gradus::connected{here}, gradus::sync_replicas{}, gradus::adam{}, config);
//   gradus::train_and_evaluate(est, train, eval, {.here = &here});
//
// Chief and evaluator of a cluster without ps are two processes that share the model_dir and nothing else:
// scripts/train_and_evaluate.sh starts both. Only one chief (or master) and one evaluator run at a time: a second one
// raises, naming the role.
//
// TensorFlow differs: here an evaluator with throttle_secs 0 that finds no new checkpoint waits a second before it
// looks again, where TensorFlow's looks without a pause. A process that is alone and finds the training finished
// evaluates and exports its last checkpoint, where TensorFlow's returns nothing, since an earlier process may have been
// killed before it did so. An evaluator that is started again continues with the results of the one before it: the file
// `evaluated` beside its events names the checkpoint that was evaluated and exported last. Delete the file and the
// events to have that checkpoint evaluated again.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "../cluster/server.hpp"
#include "estimator.hpp"
#include "train_spec.hpp"

namespace gradus::inline GRADUS_BUILD {

// This is the outcome of an evaluation of train_and_evaluate.
struct eval_outcome {
  enum statuses { evaluated, missing_checkpoint, no_new_checkpoint };
  statuses status = missing_checkpoint;
  evaluation_result metrics = {};  // empty unless evaluated
  std::string checkpoint_path = {};
};
// The result of a process that trains and evaluates: the last evaluation, and the path of the export that each exporter
// then made (empty for those that exported nothing).
struct train_and_evaluate_result {
  evaluation_result metrics = {};
  std::vector<std::string> export_results = {};
};

// The listener is called before and after each evaluation; if it returns false, the loop ends, and a training with it.
struct continuous_eval_listener {
  std::function<bool()> before_eval = nullptr;
  std::function<bool(const eval_outcome&)> after_eval = nullptr;
};

struct train_and_evaluate_options {
  continuous_eval_listener listener = {};
  // Starts the server of this task and returns its owner; null: a gradus::server. The owner is kept until the end; in a
  // ps, `join` waits for the end of the server.
  struct running_server {
    std::function<void()> join = nullptr;
    std::shared_ptr<void> held = nullptr;
  };
  std::function<running_server(const run_config&)> start_server = nullptr;
  task_system tasks = {};
  // The server of this task, if it has one: a ps joins it, and the other roles finish it after training.
  const server* here = nullptr;
};

namespace detail {
// The functions of an estimator that train_and_evaluate needs, type-erased.
struct estimator_face {
  const run_config* config = nullptr;
  std::string model_dir;
  std::function<void(const input_function&, const estimator_train_options&)> train;
  std::function<evaluation_result(const input_function&, const estimator_evaluate_options&)> evaluate;
  std::function<std::string()> latest_checkpoint;
  std::function<std::string(const std::string& base, const serving_input_function&, const saved_model_options&)> save;
  std::function<void(const std::string&)> say, warn;
};
train_and_evaluate_result train_and_evaluate_by(const estimator_face& e, const train_spec& train, const eval_spec& eval,
                                                const train_and_evaluate_options& o);
}  // namespace detail

// An Estimator has config(), model_dir(), train, evaluate, latest_checkpoint, and a function that logs a line. Raises
// invalid_argument for an evaluator of an index above 0, and for an unknown role; failed_precondition where no server
// can be started, and if another process has the role; and the errors of training, evaluations and exports.
template <class Estimator>
train_and_evaluate_result train_and_evaluate(Estimator& e, const train_spec& train, const eval_spec& eval,
                                             const train_and_evaluate_options& o = {}) {
  detail::estimator_face face;
  face.config = &e.config(), face.model_dir = e.model_dir();
  face.train = [&e](const input_function& f, const estimator_train_options& how) { e.train(f, how); };
  face.evaluate = [&e](const input_function& f, const estimator_evaluate_options& how) { return e.evaluate(f, how); };
  face.latest_checkpoint = [&e] { return e.latest_checkpoint(); };
  if constexpr (requires(const serving_input_function& s, const saved_model_options& how) {
                  e.export_saved_model(std::string(), s, how);
                })
    face.save = [&e](const std::string& base, const serving_input_function& s, const saved_model_options& how) {
      return e.export_saved_model(base, s, how);
    };
  face.say = [&e](const std::string& line) { e.say(line); };
  face.warn = [&e](const std::string& line) { e.warn(line); };
  return detail::train_and_evaluate_by(face, train, eval, o);
}

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "train_and_evaluate.ipp"
#endif
