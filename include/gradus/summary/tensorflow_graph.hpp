// This header writes nodes of a graph of this library as nodes of TensorFlow's own ops (tensorflow_ops.hpp lists them),
// for a .meta file that TensorFlow can run. run_graph.hpp puts the file together.
#pragma once
#include "../base/build.hpp"

#include <charconv>
#include <optional>

#include "../store/decimal.hpp"
#include "graph.hpp"
#include "tensorflow_ops.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// A tensor of the graph that is written.
struct tensorflow_tensor {
  std::string name;
  dtype type = dtype::none;
};
// These are the settings of one node, by the names that its formula uses.
using tensorflow_settings = std::vector<std::pair<std::string_view, attr_value>>;

tensor_def tensor_of(dtype type, std::vector<std::int64_t> dims, const std::vector<double>& values);

class tensorflow_graph {
public:
  using tensor = tensorflow_tensor;

  graph_def def;
  // The tensor whose extents contain the batch, and where: the batch is Shape(of)[axis] / times.
  struct batch_source {
    tensor of;
    int axis, times;
  };
  std::optional<batch_source> batch_from = {};

  std::string take(std::string_view wanted) { return names_.take(wanted); }

  tensor add(std::string name, std::string_view op, std::vector<std::string> inputs, std::vector<graph_def_attr> attrs,
             dtype type);
  tensor constant(std::string name, tensor_def value);

  // Writes the formula's nodes; the last one has this name, which must have been taken already.
  tensor write(const std::string& name, std::string_view formula, std::vector<tensor> operands,
               tensorflow_settings settings);

private:
  // This is the state of the parser for one formula.
  struct call {
    const std::string& name;
    std::string_view text;
    std::size_t at;
    std::vector<tensor> operands;
    tensorflow_settings settings;
    std::vector<std::pair<std::string_view, tensor>> helpers;
    int depth;
  };
  unique_names names_;
  tensor batch_;

  static void skip(call& c);
  static bool take(call& c, char what);
  static std::string_view word(call& c);
  static bool is_number(std::string_view w) { return !w.empty() && (w[0] == '-' || (w[0] >= '0' && w[0] <= '9')); }
  static double number(std::string_view w);
  [[noreturn]] static void wrong(const call& c);
  std::string helper_name(const call& c, std::string_view op) { return names_.take(text(c.name, "/", op)); }

  static const attr_value& setting(const call& c, std::string_view name);
  tensor setting_as_tensor(call& c, std::string_view name);
  // Returns extents as a vector: a constant, or packed from the known extents and the batch of the run.
  tensor shape_tensor(call& c, const shape_def& s);
  const tensor& batch();

  tensor expression(call& c, bool last);
  static tensor operand(const call& c, std::string_view w);
  static attr_value attribute(const call& c, std::string_view w);
  tensor add_op(call& c, std::string_view op, const std::vector<tensor>& inputs, const std::vector<std::string>& after,
                std::vector<graph_def_attr> attrs, bool last);
};

// Returns the values that the formula of a node may use. `w` are the node's attributes, as ops/ lays them out; `s` are
// the extents of operand 0.
tensorflow_settings tensorflow_settings_of(const shown_node& n, const int* w, const shape& s, std::string& formula);

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "tensorflow_graph.ipp"
#endif
