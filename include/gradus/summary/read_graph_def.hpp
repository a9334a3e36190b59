// This header reads GraphDef, MetaGraphDef and SavedModel back from their bytes into the plain structs of graph_def.hpp
// and meta_graph.hpp: TensorFlow's files, those of this library, or hostile ones. It does not check whether the graph
// makes sense (train/import_meta_graph.hpp does), but it never allocates memory for a length that it has not checked.
//
//   const meta_graph m = decode_meta_graph(read_file(posix{}, "model-500.meta"));
//
// It drops functions (a GraphDef's library, attributes of that kind), the list of ops that a writer strips, and debug
// information. All functions raise data_loss for malformed bytes, resource_exhausted beyond the limits (a constant of
// one number in gigabytes of extents, more nodes than `entries`), and unimplemented for a constant of a dtype that no
// tensor here has.
#pragma once
#include "../base/build.hpp"

#include <span>

#include "../store/reader_limits.hpp"
#include "feature_def.hpp"
#include "meta_graph.hpp"

namespace gradus::inline GRADUS_BUILD {

graph_def decode_graph_def(std::span<const std::byte> bytes, const reader_limits& limits = {});
meta_graph decode_meta_graph(std::span<const std::byte> bytes, const reader_limits& limits = {});
// Returns the graphs of a saved_model.pb. Raises failed_precondition for a schema version other than 1.
std::vector<meta_graph> decode_saved_model(std::span<const std::byte> bytes, const reader_limits& limits = {});
// Returns a VariableDef, as the collections of variables hold it. Names of nodes are without ":0"; `name` is that of
// the node.
variable_def decode_variable_def(std::span<const std::byte> bytes);
// Returns the features of an ExampleParserConfiguration.
std::vector<feature_def> decode_feature_defs(std::span<const std::byte> bytes, const reader_limits& limits = {});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "read_graph_def.ipp"
#endif
