// This header makes the signatures of an estimator's exported graphs, and exports the model of a compiled estimator,
// whose graph is not kept and is built once more for each mode.
#pragma once
#include "../base/build.hpp"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../ops/model.hpp"
#include "../train/export_saved_model.hpp"
#include "estimator_spec.hpp"
#include "serving_input.hpp"
#include "warm_start_source.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Returns the tag of a mode's graph: "train", "eval", "serve".
std::string_view export_tag(gradus::mode m);
[[noreturn]] void raise_no_modes();

// Returns the signatures of a graph, as TensorFlow's export_outputs_for_mode does: in mode predict the spec's
// export_outputs, else one signature with loss, predictions and metrics. Raises invalid_argument for several
// export_outputs of which none is "serving_default".
std::map<std::string, export_signature> signatures_of(const estimator_spec& spec, const serving_input& in);

// This is a graph of a model function, and its signatures.
struct model_to_export {
  std::unique_ptr<graph> of;
  std::map<std::string, export_signature> signatures;
};
// Returns the graph with its signatures. Its inputs are the placeholders that the outputs need, by their names. Raises
// invalid_argument in mode predict if the model names no predictions, in the other modes if it has no loss.
model_to_export export_of_model(std::unique_ptr<graph> g, const model_spec& made);

// Writes graphs with the tensors of a checkpoint. Raises the errors of reading it, and of gradus::export_saved_model.
std::string export_checkpoint(const std::string& base, const std::string& checkpoint,
                              const std::vector<model_to_export>& models, const saved_model_options& o,
                              const checkpoint_reading& how);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "export_signatures.ipp"
#endif
