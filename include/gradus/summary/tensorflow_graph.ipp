// The bodies of tensorflow_graph.hpp.
#pragma once
#include "../base/body.hpp"
#include "tensorflow_graph.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY tensor_def tensor_of(dtype type, std::vector<std::int64_t> dims, const std::vector<double>& values) {
  shown_node s;
  s.type = type, s.constant = values;
  tensor_def t = to_tensor_def(s);
  t.dims = std::move(dims);
  return t;
}

GRADUS_BODY tensorflow_graph::tensor tensorflow_graph::add(std::string name, std::string_view op,
                                                           std::vector<std::string> inputs,
                                                           std::vector<graph_def_attr> attrs, dtype type) {
  def.nodes.push_back({name, std::string(op), std::move(inputs), {}, std::move(attrs)});
  return {std::move(name), type};
}

GRADUS_BODY tensorflow_graph::tensor tensorflow_graph::constant(std::string name, tensor_def value) {
  const dtype type = value.type;
  return add(std::move(name), "Const", {}, {{"dtype", type}, {"value", std::move(value)}}, type);
}

GRADUS_BODY tensorflow_graph::tensor tensorflow_graph::write(const std::string& name, std::string_view formula,
                                                             std::vector<tensor> operands,
                                                             tensorflow_settings settings) {
  call c{name, formula, 0, std::move(operands), std::move(settings), {}, 0};
  for (;;) {
    const std::size_t end = formula.find(';', c.at), equals = formula.find('=', c.at);
    if (end == std::string_view::npos) return expression(c, true);
    const std::string_view helper = word(c);
    c.at = equals + 1;
    c.helpers.emplace_back(helper, expression(c, false));
    c.at = end + 1;
  }
}

GRADUS_BODY void tensorflow_graph::skip(call& c) {
  while (c.at < c.text.size() && c.text[c.at] == ' ') ++c.at;
}

GRADUS_BODY bool tensorflow_graph::take(call& c, char what) {
  skip(c);
  if (c.at >= c.text.size() || c.text[c.at] != what) return false;
  ++c.at;
  return true;
}

GRADUS_BODY std::string_view tensorflow_graph::word(call& c) {
  skip(c);
  const std::size_t from = c.at;
  for (; c.at < c.text.size(); ++c.at) {
    const char k = c.text[c.at];
    const bool inside =
        (k >= 'a' && k <= 'z') || (k >= 'A' && k <= 'Z') || (k >= '0' && k <= '9') || k == '_' || k == '.' || k == '-';
    if (!inside) break;
  }
  return c.text.substr(from, c.at - from);
}

GRADUS_BODY double tensorflow_graph::number(std::string_view w) {
  double value = 0;
  decimal_at(w.data(), w.data() + w.size(), value);
  return value;
}

GRADUS_BODY void tensorflow_graph::wrong(const call& c) {
  raise(status::internal, text("the formula \"", c.text, "\" cannot be read at ", c.at));
}

GRADUS_BODY const attr_value& tensorflow_graph::setting(const call& c, std::string_view name) {
  for (const auto& [key, value] : c.settings)
    if (key == name) return value;
  raise(status::internal, text("the formula \"", c.text, "\" names a setting \"", name, "\" that is not there"));
}

GRADUS_BODY tensorflow_graph::tensor tensorflow_graph::setting_as_tensor(call& c, std::string_view name) {
  const attr_value& v = setting(c, name);
  if (const auto* dims = v.get_if<shape_def>()) return shape_tensor(c, *dims);
  const std::string own = helper_name(c, name);
  if (const auto* whole = v.get_if<tensor_def>()) return constant(own, *whole);
  std::vector<double> values;
  if (const auto* one = v.get_if<std::int64_t>()) {
    values.push_back(static_cast<double>(*one));
    return constant(own, tensor_of(int32, {}, values));
  }
  for (const std::int64_t n : v.get<std::vector<std::int64_t>>()) values.push_back(static_cast<double>(n));
  return constant(own, tensor_of(int32, {static_cast<std::int64_t>(values.size())}, values));
}

GRADUS_BODY tensorflow_graph::tensor tensorflow_graph::shape_tensor(call& c, const shape_def& s) {
  std::vector<double> known;
  bool open = false;
  for (const std::int64_t d : s.dims) known.push_back(static_cast<double>(d)), open = open || d < 0;
  const auto rank = static_cast<std::int64_t>(known.size());
  if (!open) return constant(helper_name(c, "shape"), tensor_of(int32, {rank}, known));
  const tensor n = batch();
  std::vector<std::string> pieces;
  for (const std::int64_t d : s.dims) {
    if (d == -1) {
      pieces.push_back(n.name);
      continue;
    }
    const tensor k = constant(helper_name(c, "extent"), tensor_of(int32, {}, {static_cast<double>(d < 0 ? -d : d)}));
    if (d > 0 || d == 0)
      pieces.push_back(k.name);
    else
      pieces.push_back(add(helper_name(c, "extents"), "Mul", {n.name, k.name}, {{"T", int32}}, int32).name);
  }
  return add(helper_name(c, "shape"), "Pack", std::move(pieces), {{"T", int32}, {"N", rank}, {"axis", std::int64_t{0}}},
             int32);
}

GRADUS_BODY const tensorflow_graph::tensor& tensorflow_graph::batch() {
  if (!batch_.name.empty()) return batch_;
  const std::string name = names_.take("batch");
  batch_ = write(
      name,
      batch_from->times == 1 ? "GatherV2(Shape($0), @axis, 0i)" : "FloorDiv(GatherV2(Shape($0), @axis, 0i), @times)",
      {batch_from->of}, {{"axis", std::int64_t{batch_from->axis}}, {"times", std::int64_t{batch_from->times}}});
  return batch_;
}

GRADUS_BODY tensorflow_graph::tensor tensorflow_graph::expression(call& c, bool last) {
  if (++c.depth > 32) wrong(c);
  if (take(c, '$')) {
    const std::string_view w = word(c);
    return --c.depth, operand(c, w);
  }
  if (take(c, '@')) {
    const std::string_view w = word(c);
    return --c.depth, setting_as_tensor(c, w);
  }
  std::string_view w = word(c);
  if (w.empty()) wrong(c);
  if (is_number(w)) {
    const bool whole = w.back() == 'i';
    const dtype type = whole ? int32 : c.operands.empty() ? float32 : c.operands[0].type;
    if (whole) w.remove_suffix(1);
    return --c.depth, constant(helper_name(c, "Const"), tensor_of(type, {}, {number(w)}));
  }
  if (!take(c, '(')) {
    for (const auto& [name, t] : c.helpers)
      if (name == w) return --c.depth, t;
    wrong(c);
  }
  std::vector<tensor> inputs;
  std::vector<std::string> after;
  while (!take(c, ')')) {
    if (take(c, '^')) {
      after.push_back(text("^", expression(c, false).name));
    } else if (c.text.substr(c.at).starts_with("$*")) {
      c.at += 2;
      inputs.insert(inputs.end(), c.operands.begin(), c.operands.end());
    } else {
      inputs.push_back(expression(c, false));
    }
    take(c, ',');
    skip(c);
  }
  std::vector<graph_def_attr> attrs;
  if (take(c, '{'))
    while (!take(c, '}')) {
      const std::string_view key = word(c);
      if (!take(c, '=')) wrong(c);
      attrs.push_back({std::string(key), attribute(c, word(c))});
      take(c, ',');
    }
  --c.depth;
  return add_op(c, w, inputs, after, std::move(attrs), last);
}

GRADUS_BODY tensorflow_graph::tensor tensorflow_graph::operand(const call& c, std::string_view w) {
  const auto i = static_cast<std::size_t>(number(w));
  if (i >= c.operands.size()) wrong(c);
  return c.operands[i];
}

GRADUS_BODY attr_value tensorflow_graph::attribute(const call& c, std::string_view w) {
  if (w == "true") return true;
  if (w == "bfloat16") return bfloat16;
  if (w == "float16") return float16;
  if (w == "int64") return int64;
  if (is_number(w)) return static_cast<std::int64_t>(number(w));
  return setting(c, w);
}

GRADUS_BODY tensorflow_graph::tensor tensorflow_graph::add_op(call& c, std::string_view op,
                                                              const std::vector<tensor>& inputs,
                                                              const std::vector<std::string>& after,
                                                              std::vector<graph_def_attr> attrs, bool last) {
  const tensorflow_op* rule = find_tensorflow_op(op);
  std::string_view rules = rule != nullptr ? rule->attributes : "T=0";
  while (!rules.empty()) {
    const std::string_view one = rules.substr(0, rules.find(' '));
    rules.remove_prefix(one.size() + (one.size() < rules.size()));
    const auto equals = one.find('=');
    std::string_view from = one.substr(equals + 1);
    graph_def_attr a{std::string(one.substr(0, equals)), std::int64_t{0}};
    if (from[0] == '#') {
      a.value = static_cast<std::int64_t>(inputs.size()) - (from.size() > 1 ? 1 : 0);
    } else if (from[0] == '*') {
      std::vector<dtype> types;
      for (std::size_t i = 1; i < inputs.size(); ++i) types.push_back(inputs[i].type);
      a.value = std::move(types);
    } else {
      a.value = from == "-1" ? inputs.back().type : inputs.at(static_cast<std::size_t>(number(from))).type;
    }
    attrs.push_back(std::move(a));
  }
  const std::string_view result = rule != nullptr ? rule->result : "0";
  dtype type = dtype::none;
  if (result == "bool")
    type = boolean;
  else if (result == "int32")
    type = int32;
  else if (is_number(result))
    type = inputs.at(static_cast<std::size_t>(number(result))).type;
  else
    for (const auto& a : attrs)
      if (a.key == result) type = a.value.get<dtype>();
  std::vector<std::string> names;
  for (const tensor& t : inputs) names.push_back(t.name);
  names.insert(names.end(), after.begin(), after.end());
  return add(last ? c.name : helper_name(c, op), op, std::move(names), std::move(attrs), type);
}

GRADUS_BODY tensorflow_settings tensorflow_settings_of(const shown_node& n, const int* w, const shape& s,
                                                       std::string& formula) {
  tensorflow_settings out;
  using list = std::vector<std::int64_t>;
  const std::string_view op = n.op;
  const auto put = [&out](std::string_view name, attr_value v) { out.emplace_back(name, std::move(v)); };
  const auto number = [](int v) { return std::int64_t{v}; };
  const auto words = [&](int from, int count) { return list(w + from, w + from + count); };
  const auto real = [&](double v) { return tensor_of(n.type, {}, {v}); };

  shape_def dims;  // extents that contain the batch stay multiples of it
  list reshaped;   // or are -1, which TensorFlow infers
  for (int i = 0; i < n.dims.rank; ++i)
    dims.dims.push_back(n.dims.dims[i]), reshaped.push_back(n.dims.dims[i] < 0 ? -1 : n.dims.dims[i]);
  put("type", n.type), put("shape", dims), put("to", reshaped);
  if (s.rank > 0) {
    list leading;
    for (int i = 0; i + 1 < s.rank; ++i) leading.push_back(i);
    put("leading", leading), put("matrix", list{-1, s.back()}), put("list", list{-1});
    put("last_extent", number(s.back()));
  }
  if (op == "Sum" || op == "Mean" || op == "Max" || op == "Min" || op == "Size" || op == "ArgMax") {  // reduce_attr
    list axes;
    for (int i = 0; i < s.rank; ++i)
      if ((w[0] >> i & 1) != 0) axes.push_back(i);
    put("axis", axes.empty() ? std::int64_t{0} : axes[0]);
    put("axes", axes), put("keep", op != "Size" && w[1] != 0);
  } else if (op == "CausalMask") {
    put("time", number(s.back()));
  } else if (op == "CheckBetween") {
    list all;
    for (int i = 0; i < s.rank; ++i) all.push_back(i);
    put("every_axis", all);
  } else if (op == "MatMul") {  // matmul_attr
    put("transpose_a", w[0] != 0), put("transpose_b", w[1] != 0);
    if (n.dims.rank > 2) formula = "MatMuls";
  } else if (op == "Transpose") {
    put("perm", words(0, s.rank));
  } else if (op == "Slice") {  // box_attr
    list size = words(max_rank, s.rank);
    for (auto& d : size) d = d < 0 ? -1 : d;
    put("begin", words(0, s.rank)), put("size", size);
  } else if (op == "PadV2") {
    std::vector<double> frame;
    for (int i = 0; i < s.rank; ++i) frame.push_back(w[i]), frame.push_back(w[max_rank + i]);
    put("paddings", tensor_of(int32, {s.rank, 2}, frame));
  } else if (op == "ConcatV2") {
    put("axis", number(w[0]));
    if (n.source->inputs == 1) formula = "Identity";
  } else if (op == "Range") {
    put("count", number(w[0]));
  } else if (op == "OneHot") {
    put("depth", number(w[0]));
  } else if (op == "RowsToDense") {
    put("rows", number(n.dims.dims[0]));
  } else if (has_windows(op)) {  // window_attr
    put("window", list{1, w[0], w[1], 1}), put("strides", list{1, w[2], w[3], 1});
    put("padding", std::string(w[4] != 0 ? "SAME" : "VALID")), put("filters", list{0, 2, 3, 1});
    // These are the ops' defaults, written for readers that do not have them.
    put("dilations", list{1, 1, 1, 1}), put("format", std::string("NHWC"));
  } else if (op == "LayerNorm" || op == "LayerNormGrad" || op == "LayerNormParameterGrad") {  // layer_norm_attr
    put("epsilon", real(std::bit_cast<double>(std::array<int, 2>{w[2], w[3]})));
    if (w[0] != 0 && op != "LayerNormParameterGrad") formula += " gamma";
    if (w[1] != 0 && op == "LayerNorm") formula += " beta";
  } else if (op.starts_with(
                 "Attention")) {  // attention_attr; the shape of operand 0 or of the result gives time and width
    const shape& rows = op == "AttentionMix" ? n.dims : s;
    const std::int64_t time = rows[1], width = op == "AttentionMix" ? rows[2] : rows[2] / 3, heads = w[0];
    const std::int64_t each = width / heads;
    put("time", time), put("apart", list{-1, time, 3, heads, each}), put("heads_apart", list{-1, time, heads, each});
    put("turn", list{2, 0, 3, 1, 4}), put("turn_back", list{1, 3, 0, 2, 4}), put("heads_in", list{0, 2, 1, 3});
    put("scale", real(1 / std::sqrt(static_cast<double>(each))));
    if (op == "AttentionWeights" && w[1] != 0) formula += " causal";
  }
  return out;
}

}  // namespace gradus::detail
