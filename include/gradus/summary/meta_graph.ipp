// The bodies of meta_graph.hpp.
#pragma once
#include "../base/body.hpp"
#include "meta_graph.hpp"

namespace gradus {

GRADUS_BODY std::vector<std::byte> encode_variable_def(const variable_def& v) {
  std::vector<std::byte> out;
  wire_writer w(out);
  detail::wire_sink sink{w};
  detail::write_variable(sink, v);
  return out;
}

GRADUS_BODY void add_variable(meta_graph& m, const variable_def& v) {
  const auto message = encode_variable_def(v);
  m.collections["variables"].messages.push_back(message);
  if (v.trainable) m.collections["trainable_variables"].messages.push_back(message);
}

GRADUS_BODY void encode_meta_graph(std::vector<std::byte>& out, const meta_graph& m) {
  wire_writer w(out);
  detail::wire_sink sink{w};
  detail::write_meta_graph(sink, m);
}

GRADUS_BODY std::string to_pbtxt(const meta_graph& m) {
  std::string out;
  detail::text_sink sink{out};
  detail::write_meta_graph(sink, m);
  return out;
}

}  // namespace gradus
