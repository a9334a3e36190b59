// This header has the arguments of a session's run: the tensors to compute, and the values of placeholders.
#pragma once
#include "../base/build.hpp"

#include <string_view>

#include "../graph/graph.hpp"
#include "../tensor/access.hpp"
#include "../tensor/tensor.hpp"

namespace gradus::inline GRADUS_BUILD {

// A fetch names a tensor to compute: a tensor of the graph, or the name of a node.
struct fetch {
  const graph* g = nullptr;
  int id = -1;
  std::string_view name;
  fetch(const value& v) : g(v.g), id(v.id) {}
  fetch(std::string_view n) : name(n) {}
  fetch(const char* n) : name(n) {}
};
// A feed is the value of a placeholder in this run: a span, a vector, an xt::xtensor (with tensor/xtensor.hpp), a
// tensor view.
struct feed {
  const graph* g = nullptr;
  int id = -1;
  std::string_view name;
  const_tensor_view data;
  template <readable_array X>
  feed(const value& v, const X& x) : g(v.g), id(v.id), data(read_view(x)) {}
  template <readable_array X>
  feed(std::string_view n, const X& x) : name(n), data(read_view(x)) {}
};

}  // namespace gradus
