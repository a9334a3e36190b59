// The bodies of write_graph.hpp.
#pragma once
#include "../base/body.hpp"
#include "write_graph.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::string write_graph(const graph_def& g, const std::string& logdir, std::string_view name, bool as_text,
                                    const any_file_system& fs) {
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
