// The bodies of step_gradients.hpp.
#pragma once
#include "../base/body.hpp"
#include "step_gradients.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY double read_number(const tensor_view& v) {
  return v.type == float64 ? *reinterpret_cast<const double*>(v.data)
                           : static_cast<double>(*reinterpret_cast<const float*>(v.data));
}

GRADUS_BODY tensor_view loss_of(step_machine& train) {
  const graph_parts& g = train.what().graph;
  for (int i = 0; i < g.output_count; ++i)
    if (g.outputs[i].kind == output::loss) return train.view(g.outputs[i].node);
  return {};
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
