// The bodies of global_step.hpp.
#pragma once
#include "../base/body.hpp"
#include "global_step.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY value get_global_step(graph& g) {
  value found;
  int many = 0;
  g.for_each_in(collection::global_step, [&](value v) { found = v, ++many; });
  if (many > 1) raise(status::failed_precondition, "the collection \"global_step\" of the graph has several variables");
  if (many == 0) {
    const int id = g.find("global_step");
    if (id < 0) return {};
    found = {&g, id};
  }
  const node& n = g.nodes[found.id];
  if (n.op != &variable_card || n.dims.rank != 0 || (n.type != int64 && n.type != int32))
    raise(status::invalid_argument,
          text("the global step must be a scalar variable of int64 or int32; \"", g.name_of(found.id), "\" is ",
               n.op->name, " ", name_of(n.type), " ", to_text(n.dims)));
  return found;
}

GRADUS_BODY value create_global_step(graph& g) {
  if (get_global_step(g))
    raise(status::invalid_argument, text("\"", g.name_of(get_global_step(g).id),
                                         "\" is the graph's global step already; get_or_create_global_step takes it"));
  const value step = g.variable("global_step", {}, {.init = zeros, .trainable = false, .type = int64});
  g.add_to(collection::global_step, step);
  return step;
}

GRADUS_BODY value get_or_create_global_step(graph& g) {
  const value found = get_global_step(g);
  return found ? found : create_global_step(g);
}

GRADUS_BODY std::int64_t detail::step_in(const const_tensor_view& step) {
  return step.type == int32 ? step.as<std::int32_t>()[0] : step.as<std::int64_t>()[0];
}

GRADUS_BODY std::int64_t global_step(base_session& s, value step) { return detail::step_in(s.run(step)); }

}  // namespace gradus
