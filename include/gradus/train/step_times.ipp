// The bodies of step_times.hpp.
#pragma once
#include "../base/body.hpp"
#include "step_times.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::vector<std::string> shown_names(const graph_parts& runs, const graph_parts& shown, const char* names) {
  std::vector<shown_node> all = describe(shown, names);
  std::vector<std::string> out;
  for (shown_node& r : describe(runs, names)) {
    std::string_view op = r.op;
    if (r.source->op == &cards::fused_reduction) {
      op = from_words<fused_reduction_attr>(runs.view.ints + r.source->attr).mean != 0 ? "Mean" : "Sum";
    } else if (r.source->op == &cards::gathered_sum) {
      op = "Sum";
    } else if (r.source->op->is(trait::expression)) {
      const expression& x = runs.view.expressions[expression_of(*r.source, runs.view.ints)];
      if (x.steps > 0) op = x.op[x.steps - 1]->name;
    }
    std::string name = std::move(r.name);
    for (shown_node& s : all) {
      const bool own = s.source->name >= 0 || s.op == "Apply";  // these keep their names
      if (s.op != op || s.source->scope != r.source->scope || s.type != r.type || s.dims != r.dims ||
          (own && s.name != name))
        continue;
      name = s.name, s.op = {};  // taken
      break;
    }
    out.push_back(std::move(name));
  }
  return out;
}

}  // namespace gradus::detail
