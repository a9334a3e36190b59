// The bodies of export_output.hpp.
#pragma once
#include "../base/body.hpp"
#include "../train/export_saved_model.hpp"
#include "export_output.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY export_output predict_output(const named_tensors& outputs) {
  if (outputs.empty()) raise(status::invalid_argument, "predict_output: expected at least one tensor, got none");
  return {std::string(signature_method::predict), outputs};
}

GRADUS_BODY export_output classification_output(value scores, value classes) {
  if (!scores && !classes)
    raise(status::invalid_argument, "classification_output: at least one of scores and classes must be given");
  if (scores && !is_float(scores.type()))
    raise(status::invalid_argument,
          text("classification_output: scores must be of float32 or float64, got ", name_of(scores.type())));
  named_tensors all;
  if (scores) all.add("scores", scores);
  if (classes) all.add("classes", classes);
  return {std::string(signature_method::classify), all};
}

GRADUS_BODY export_output regression_output(value outputs) {
  if (!outputs || !is_float(outputs.type()))
    raise(status::invalid_argument, text("regression_output: expected a tensor of float32 or float64, got ",
                                         outputs ? name_of(outputs.type()) : std::string_view("none")));
  named_tensors all;
  all.add("outputs", outputs);
  return {std::string(signature_method::regress), all};
}

}  // namespace gradus
