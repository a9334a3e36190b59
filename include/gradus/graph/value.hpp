// A value is a tensor while a graph is built: a node of the graph. An empty value belongs to no node; an op that is
// given one raises an error that says so.
#pragma once
#include "../base/build.hpp"

#include <type_traits>

#include "../base/error.hpp"
#include "node.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
// This is not constexpr, so that where a model is compiled, reaching it is an error of the compiler.
[[noreturn, gnu::cold, gnu::noinline]] inline void an_op_was_given_an_empty_value() {
  raise(
      status::invalid_argument,
      "an op was given an empty value: a tensor that nobody made. Give it one that g.placeholder, g.variable or an op "
      "returned; labels are empty in mode predict, and where an input_fn gives none");
}
// Returns whether values are checked for being empty or of another graph: always in the compiler, and in a program that
// has exceptions. In a program without exceptions the check would cost half a KB of a board's flash.
constexpr bool looks_at_values() {
#if defined(__cpp_exceptions)
  return true;
#else
  return std::is_constant_evaluated();
#endif
}
}  // namespace detail

// The graph of a value. It is null for an empty value, and using it then is an error.
struct graph_pointer {
  graph* at = nullptr;

  constexpr graph_pointer() = default;
  constexpr graph_pointer(graph* g) : at(g) {}
  constexpr operator graph*() const { return at; }
  constexpr graph* operator->() const { return check(), at; }
  constexpr graph& operator*() const { return check(), *at; }

private:
  constexpr void check() const {
    if (detail::looks_at_values() && at == nullptr) detail::an_op_was_given_an_empty_value();
  }
};

// This is a tensor of a graph: the result of one node.
struct value {
  graph_pointer g = {};
  int id = -1;

  constexpr explicit operator bool() const { return id >= 0; }
  constexpr shape dims() const;  // by value, because the next node may move all others
  constexpr dtype type() const;
};

// A gradient is dense, or rows of a table (IndexedSlices): values[i] belongs to row indices[i]; rows may repeat.
struct gradient_value {
  value dense = {}, values = {}, indices = {};
  constexpr explicit operator bool() const { return bool(dense) || bool(values); }
  constexpr bool sparse() const { return bool(values); }
};

}  // namespace gradus
