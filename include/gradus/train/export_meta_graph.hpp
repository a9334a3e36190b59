// export_meta_graph returns a session's graph with its collections as a MetaGraphDef, as tf.train.export_meta_graph
// does. A supervisor and a monitored session write it into the event file, so that its reader sees variables, steps and
// queue runners by name.
//
//   std::vector<std::byte> bytes;
//   encode_meta_graph(bytes, gradus::export_meta_graph(g));
//
// The ops are this library's, described by TensorFlow's conventions (summary/graph.hpp): TensorFlow can show such a
// file but cannot run it; it can run the .meta file of a trainer's checkpoint (summary/run_graph.hpp).
#pragma once
#include "../graph/graph.hpp"
#include "../summary/meta_graph.hpp"
#include "../summary/writer.hpp"

namespace gradus::inline GRADUS_BUILD {

// Variables are in their collections as VariableDef, queue runners as QueueRunnerDef, everything else by its name:
// "loss:0" for a tensor, "init" for an op that makes none.
meta_graph export_meta_graph(graph& g);
// Writes both into an event file: the graph, which TensorBoard draws, and the MetaGraphDef.
void add_graphs(detail::any_summary_writer& to, graph& g);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "export_meta_graph.ipp"
#endif
