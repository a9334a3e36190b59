// An export_output is a signature's output in an exported model. tf.estimator.export.PredictOutput,
// ClassificationOutput, RegressionOutput (1.15).
//
//   .export_outputs = {{"serving_default", gradus::classification_output(probabilities, classes)}}
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "named_tensors.hpp"

namespace gradus::inline GRADUS_BUILD {

// A signature's outputs, and TensorFlow Serving's name of its method.
struct export_output {
  std::string method_name;
  named_tensors outputs;
};
// By the name of the signature.
using export_outputs_map = std::map<std::string, export_output>;

// Any tensors by name; one without a name is "output".
export_output predict_output(const named_tensors& outputs);
// "scores": float32; "classes". One of the two may be empty. Error: invalid_argument if both are, and for scores of
// another dtype.
export_output classification_output(value scores, value classes = {});
// "outputs". Error: invalid_argument unless it is a float.
export_output regression_output(value outputs);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "export_output.ipp"
#endif
