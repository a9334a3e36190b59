// tf.train.write_graph: a GraphDef as a file.
//
//   write_graph(to_graph_def(g), "runs/digits", "graph.pbtxt");
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../store/file.hpp"
#include "graph_def.hpp"

namespace gradus::inline GRADUS_BUILD {

// Writes the graph as protobuf's text (as TensorFlow 1.15 prints it), or as bytes, and returns the path. The directory
// is made if it is missing; who reads the file sees the old one or the new one, never a part. Raises what the file
// system says, and as encode_graph_def.
template <file_system FileSystem = posix>
std::string write_graph(const graph_def& g, const std::string& logdir, std::string_view name, bool as_text = true,
                        const FileSystem& fs = {}) {
  if (name.empty() || name.find('/') != std::string_view::npos)
    raise(status::invalid_argument, text("write_graph: expected the name of a file, found \"", name, "\""));
  const std::string path = join_path(logdir, name);
  if (as_text) {
    const std::string content = to_pbtxt(g);
    make_directories(fs, logdir);
    publish(fs, path, content);
  } else {
    std::vector<std::byte> content;
    encode_graph_def(content, g);
    const std::span<const std::byte> piece(content);
    make_directories(fs, logdir);
    publish(fs, path, byte_pieces(&piece, 1));
  }
  return path;
}

}  // namespace gradus
