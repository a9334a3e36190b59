// This header checks whether two graphs are the same, and finds where they differ: field by field for this library's
// graphs, and as tf.test.assert_equal_graph_def for GraphDefs.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "../graph/parts.hpp"
#include "../summary/graph.hpp"

namespace gradus::inline GRADUS_BUILD::testing {

// This is the first field that differs, and the index of its node, expression or output; the field is empty if there is
// none.
struct graph_difference {
  std::string_view field = {};
  int at = -1;
  constexpr explicit operator bool() const { return !field.empty(); }
};

namespace detail {
constexpr std::string_view differing_field(const graph_view& a, const graph_view& b, int i) {
  const node &x = a.nodes[i], &y = b.nodes[i];
  if (x.op != y.op) return "op";
  if (x.inputs != y.inputs) return "number of operands";
  if (x.controls != y.controls) return "number of control edges";
  if (x.attrs != y.attrs) return "number of attribute words";
  for (int k = 0; k < x.inputs + x.controls; ++k)
    if (a.edges[x.first + k] != b.edges[y.first + k]) return k < x.inputs ? "operand" : "control edge";
  for (int k = 0; k < x.attrs; ++k)
    if (a.ints[x.attr + k] != b.ints[y.attr + k]) return "attribute";
  if (x.type != y.type) return "dtype";
  if (!(x.dims == y.dims)) return "shape";
  if (x.name != y.name) return "name";
  if (x.scope != y.scope) return "scope";
  return x.device != y.device ? "device" : std::string_view{};
}
}  // namespace detail

// Compares node by node, field by field, in order; it works in static_assert too.
constexpr graph_difference first_difference(const graph_parts& a, const graph_parts& b) {
  for (int i = 0; i < a.view.size && i < b.view.size; ++i)
    if (const auto field = detail::differing_field(a.view, b.view, i); !field.empty()) return {field, i};
  if (a.view.size != b.view.size) return {"number of nodes", a.view.size < b.view.size ? a.view.size : b.view.size};
  if (a.what != b.what) return {"mode", 0};
  if (a.view.expression_count != b.view.expression_count) return {"number of expressions", 0};
  for (int i = 0; i < a.view.expression_count; ++i)
    if (!(a.view.expressions[i] == b.view.expressions[i])) return {"expression", i};
  if (a.output_count != b.output_count) return {"number of outputs", 0};
  for (int i = 0; i < a.output_count; ++i)
    if (a.outputs[i].kind != b.outputs[i].kind || a.outputs[i].name != b.outputs[i].name ||
        a.outputs[i].node != b.outputs[i].node)
      return {"output", i};
  if (a.gate_count != b.gate_count) return {"number of gates", 0};
  for (int i = 0; i < a.gate_count; ++i)
    if (a.gates[i] != b.gates[i]) return {"gate", i};
  return {};
}
constexpr bool same_graph(const graph_parts& a, const graph_parts& b) { return !first_difference(a, b); }

// Returns, for example, "node 7 (MatMul): shape", or an empty string if the graphs are the same.
inline std::string explain_difference(const graph_parts& a, const graph_parts& b) {
  const auto d = first_difference(a, b);
  if (!d) return {};
  const bool both = d.at < a.view.size && d.at < b.view.size;
  if (both && !detail::differing_field(a.view, b.view, d.at).empty())
    return text("node ", d.at, " (", a.view.nodes[d.at].op->name, "): ", d.field);
  return text(d.field, ", at ", d.at);
}

// Compares two attributes of GraphDefs. Tensors are compared by value: by the bits of their elements, whatever the
// order of the fields that they were read from.
inline bool same_attr(const attr_value& a, const attr_value& b) {
  const auto same_shape = [](const shape_def& x, const shape_def& y) {
    return x.dims == y.dims && x.unknown_rank == y.unknown_rank;
  };
  return a.visit([&]<class T>(const T& x) {
    const T* const other = b.get_if<T>();
    if (other == nullptr) return false;
    const T& y = *other;
    if constexpr (std::is_same_v<T, shape_def>)
      return same_shape(x, y);
    else if constexpr (std::is_same_v<T, tensor_def>)
      return x.type == y.type && x.dims == y.dims && x.content == y.content && x.strings == y.strings;
    else if constexpr (std::is_same_v<T, std::vector<shape_def>>)
      return std::equal(x.begin(), x.end(), y.begin(), y.end(), same_shape);
    else
      return x == y;
  });
}

// Raises failed_precondition with the first difference, worded as in TensorFlow. Nodes are matched by name, in any
// order; op, device and data inputs must agree, the inputs in order ("t" is "t:0"), and control inputs as a set;
// attributes must have the same keys with the same values, except that those whose keys begin with '_' are ignored.
// Versions are not compared.
inline void assert_equal_graph_def(const graph_def& actual, const graph_def& expected) {
  const auto fail = [](const auto&... pieces) { raise(status::failed_precondition, text(pieces...)); };
  const auto find = [](const graph_def& g, std::string_view name) -> const graph_def_node* {
    for (const auto& n : g.nodes)
      if (n.name == name) return &n;
    return nullptr;
  };
  for (const graph_def* g : {&actual, &expected})
    for (const auto& n : g->nodes)
      if (find(*g, n.name) != &n)
        fail("Ambiguous node name \"", n.name, "\" in the ", g == &actual ? "actual" : "expected", " graph");
  for (const auto& e : expected.nodes)
    if (find(actual, e.name) == nullptr) fail("Did not find expected node named \"", e.name, "\" (op ", e.op, ")");
  for (const auto& a : actual.nodes) {
    const graph_def_node* e = find(expected, a.name);
    if (e == nullptr) fail("Found unexpected node named \"", a.name, "\" (op ", a.op, ")");
    const auto differ = [&](std::string_view what, std::string_view got, std::string_view wanted) {
      fail("Node named '", a.name, "' has ", what, " '", got, "', expected '", wanted, "'");
    };
    if (a.op != e->op) differ("op", a.op, e->op);
    if (a.device != e->device) differ("device", a.device, e->device);
    if (a.inputs.size() != e->inputs.size())
      differ("a number of inputs of", text(a.inputs.size()), text(e->inputs.size()));
    const auto canonical = [](std::string s) { return s.ends_with(":0") ? s.substr(0, s.size() - 2) : s; };
    const auto split = [&](const std::vector<std::string>& inputs, std::vector<std::string>& data,
                           std::vector<std::string>& controls) {
      for (const auto& i : inputs) (i.starts_with('^') || !controls.empty() ? controls : data).push_back(canonical(i));
      std::sort(controls.begin(), controls.end());
    };
    std::vector<std::string> data_a, data_e, controls_a, controls_e;
    split(a.inputs, data_a, controls_a), split(e->inputs, data_e, controls_e);
    for (std::size_t i = 0; i < data_a.size() && i < data_e.size(); ++i)
      if (data_a[i] != data_e[i]) differ(text("input ", i), data_a[i], data_e[i]);
    if (data_a.size() != data_e.size() || controls_a != controls_e) differ("control inputs", "these", "others");
    const auto attr = [](const graph_def_node& n, std::string_view key) -> const attr_value* {
      for (const auto& x : n.attrs)
        if (x.key == key) return &x.value;
      return nullptr;
    };
    for (const auto& x : e->attrs)
      if (!x.key.starts_with('_') && attr(a, x.key) == nullptr)
        fail("Node named '", a.name, "' lacks the attribute '", x.key, "'");
    for (const auto& x : a.attrs) {
      if (x.key.starts_with('_')) continue;
      const attr_value* wanted = attr(*e, x.key);
      if (wanted == nullptr) fail("Node named '", a.name, "' has an unexpected attribute '", x.key, "'");
      if (!same_attr(x.value, *wanted))
        fail("Node named '", a.name, "' has another value of the attribute '", x.key, "'");
    }
  }
}
inline void assert_equal_graph_def(const graph& actual, const graph& expected) {
  assert_equal_graph_def(to_graph_def(actual), to_graph_def(expected));
}

}  // namespace gradus::testing
