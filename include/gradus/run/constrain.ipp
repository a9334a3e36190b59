// The bodies of constrain.hpp.
#pragma once
#include "../base/body.hpp"
#include "constrain.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY axis_walk::axis_walk(const constraint& c, const extents& dims, bool reduced) {
  for (int i = 0; i < dims.rank; ++i) {
    if (c.over(i, dims.rank) != reduced) continue;
    std::int64_t step = 1;
    for (int k = i + 1; k < dims.rank; ++k) step *= dims[k];
    extent[rank] = dims[i], stride[rank++] = step;
  }
}

}  // namespace gradus::detail
