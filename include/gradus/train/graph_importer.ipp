// The bodies of graph_importer.hpp.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>

#include "../base/body.hpp"
#include "../ops/arrange.hpp"
#include "../ops/random.hpp"
#include "../ops/softmax.hpp"
#include "../ops/state.hpp"
#include "graph_importer.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY graph_importer::graph_importer(graph_def d, std::map<std::string, imported_variable> variables,
                                           std::map<std::string, stand_in_placeholder> stand_ins)
    : import_words(std::move(d)), variables_(std::move(variables)), stand_ins_(std::move(stand_ins)) {
  for (const auto& [name, s] : stand_ins_)
    if (index_.find(name) < 0)
      raise(status::invalid_argument,
            text("there is no node \"", name, "\" in the graph for which a placeholder could stand"));
}

GRADUS_BODY value graph_importer::tensor(std::string_view name) {
  const tensor_place t = index_.place(name);
  if (t.node < 0) raise(status::not_found, text("the graph has no node for the tensor \"", name, "\""));
  make_all(t.node);
  needs_.clear();
  return have(t);
}

GRADUS_BODY std::string graph_importer::problem(std::string_view name) {
  try {
    tensor(name);
    return {};
  } catch (const error& e) {
    return e.what();
  }
}

GRADUS_BODY void graph_importer::make_all(int node) {
  std::vector<int> stack{node};
  while (!stack.empty()) {
    const int i = stack.back();
    if (at(i).done()) {
      stack.pop_back();
      continue;
    }
    needs_.clear();
    try {
      const value v = make(i);
      if (needs_.empty()) {
        if (!v) refuse(i, "has not the inputs that this op takes");
        check_extents(i, v.dims()), at(i).v = v;
      }
    } catch (const error& e) {
      // The error of an op's shape rule does not name the node.
      const std::string_view why = e.what();
      const bool named = why.find(said_of(index_.node(i))) != std::string_view::npos || why.starts_with("node \"");
      at(i).kind = e.kind();
      std::string problem = named ? std::string(why) : text(said_of(index_.node(i)), ": ", why);
      // Every node behind this one stores the problem, and a name may be as long as a file.
      constexpr std::size_t most = 600;
      if (problem.size() > most) problem.resize(most), problem += " ...";
      at(i).problem = std::move(problem);
      continue;
    }
    stack.insert(stack.end(), needs_.begin(), needs_.end());
  }
}

GRADUS_BODY value graph_importer::make(int i) {
  const graph_def_node& n = index_.node(i);
  const std::string_view op = common_op_name(n.op);
  if (stand_ins_.contains(n.name) || op == "Const" || op == "Placeholder") return leaf(i, op);
  if (op == "VariableV2" || op == "VarHandleOp") return variable(i);
  for (const int c : index_.controls(i))
    if (const std::string& waits = index_.node(c).op; waits.starts_with("Assign") || waits.starts_with("Apply"))
      refuse(i, text("waits for ", said_of(index_.node(c)), ", which changes a variable; ask for a tensor before it"),
             status::unimplemented);
  // Patterns of several nodes are tried first, then those of one node.
  const auto patterns = patterns_of(op);
  for (const tensorflow_pattern* p : patterns)
    if (const auto m = p->calls > 1 ? match(index_, *p, i) : std::nullopt) return from_pattern(i, *m);
  bool known = false;
  if (const value v = special(i, op, known); known) return v;
  for (const tensorflow_pattern* p : patterns)
    if (const auto m = p->calls == 1 ? match(index_, *p, i) : std::nullopt) return from_pattern(i, *m);
  const std::string_view advice =
      "; ask for a tensor before it, or let a placeholder stand for it (import_options::placeholders)";
  if (!patterns.empty())
    refuse(i, text("its inputs or attributes are not those that this library knows of this op", advice),
           status::unimplemented);
  if (n.op.starts_with("Assign") || n.op.starts_with("Apply") || n.op == "NoOp" || n.op == "SaveV2" ||
      n.op == "RestoreV2")
    refuse(i, "it changes variables or makes no tensor, and an import has what is computed from them alone",
           status::unimplemented);
  refuse(i, text("this library has no such op", advice), status::unimplemented);
}

GRADUS_BODY value graph_importer::special(int i, std::string_view op, bool& known) {
  const std::string& name = index_.node(i).name;
  const auto& in = index_.inputs(i);
  known = true;
  const auto is_variable = [&](const value& v) { return v && g_->nodes[v.id].op == &variable_card; };
  if ((op == "Identity" && index_.controls(i).empty()) || op == "ReadVariableOp" || op == "Snapshot") {
    const value x = input(i, 0);
    if (!x) return {};
    if (is_variable(x)) return x;  // <name>/read is the variable
    return add(cards::identity, {x}, {}, i);
  }
  // This is a metric's update: only local variables are assigned, since an import does not change what a checkpoint
  // holds.
  if ((op == "Assign" || op == "AssignAdd" || op == "AssignSub") && in.size() == 2) {
    const value x = input(i, 0);
    if (!x) return {};
    const node& to = g_->nodes[x.id];
    if (is_variable(x) && from_words<variable_attr>(g_->ints.first + to.attr).local != 0) {
      const value y = input(i, 1);
      if (!y) return {};
      return add(op == "Assign"      ? cards::assign
                 : op == "AssignAdd" ? cards::assign_add
                                     : cards::assign_sub,
                 {x, y}, {}, i);
    }
  }
  if (op == "PlaceholderWithDefault") {
    const value x = input(i, 0);
    return x ? add(cards::identity, {x}, {}, i) : value{};
  }
  if (op == "BiasAdd") {
    const auto* format = index_.as<std::string>(i, "data_format");
    if (format != nullptr && *format != "NHWC")
      refuse(i, text("the format \"", *format, "\"; this library has NHWC alone"), status::unimplemented);
    const value x = input(i, 0), b = input(i, 1);
    return x && b ? add(cards::add, {x, b}, {}, i) : value{};
  }
  if (op == "Fill") {
    shape s;
    if (in.size() != 2) refuse(i, "takes a shape and a value");
    if (!shape_numbers(i, in[0], s)) return {};
    if (const tensor_def* c = constant_at(in[1])) {
      const value one = constant(i, *c, {});
      const node& n = g_->nodes[one.id];
      const double fill = std::bit_cast<double>(std::array<int, 2>{g_->ints[n.attr], g_->ints[n.attr + 1]});
      const value v = g_->constant(fill, c->type, s);
      g_->nodes[v.id].name = g_->names.unique(-1, name, false);
      return v;
    }
    const value x = input(i, 1);
    if (!x) return {};
    const auto a = to_words(to_attr(s));
    return add(cards::broadcast_to, {x}, {a.begin(), a.end()}, i);
  }
  if (op == "ZerosLike" || op == "OnesLike") {
    const value x = input(i, 0);
    return x ? g_->constant(op == "OnesLike", x.type(), x.dims()) : value{};
  }
  const auto reshaped = [&](value x, const shape& s) {
    const auto a = to_words(to_attr(s));
    return add(cards::reshape, {x}, {a.begin(), a.end()}, i);
  };
  if (op == "ExpandDims") {
    const value x = input(i, 0);
    if (in.size() != 2 || !x) return {};
    numbers axis;
    if (!whole_numbers(i, in[1], axis)) return {};
    const int rank = x.dims().rank;
    const std::int64_t where = axis.list.size() == 1 ? axis.list[0].n : rank + 1;
    const std::int64_t to = where < 0 ? where + rank + 1 : where;
    if (to < 0 || to > rank || rank == max_rank)
      refuse(i, text("there is no place for axis ", where, " in ", to_text(x.dims())));
    shape s;
    for (int k = 0; k <= rank; ++k) {
      if (k == to) s.push(1);
      if (k < rank) s.push(x.dims().dims[k]);
    }
    return reshaped(x, s);
  }
  if (op == "Squeeze") {
    const value x = input(i, 0);
    if (!x) return {};
    const auto* axes = index_.as<std::vector<std::int64_t>>(i, "squeeze_dims");
    int mask = 0;
    if (axes != nullptr)
      for (const std::int64_t a : *axes) {
        const std::int64_t k = a < 0 ? a + x.dims().rank : a;
        if (k < 0 || k >= x.dims().rank || x.dims().dims[k] != 1)
          refuse(i, text("axis ", a, " of ", to_text(x.dims()), " is not 1"));
        mask |= 1 << k;
      }
    shape s;
    for (int k = 0; k < x.dims().rank; ++k)
      if ((mask >> k & 1) == 0 && (mask != 0 || x.dims().dims[k] != 1)) s.push(x.dims().dims[k]);
    return reshaped(x, s);
  }
  if (op == "Pack") {
    std::vector<value> list;
    if (in.empty()) refuse(i, "has no inputs");
    if (!have_all(in, list)) return {};
    const auto* given = index_.as<std::int64_t>(i, "axis");
    const shape each = list[0].dims();
    const int rank = each.rank;
    const std::int64_t to = given == nullptr ? 0 : *given < 0 ? *given + rank + 1 : *given;
    if (to < 0 || to > rank || rank == max_rank) refuse(i, "its axis is outside of its inputs' rank");
    for (value& v : list) {
      if (!(v.dims() == each)) refuse(i, "its inputs have different extents");
      shape s;
      for (int k = 0; k <= rank; ++k) {
        if (k == to) s.push(1);
        if (k < rank) s.push(each.dims[k]);
      }
      v = gradus::reshape(v, s);
    }
    if (list.size() > static_cast<std::size_t>(max_pieces))
      return concat(*g_, list.data(), static_cast<int>(list.size()), static_cast<int>(to));
    return add(cards::concat, list, {static_cast<int>(to)}, i);
  }
  if (op == "Pad") {
    const value x = input(i, 0);
    if (!x) return {};
    if (in.size() != 2) refuse(i, "takes a tensor and paddings");
    const auto frame = whole_numbers_in(constant_of(i, in[1]));
    if (frame.size() != 2 * static_cast<std::size_t>(x.dims().rank)) refuse(i, "its paddings are not [rank, 2]");
    std::vector<int> words(2 * max_rank);
    for (std::size_t k = 0; k < frame.size(); ++k) {
      if (frame[k] < 0 || frame[k] > most_extent) refuse(i, text("a padding of ", frame[k]));
      words[(k % 2) * max_rank + k / 2] = static_cast<int>(frame[k]);
    }
    return add(cards::pad, {x, g_->constant(0, x.type())}, words, i);
  }
  if (op == "Gather" || op == "ResourceGather") {
    const value x = input(i, 0), ids = input(i, 1);
    return x && ids ? add(cards::gather, {x, ids}, {}, i) : value{};
  }
  if (op == "Relu6") {
    const value x = input(i, 0);
    return x ? add(cards::minimum, {g_->constant(6, x.type()), gradus::relu(x)}, {}, i) : value{};  // a NaN stays
  }
  if (op == "LeakyRelu") {
    const value x = input(i, 0);
    const auto* alpha = index_.as<float>(i, "alpha");
    if (!x) return {};
    const value leak = x * static_cast<double>(alpha == nullptr ? 0.2f : *alpha);
    return add(cards::select, {gradus::greater(x, 0.0), x, leak}, {}, i);
  }
  if (op == "Reciprocal" || op == "Inv") {
    const value x = input(i, 0);
    return x ? add(cards::div, {g_->constant(1, x.type()), x}, {}, i) : value{};
  }
  if (op == "Div") {
    const value x = input(i, 0), y = input(i, 1);
    return x && y ? add(cards::div, {x, y}, {}, i) : value{};
  }
  if (op == "AddN") {
    std::vector<value> list;
    if (in.empty()) refuse(i, "has no inputs");
    if (!have_all(in, list)) return {};
    value sum = list[0];
    for (std::size_t k = 1; k < list.size(); ++k) sum = gradus::add(sum, list[k]);
    return sum;
  }
  if (op == "SoftmaxCrossEntropyWithLogits" || op == "SparseSoftmaxCrossEntropyWithLogits") {
    const value x = input(i, 0), y = input(i, 1);
    if (!x || !y) return {};
    return add(op.starts_with("Sparse") ? cards::sparse_xent : cards::softmax_xent, {x, y}, {}, i);
  }
  if (op == "ArgMax")
    if (const auto* type = index_.as<dtype>(i, "output_type"); type != nullptr && *type == int32) {
      const value x = input(i, 0);
      int mask = 0;
      if (!x || in.size() != 2 || !axes_of(i, in[1], x.dims().rank, mask, false)) return {};
      return add(cards::cast, {reduce(cards::argmax, x, mask, false)}, {static_cast<int>(int32)}, i);
    }
  if (op == "StridedSlice") return strided_slice(i);
  if (op == "SelectV2" && index_.node(i).op == "Select") {
    const value c = input(i, 0), x = input(i, 1), y = input(i, 2);
    if (!c || !x || !y) return {};
    if (!(c.dims() == x.dims()) && c.dims().rank != 0)
      refuse(i, "its condition chooses rows, which this library has not; choose elements", status::unimplemented);
    return add(cards::select, {c, x, y}, {}, i);
  }
  if (op == "Shape") {
    const value x = input(i, 0);
    if (!x) return {};
    std::vector<double> list;
    for (int k = 0; k < x.dims().rank; ++k) list.push_back(x.dims().dims[k]);
    if (is_batched(x.dims()) || list.empty())
      refuse(i, "a shape that is known when the graph runs alone is no tensor of this library", status::unimplemented);
    return g_->constant(std::span<const double>(list), {x.dims().rank}, int32);
  }
  known = false;
  return {};
}

GRADUS_BODY value graph_importer::strided_slice(int i) {
  const auto& in = index_.inputs(i);
  const value x = input(i, 0);
  if (in.size() != 4) refuse(i, "takes a tensor, where to begin, where to end, and steps");
  if (!x) return {};
  numbers begin, end, step;
  if (!whole_numbers(i, in[1], begin) || !whole_numbers(i, in[2], end) || !whole_numbers(i, in[3], step)) return {};
  const auto mask = [&](std::string_view key) {
    const auto* m = index_.as<std::int64_t>(i, key);
    return m == nullptr ? std::int64_t{0} : *m;
  };
  const std::int64_t open = mask("begin_mask"), closed = mask("end_mask"), shrinks = mask("shrink_axis_mask");
  const std::size_t many = begin.list.size();
  if (mask("ellipsis_mask") != 0 || mask("new_axis_mask") != 0 || end.list.size() != many || step.list.size() != many ||
      many > static_cast<std::size_t>(x.dims().rank))
    refuse(i, "of slices, those without new axes and ellipses are known", status::unimplemented);
  std::vector<int> words(2 * max_rank);
  shape left;
  for (int k = 0; k < x.dims().rank; ++k) {
    const auto at = static_cast<std::size_t>(k);
    const int n = x.dims().dims[k];
    std::int64_t first = 0, last = n;
    bool shrink = false;
    if (at < many) {
      if (step.list[at].n != 1 || begin.list[at].batch || step.list[at].batch)
        refuse(i, "slices in steps of 1 are known alone", status::unimplemented);
      shrink = (shrinks >> k & 1) != 0;
      const bool from_start = (open >> k & 1) != 0 || (begin.list[at].n == 0 && !shrink);
      const bool to_end = (closed >> k & 1) != 0 ||
                          (end.list[at].batch ? -end.list[at].n == n : n >= 0 && end.list[at].n >= n && !shrink);
      if (n < 0) {
        if (!from_start || !to_end || shrink)
          refuse(i, text("axis ", k, " holds the batch and can only be taken whole"), status::unimplemented);
      } else {
        const auto place = [n](std::int64_t v) { return std::clamp<std::int64_t>(v < 0 ? v + n : v, 0, n); };
        first = from_start ? 0 : place(begin.list[at].n);
        last = shrink ? first + 1 : to_end ? n : place(end.list[at].n);
        if (last <= first || last > n) refuse(i, text("nothing is left of axis ", k));
      }
    }
    words[at] = static_cast<int>(first), words[max_rank + at] = n < 0 ? n : static_cast<int>(last - first);
    if (!shrink) left.push(words[max_rank + at]);
  }
  if (left.rank == x.dims().rank) return add(cards::slice, {x}, words, i);
  const value cut = g_->add(cards::slice, &x, 1, words.data(), static_cast<int>(words.size()));
  const auto a = to_words(to_attr(left));
  return add(cards::reshape, {cut}, {a.begin(), a.end()}, i);
}

GRADUS_BODY value graph_importer::leaf(int i, std::string_view op) {
  const std::string& name = index_.node(i).name;
  if (const auto found = stand_ins_.find(name); found != stand_ins_.end())
    return g_->placeholder(name, found->second.dims, found->second.type);
  if (op == "Const") {
    type_of(i, "dtype");
    return constant(i, index_.need<tensor_def>(i, "value"), name);
  }
  const dtype type = type_of(i, "dtype");
  if (!index_.inputs(i).empty()) refuse(i, "has inputs, which a placeholder has not");
  return g_->placeholder(name, shape_of(i, "shape"), type);
}

// Reads the initial values that to_meta_graph writes, and TensorFlow's constants.
GRADUS_BODY bool graph_importer::first_value(int i, const imported_variable& a, const shape& dims, dtype type,
                                             variable_options& o, value& from) {
  const tensor_place t = a.initial_value.empty() ? tensor_place{} : index_.place(a.initial_value);
  if (t.node < 0) return true;
  const auto scalar = [&](tensor_place p, float& to) {
    const tensor_def* c = constant_at(p);
    if (c == nullptr || !c->dims.empty() || !is_float(c->type)) return false;
    with_element_type(c->type, [&]<class T>() {
      T x;
      if (c->content.size() == sizeof x) std::memcpy(&x, c->content.data(), sizeof x), to = static_cast<float>(x);
    });
    return true;
  };
  std::string_view op = index_.node(t.node).op;
  tensor_place root = t;
  if (op == "Cast" && index_.inputs(root.node).size() == 1)
    root = index_.inputs(root.node)[0], op = index_.node(root.node).op;
  const auto& in = index_.inputs(root.node);
  float low = 0, wide = 0;
  if (op == "Fill" && in.size() == 2 && scalar(in[1], low)) {
    o.init = constant_initializer(low);
    return true;
  }
  if (const tensor_def* c = constant_at(t)) {
    if (c->type != type || static_cast<int>(c->dims.size()) != dims.rank) return true;
    from = constant(i, *c, {});
    return true;
  }
  if (common_op_name(op) != "Add" || in.size() != 2 || index_.node(in[0].node).op != "Mul" || !scalar(in[1], low))
    return true;
  const auto& scaled = index_.inputs(in[0].node);
  if (scaled.size() != 2 || !scalar(scaled[1], wide)) return true;
  const std::string_view drawn = index_.node(scaled[0].node).op;
  if (drawn == "RandomUniform") o.init = random_uniform(low, low + wide);
  if (drawn == "RandomStandardNormal") o.init = random_normal(low, wide);
  if (drawn == "TruncatedNormal") o.init = truncated_normal(low, wide);
  return true;
}

GRADUS_BODY value graph_importer::variable(int i) {
  const std::string& name = index_.node(i).name;
  const dtype type = type_of(i, "dtype");
  const shape dims = shape_of(i, "shape");
  imported_variable a;
  if (const auto found = variables_.find(name); found != variables_.end())
    a = found->second;
  else if (!variables_.empty())
    a = {.trainable = false, .local = true};
  variable_options o{.init = gradus::zeros, .trainable = a.trainable, .local = a.local, .type = type};
  value from;
  first_value(i, a, dims, type, o, from);
  if (from && from.dims() == dims) return variable_from(name, from, o);
  const value v = g_->variable(name, dims, o);
  // These are the variables of random ops, which find them by the collection.
  if ((name == collection::random_seed || name == collection::random_step) && type == int64 && dims.rank == 0)
    g_->add_to(name, v);
  return v;
}

}  // namespace gradus::detail
