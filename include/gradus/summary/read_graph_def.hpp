// This header reads GraphDef, MetaGraphDef and SavedModel back from their bytes into the plain structs of graph_def.hpp
// and meta_graph.hpp: TensorFlow's files, ours, or hostile ones. It does not check whether the graph makes sense
// (train/import_meta_graph.hpp does), but it allocates nothing by an unchecked length.
//
//   const meta_graph m = decode_meta_graph(read_file(posix{}, "model-500.meta"));
//
// Not kept: functions (a GraphDef's library, attributes of that kind), the list of ops that a writer strips, debug
// information. Errors of all: data_loss for malformed bytes, resource_exhausted beyond the limits (a constant of one
// number in gigabytes of extents, more nodes than `entries`), unimplemented for a constant of a dtype that no tensor
// here has.
#pragma once
#include <span>

#include "../store/reader_limits.hpp"
#include "feature_def.hpp"
#include "meta_graph.hpp"

namespace gradus::inline GRADUS_BUILD {

graph_def decode_graph_def(std::span<const std::byte> bytes, const reader_limits& limits = {});
meta_graph decode_meta_graph(std::span<const std::byte> bytes, const reader_limits& limits = {});
// The graphs of a saved_model.pb. Error: failed_precondition for another schema version than 1.
std::vector<meta_graph> decode_saved_model(std::span<const std::byte> bytes, const reader_limits& limits = {});
// A VariableDef, as the collections of variables hold it; its nodes without ":0". `name` is the node's.
variable_def decode_variable_def(std::span<const std::byte> bytes);
// An ExampleParserConfiguration.
std::vector<feature_def> decode_feature_defs(std::span<const std::byte> bytes, const reader_limits& limits = {});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "read_graph_def.ipp"
#endif
