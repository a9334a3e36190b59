// A serving_input describes the inputs of an exported model, as tf.estimator.export.ServingInputReceiver does (1.15);
// raw_serving_input makes one.
//
//   auto serving = gradus::raw_serving_input({{"x", float32, {4}}});       // a placeholder [batch, 4], named "x"
//   digits.export_saved_model("export/digits", serving);
#pragma once
#include "../base/build.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "../input/datum.hpp"
#include "../input/example_spec.hpp"
#include "model_function.hpp"

namespace gradus::inline GRADUS_BUILD {

// The arguments of the model_fn, and the placeholders that a caller feeds, by the caller's keys. Often they are the
// same.
struct serving_input {
  named_tensors features;
  named_tensors receiver_tensors = {};  // empty: the features
  model_labels labels = {};             // of an export for training or evaluation
};
// Makes a serving_input in the graph of an export.
using serving_input_function = std::function<serving_input(graph&)>;

// Returns a function that makes a placeholder for each component, whose extents are those of one example; the
// components in `labels` are labels. It corresponds to tf.estimator.export.build_raw_serving_input_receiver_fn.
serving_input_function raw_serving_input(components features, components labels = {});

struct saved_model_options {
  std::map<std::string, std::string> assets_extra =
      {};                                     // from the path below assets.extra/ to the file that is copied there
  std::string checkpoint_path = {};           // empty: the newest
  std::optional<example_spec> features = {};  // of the examples that the model takes, for programs that read them
  std::string source = {};                    // export_options::source; train_and_evaluate sets it for exporters
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "serving_input.ipp"
#endif
