// An export_output is a signature's output in an exported model. It corresponds to tf.estimator.export.PredictOutput,
// ClassificationOutput, RegressionOutput (1.15).
//
//   .export_outputs = {{"serving_default", gradus::classification_output(probabilities, classes)}}
#pragma once
#include "../base/build.hpp"

#include <map>
#include <string>
#include <string_view>

#include "named_tensors.hpp"

namespace gradus::inline GRADUS_BUILD {

// A signature's outputs, and its method name in TensorFlow Serving.
struct export_output {
  std::string method_name;
  named_tensors outputs;
};
// Outputs by the name of their signature.
using export_outputs_map = std::map<std::string, export_output>;

// Returns an output of any tensors, by name; a tensor without a name is "output".
export_output predict_output(const named_tensors& outputs);
// Returns an output of "scores", float32, and "classes". One of the two may be empty. Raises invalid_argument if both
// are, and for scores of another dtype.
export_output classification_output(value scores, value classes = {});
// Returns an output of "outputs". Raises invalid_argument unless its dtype is a float type.
export_output regression_output(value outputs);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "export_output.ipp"
#endif
