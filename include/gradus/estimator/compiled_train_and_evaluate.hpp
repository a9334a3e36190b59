// This train_and_evaluate takes a compiled estimator (compiled_estimator.hpp), in the roles of train_and_evaluate.hpp:
//
//   auto digits = gradus::make_estimator<model>(gradus::adam{}, gradus::run_config::from_environment());
//   gradus::train_and_evaluate(
//       digits, gradus::train_spec(training, {.max_steps = 20'000}),
//       gradus::eval_spec(tests,
//                         {.exporters = gradus::best_exporter("best", {.serving = gradus::own_placeholders{}})}));
//
// Each checkpoint is evaluated by a separate trainer, so that an evaluation does not change the bits of this process's
// training. Components go to the placeholders of the same names; labels that an input_fn names are treated as the other
// components.
#pragma once
#include "compiled_estimator.hpp"
#include "train_and_evaluate.hpp"

namespace gradus::inline GRADUS_BUILD {

// The `serving` of an exporter whose model is compiled: the inputs are the model's own placeholders, as in
// compiled_estimator::export_saved_model. An estimator with a model_fn raises invalid_argument.
struct own_placeholders {
  serving_input operator()(graph&) const {
    raise(status::invalid_argument,
          "own_placeholders is the serving input of a compiled estimator; this one has a model_fn, which is given its "
          "features: take raw_serving_input, or a function that makes them");
  }
};

// Raises the errors of the train_and_evaluate of an estimator; unimplemented for an eval_spec with hooks;
// invalid_argument for an exporter with another serving input than own_placeholders.
template <class Trainer, auto Model>
train_and_evaluate_result train_and_evaluate(compiled_estimator<Trainer, Model>& e, const train_spec& train,
                                             const eval_spec& eval, const train_and_evaluate_options& o = {}) {
  const auto batches = [&e](const input_function& f, mode m) {
    static const any_params none_given(std::make_shared<const no_params>());
    return f({m, none_given, e.config()}).batches;
  };
  detail::estimator_face face;
  face.config = &e.config(), face.model_dir = e.model_dir();
  face.train = [&](const input_function& f, const estimator_train_options& how) {
    e.train([&] { return batches(f, mode::train); },
            {.max_steps = how.max_steps, .hooks = how.hooks, .saving_listeners = how.saving_listeners});
  };
  face.evaluate = [&](const input_function& f, const estimator_evaluate_options& how) {
    if (!how.hooks.empty())
      raise(status::unimplemented,
            "an eval_spec has hooks, and an evaluation of a compiled model calls none; leave them out, or take an "
            "estimator with a model_fn");
    return e.evaluate([&] { return batches(f, mode::evaluate); },
                      {.steps = how.steps, .name = how.name, .checkpoint_path = how.checkpoint_path});
  };
  face.latest_checkpoint = [&e] { return e.latest_checkpoint(); };
  face.save = [&e](const std::string& base, const serving_input_function& s, const saved_model_options& how) {
    if (s.target<own_placeholders>() == nullptr)
      raise(status::invalid_argument,
            "an exporter of a compiled estimator has a serving function, and the model is fed by its own placeholders: "
            "give {.serving = gradus::own_placeholders{}}");
    return e.export_saved_model(base, how);
  };
  face.say = [&e](const std::string& line) { e.say(line); };
  face.warn = [&e](const std::string& line) { e.warn(line); };
  return detail::train_and_evaluate_by(face, train, eval, o);
}

}  // namespace gradus
