// The bodies of step_gradients.hpp.
#pragma once
#include <algorithm>

#include "../base/body.hpp"
#include "../base/sort.hpp"
#include "step_gradients.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void give(std::vector<given_rows>& given, const given_rows& rows) {
  std::erase_if(given, [&](const given_rows& g) { return g.gradient == rows.gradient; });
  given.push_back(rows);
}

GRADUS_BODY double read_number(const tensor_view& v) {
  return v.type == float64 ? *reinterpret_cast<const double*>(v.data)
                           : static_cast<double>(*reinterpret_cast<const float*>(v.data));
}

GRADUS_BODY void write_number(const bound_call& c, dtype type, double x) {
  if (type == float64)
    *reinterpret_cast<double*>(c.args[0]) = x;
  else
    *reinterpret_cast<float*>(c.args[0]) = static_cast<float>(x);
}

GRADUS_BODY tensor_view loss_of(step_machine& train) {
  const graph_parts& g = train.what().graph;
  for (int i = 0; i < g.output_count; ++i)
    if (g.outputs[i].kind == output::loss) return train.view(g.outputs[i].node);
  return {};
}

GRADUS_BODY std::vector<final_gradient> final_gradients(const runnable& r) {
  const graph_view& v = r.graph.view;
  std::vector<int> done(static_cast<std::size_t>(v.size), -1);  // of each node: the last call that it depends on
  for (int c = 0; c < r.program.call_count; ++c) done[static_cast<std::size_t>(r.program.calls[c].node)] = c;
  std::vector<final_gradient> all;
  for (int i = 0; i < v.size; ++i) {
    const node& n = v.nodes[i];
    int last = -1;
    for (int e = n.first, end = e + n.inputs + n.controls; e < end; ++e)
      if (v.nodes[v.edges[e]].op != &cards::global_norm)
        last = std::max(last, done[static_cast<std::size_t>(v.edges[e])]);
    if (n.op == &cards::apply) all.push_back({last, i});
    int& mine = done[static_cast<std::size_t>(i)];
    mine = std::max(mine, last);
  }
  sort_stably(all, [](const final_gradient& a, const final_gradient& b) { return a.after < b.after; });
  return all;
}

GRADUS_BODY void refuse_gradients(step_machine& train, std::int64_t global_step) {
  const runnable& r = train.what();
  const graph_view& v = r.graph.view;
  refuse_gradients(read_number(loss_of(train)), global_step, [&](auto look) {
    for (int i = 0; i < v.size; ++i) {
      if (v.nodes[i].op != &cards::apply) continue;
      const tensor_view g = train.view(v.edges[v.nodes[i].first + 1]);
      const std::string_view name = r.name_of(v.edges[v.nodes[i].first]);
      if (g.type == float64)
        look(name, reinterpret_cast<const double*>(g.data), g.size());
      else
        look(name, reinterpret_cast<const float*>(g.data), g.size());
    }
  });
}

}  // namespace gradus::detail
