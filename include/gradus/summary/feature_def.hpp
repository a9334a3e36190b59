// This header describes the features that a model reads from a tf.train.Example, as TensorFlow's
// ExampleParserConfiguration: names, types and extents of its features. These are plain structs, as in graph_def.hpp;
// train/export_saved_model.hpp fills them in.
#pragma once
#include "../base/build.hpp"

#include <optional>

#include "graph_def.hpp"

namespace gradus::inline GRADUS_BUILD {

struct feature_def {
  std::string name;
  dtype type = dtype::none;                      // float32, int64 or string_in_graphs
  bool any_length = false;                       // VarLenFeature, which has no extents and no default
  std::vector<std::int64_t> dims = {};           // FixedLenFeature
  std::optional<tensor_def> default_value = {};  // of a feature that may be missing
};

// Returns the message's bytes. Raises invalid_argument, as encode_graph_def, for a default that does not fit.
std::vector<std::byte> encode_feature_defs(std::span<const feature_def> features);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "feature_def.ipp"
#endif
