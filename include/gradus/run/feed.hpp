// This header has the arguments of a session's run: the tensors to compute, and the values of placeholders.
#pragma once
#include "../base/build.hpp"

#include <cstddef>
#include <cstring>
#include <string_view>

#include "../graph/graph.hpp"
#include "../tensor/access.hpp"
#include "../tensor/tensor.hpp"

namespace gradus::inline GRADUS_BUILD {

// A number that can be an element of a tensor.
template <class X>
concept element_number = dtype_of<X> != dtype::none && !readable_array<X>;

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
// tensor view, or a single number (0.1F for a float32 placeholder). An array stays where it is, a number is copied.
struct feed {
  const graph* g = nullptr;
  int id = -1;
  std::string_view name;
  const_tensor_view data;
  template <readable_array X>
  feed(const value& v, const X& x) : g(v.g), id(v.id), data(read_view(x)) {}
  template <readable_array X>
  feed(std::string_view n, const X& x) : name(n), data(read_view(x)) {}
  template <element_number X>
  feed(const value& v, X x) : g(v.g), id(v.id) {
    hold(x);
  }
  template <element_number X>
  feed(std::string_view n, X x) : name(n) {
    hold(x);
  }
  feed(const feed& o) { *this = o; }
  feed& operator=(const feed& o) {
    g = o.g, id = o.id, name = o.name, data = o.data;
    if (o.data.data == o.number_) std::memcpy(number_, o.number_, sizeof number_), data.data = number_;
    return *this;
  }

private:
  alignas(8) std::byte number_[8] = {};

  template <class X>
  void hold(X x) {
    std::memcpy(number_, &x, sizeof x);
    data = {dtype_of<X>, {}, number_};
  }
};

}  // namespace gradus
