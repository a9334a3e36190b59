// The bodies of export_meta_graph.hpp.
#pragma once
#include "../base/body.hpp"
#include "../session/queue_runner.hpp"
#include "../summary/graph.hpp"
#include "export_meta_graph.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY meta_graph export_meta_graph(graph& g) {
  meta_graph m;
  m.graph = to_graph_def(g);
  m.saver.reset();
  const std::vector<shown_node> nodes = describe(g);
  const auto name_of = [&](value v) {
    for (const shown_node& n : nodes)
      if (n.source == g.nodes.first + v.id) return n.name;
    return std::string(g.name_of(v.id));
  };
  for (int i = 0; i < g.members.count; ++i) {
    const auto [name, id] = g.members[i];
    const std::string_view of = g.text_at(name);
    if (of == collection::trainable_variables) continue;  // add_variable puts them there
    if (of == collection::global_variables) {
      const auto a = from_words<variable_attr>(g.ints.first + g.nodes[id].attr);
      add_variable(m, {.name = std::string(g.name_of(id)), .trainable = a.trainable != 0});
      continue;
    }
    collection_def& to = m.collections[std::string(of)];
    if (!to.nodes.empty() || !to.messages.empty()) continue;  // its first member has added all of the collection
    bool variables_alone = true;
    g.for_each_in(of, [&](value v) { variables_alone = variables_alone && g.nodes[v.id].op == &variable_card; });
    for (const queue_runner& r : queue_runners_of(g, of)) to.messages.push_back(r.to_proto(name_of));
    if (to.messages.empty())
      g.for_each_in(of, [&](value v) {
        if (variables_alone)
          to.messages.push_back(encode_variable_def({.name = std::string(g.name_of(v.id)), .trainable = false}));
        else
          to.nodes.push_back(name_of(v) + (g.nodes[v.id].type != dtype::none ? ":0" : ""));
      });
  }
  return m;
}

GRADUS_BODY void add_graphs(detail::any_summary_writer& to, graph& g) {
  to.add_graph(to_graph_def(g));
  std::vector<std::byte> bytes;
  encode_meta_graph(bytes, export_meta_graph(g));
  to.add_meta_graph(bytes);
}

}  // namespace gradus
