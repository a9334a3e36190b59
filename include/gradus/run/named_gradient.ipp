// The bodies of named_gradient.hpp.
#pragma once
#include "../base/body.hpp"
#include "named_gradient.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void check_extents(const named_gradient& g, const extents& variable) {
  const auto size = static_cast<std::size_t>(count(variable));
  if (!g.sparse) {
    if (g.values.size() != size || (g.values.dims.rank > 1 && variable.rank > 1 && g.values.dims != variable))
      raise(status::invalid_argument, text("the gradient of \"", g.name, "\" is ", to_text(g.values.dims),
                                           "; expected ", to_text(variable), ", as the variable"));
    return;
  }
  if (variable.rank == 0)
    raise(status::invalid_argument, text("\"", g.name, "\" is a scalar and has no rows; give a dense gradient"));
  if (g.rows.type != int32 && g.rows.type != int64)
    raise(status::invalid_argument,
          text("the row numbers for \"", g.name, "\" are ", name_of(g.rows.type), "; expected int32 or int64"));
  if (g.rows.dims.rank != 1 && g.rows.dims.rank != 2)
    raise(status::invalid_argument, text("the row numbers for \"", g.name, "\" are ", to_text(g.rows.dims),
                                         "; expected a vector, or bags of rows [bags, k]"));
  const std::size_t n = static_cast<std::size_t>(g.rows.dims[0]),
                    width = variable[0] == 0 ? 0 : size / static_cast<std::size_t>(variable[0]);
  extents expected = variable;
  expected.dims[0] = static_cast<std::int64_t>(n);
  if (g.values.size() != n * width || (g.values.dims.rank > 1 && g.values.dims != expected))
    raise(status::invalid_argument, text("the values for ", n, g.rows.dims.rank == 1 ? " rows" : " bags", " of \"",
                                         g.name, "\" are ", to_text(g.values.dims), "; expected ", to_text(expected)));
}

}  // namespace gradus::detail
