// What a graph says when a function that builds it is refused; nothing if it is not.
#pragma once
#include <gradus/graph/graph.hpp>

#include <string>

template <class F>
std::string refusal_of(F build) {
  try {
    gradus::graph g;
    build(g);
  } catch (const gradus::invalid_argument& e) {
    return e.what();
  }
  return "";
}
