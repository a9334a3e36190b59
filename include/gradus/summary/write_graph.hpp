// write_graph writes a GraphDef as a file, as tf.train.write_graph does.
//
//   write_graph(to_graph_def(g), "runs/digits", "graph.pbtxt");
#pragma once
#include "../base/build.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../store/file.hpp"
#include "graph_def.hpp"

namespace gradus::inline GRADUS_BUILD {

// Writes the graph as protobuf's text (as TensorFlow 1.15 prints it), or as bytes, and returns the path. The directory
// is made if it is missing; a reader of the file sees the old file or the new one, never a part. Raises the errors of
// the file system, and those of encode_graph_def.
std::string write_graph(const graph_def& g, const std::string& logdir, std::string_view name, bool as_text = true,
                        const any_file_system& fs = {});

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "write_graph.ipp"
#endif
