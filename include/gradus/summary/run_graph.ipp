// The bodies of run_graph.hpp.
#pragma once
#include <algorithm>

#include "../base/body.hpp"
#include "../base/deferred.hpp"
#include "run_graph.hpp"
#include "tensorflow_graph.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class meta_writer {
public:
  meta_writer(const graph_parts& p, const char* names, std::string_view refusal);

  meta_graph run(std::vector<saved_tensor> saved);
  void use(const std::map<std::string, node_signature>& signatures) { asked_ = &signatures; }

private:
  using tensor = tensorflow_tensor;

  graph_parts p_;
  const char* names_;
  std::vector<shown_node> nodes_;
  std::string why_none_ = "the model names no predictions";
  meta_graph m_;
  tensorflow_graph to_;
  std::vector<bool> wanted_;
  std::vector<tensor> written_;  // of each of our nodes
  std::vector<std::string> variables_;
  std::vector<std::string> first_values_;  // the ops that give local variables their initial values, as control inputs
  const std::map<std::string, node_signature>* asked_ = nullptr;  // null: the model's predictions

  static bool is_variable(const shown_node& n) { return n.source->op == &variable_card; }
  variable_attr settings_of(const shown_node& n) const;
  int input(std::size_t i, int k) const { return p_.view.edges[nodes_[i].source->first + k]; }
  static bool is_leaf(const shown_node& n);
  bool changes_local(const shown_node& n) const;

  // ---- what is written: the nodes that predictions need, unless one of them cannot be written
  std::string problem_of(const shown_node& n, bool batched_input) const;
  void find_wanted();
  void want_predictions(const std::vector<std::string>& problems);
  void want_signatures(const std::vector<std::string>& problems);
  void want_operands(std::vector<bool>& of) const;
  bool needs_batch() const;

  // ---- nodes
  static tensorflow_settings shaped(const std::vector<std::int64_t>& dims, dtype type);
  void add_node(std::size_t i);

  // ---- variables: the initial value, the node, its Assign, and the tensor that is read
  tensor add_initial_value(const std::string& name, const saved_tensor& s, const variable_attr& a);
  variable_def add_variable_nodes(const saved_tensor& s, const std::string& name, std::size_t ours);
  void add_saved(const saved_tensor& s);

  // ---- what is fed and fetched, by the model's names
  void add_predictions();
  void add_signatures();
  void add_main_op();
  tensor_info info_of(int node) const;

  // ---- the nodes that tf.train.Saver() makes
  void add_saver(const std::vector<saved_tensor>& saved);
};

GRADUS_BODY meta_writer::meta_writer(const graph_parts& p, const char* names, std::string_view refusal)
    : p_(p), names_(names) {
  if (refusal.empty())
    nodes_ = describe(p, names);
  else
    p_.output_count = 0, why_none_ = text("the model does not build in mode::predict: ", refusal);
}

GRADUS_BODY meta_graph meta_writer::run(std::vector<saved_tensor> saved) {
  if (saved.empty() && asked_ == nullptr)
    for (const shown_node& n : nodes_)
      if (is_variable(n) && settings_of(n).local == 0)
        saved.push_back({n.name, n.type, to_shape_def(n.dims).dims, settings_of(n).trainable != 0});
  find_wanted();
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (wanted_[i] || is_variable(nodes_[i])) to_.take(nodes_[i].name);
  for (const saved_tensor& s : saved) add_saved(s);
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (wanted_[i]) add_node(i);
  if (asked_ != nullptr)
    add_signatures(), add_main_op();
  else
    add_predictions();
  add_saver(saved);
  m_.graph = std::move(to_.def);
  return std::move(m_);
}

GRADUS_BODY variable_attr meta_writer::settings_of(const shown_node& n) const {
  return from_words<variable_attr>(p_.view.ints + n.source->attr);
}

GRADUS_BODY bool meta_writer::is_leaf(const shown_node& n) {
  return n.source->op == &placeholder_card || n.source->op == &variable_card || n.source->op == &constant_card;
}

// Returns whether n is a metric's update: it is written only for signatures, and changes a variable that no checkpoint
// holds.
GRADUS_BODY bool meta_writer::changes_local(const shown_node& n) const {
  if (asked_ == nullptr || (n.op != "Assign" && n.op != "AssignAdd" && n.op != "AssignSub")) return false;
  const shown_node& to = nodes_[static_cast<std::size_t>(p_.view.edges[n.source->first])];
  return is_variable(to) && settings_of(to).local != 0;
}

GRADUS_BODY std::string meta_writer::problem_of(const shown_node& n, bool batched_input) const {
  if (is_leaf(n) && n.source->op != &constant_card) return {};
  const std::string subject = text("node \"", n.name, "\" (", n.op, "): ");
  if (changes_local(n)) return {};
  if (n.source->op != &constant_card && find_tensorflow_formula(n.op) == nullptr) {
    const std::string_view why = find_tensorflow_absence(n.op);
    return subject +
           std::string(why.empty() ? "TensorFlow has no such op, and this library knows none that make it up" : why);
  }
  if (const int* w = p_.view.ints + n.source->attr; n.op.starts_with("DepthwiseConv2d") && w[2] != w[3])
    return subject + text("strides ", w[2], ", ", w[3], "; TensorFlow's depthwise convolutions have equal ones alone");
  if (!batched_input && n.source->inputs == 0 && is_batched(n.dims))
    return subject + "its extents hold the batch, and the model has no placeholder that does";
  return {};
}

GRADUS_BODY void meta_writer::find_wanted() {
  wanted_.resize(nodes_.size()), written_.resize(nodes_.size());
  std::vector<std::string> problems(nodes_.size());
  bool batched = false;
  for (const shown_node& n : nodes_) batched = batched || (n.source->op == &placeholder_card && is_batched(n.dims));
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    problems[i] = problem_of(nodes_[i], batched);
    for (int k = 0; k < nodes_[i].source->inputs && problems[i].empty(); ++k)
      problems[i] = problems[static_cast<std::size_t>(input(i, k))];
  }
  if (asked_ != nullptr)
    want_signatures(problems);
  else
    want_predictions(problems);
  want_operands(wanted_);
  // One placeholder determines the size of the batch: one that is fed anyway, if there is one.
  for (const bool fed : {true, false})
    for (std::size_t i = 0; i < nodes_.size() && !to_.batch_from; ++i) {
      const shown_node& n = nodes_[i];
      if (n.source->op != &placeholder_card || (fed && !wanted_[i]) || !is_batched(n.dims)) continue;
      for (int axis = 0; axis < n.dims.rank; ++axis)
        if (n.dims.dims[axis] < 0) to_.batch_from = {{n.name, n.type}, axis, -n.dims.dims[axis]};
      if (!fed) wanted_[i] = needs_batch();
    }
}

GRADUS_BODY void meta_writer::want_operands(std::vector<bool>& of) const {
  for (std::size_t i = nodes_.size(); i-- > 0;)
    if (of[i])
      for (int k = 0; k < nodes_[i].source->inputs; ++k) of[static_cast<std::size_t>(input(i, k))] = true;
}

GRADUS_BODY void meta_writer::want_predictions(const std::vector<std::string>& problems) {
  collection_def left_out;
  const auto say = [&left_out](const std::string& s) {
    const auto bytes = detail::text_bytes(s);
    left_out.messages.emplace_back(bytes.begin(), bytes.end());
  };
  bool any = false;
  for (int k = 0; k < p_.output_count; ++k) {
    const output& o = p_.outputs[k];
    if (o.kind != output::prediction) continue;
    any = true;
    const auto i = static_cast<std::size_t>(o.node);
    if (problems[i].empty())
      wanted_[i] = true;
    else
      say(text("prediction \"", name_in(names_, o.name), "\": ", problems[i]));
  }
  if (!any) say(why_none_);
  if (!left_out.messages.empty()) m_.collections[std::string(left_out_collection)] = std::move(left_out);
}

GRADUS_BODY void meta_writer::want_signatures(const std::vector<std::string>& problems) {
  for (const auto& [name, signature] : *asked_) {
    const auto checked = [&, &of = name](const std::string& key, int node) {
      if (node < 0 || static_cast<std::size_t>(node) >= nodes_.size())
        raise(status::invalid_argument, text("signature \"", of, "\": \"", key, "\" is no tensor of the graph"));
      return static_cast<std::size_t>(node);
    };
    std::vector<bool> needed(nodes_.size()), fed(nodes_.size());
    for (const auto& [key, node] : signature.inputs) {
      const std::size_t i = checked(key, node);
      if (nodes_[i].source->op != &placeholder_card)
        raise(status::invalid_argument, text("signature \"", name, "\": the input \"", key, "\" is node \"",
                                             nodes_[i].name, "\" (", nodes_[i].op, "); give a placeholder"));
      wanted_[i] = fed[i] = true;
    }
    for (const auto& [key, node] : signature.outputs) {
      const std::size_t i = checked(key, node);
      if (nodes_[i].type == dtype::none)
        raise(status::invalid_argument, text("signature \"", name, "\": the output \"", key, "\" is node \"",
                                             nodes_[i].name, "\" (", nodes_[i].op, "), which makes no tensor"));
      if (!problems[i].empty())
        raise(status::unimplemented, text("signature \"", name, "\": the output \"", key,
                                          "\" cannot be written in TensorFlow's ops: ", problems[i]));
      wanted_[i] = needed[i] = true;
    }
    want_operands(needed);
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (needed[i] && !fed[i] && nodes_[i].source->op == &placeholder_card)
        raise(status::invalid_argument,
              text("signature \"", name, "\": its outputs need the placeholder \"", nodes_[i].name,
                   "\", which is none of its inputs; name it there, or leave out the output that needs it"));
  }
}

GRADUS_BODY bool meta_writer::needs_batch() const {
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (wanted_[i] && nodes_[i].source->inputs == 0 && is_batched(nodes_[i].dims)) return true;
  return false;
}

GRADUS_BODY tensorflow_settings meta_writer::shaped(const std::vector<std::int64_t>& dims, dtype type) {
  return {{"shape", shape_def{dims}}, {"type", type}};
}

GRADUS_BODY void meta_writer::add_node(std::size_t i) {
  const shown_node& n = nodes_[i];
  if (is_variable(n)) {
    if (written_[i].name.empty()) {  // a local one, or one that no checkpoint holds
      const auto v = add_variable_nodes({n.name, n.type, to_shape_def(n.dims).dims}, n.name, i);
      m_.collections["local_variables"].messages.push_back(encode_variable_def(v));
      first_values_.push_back(text("^", v.initializer));
    }
    return;
  }
  if (changes_local(n)) {  // the first input is the variable itself, not its value
    written_[i] = to_.add(
        n.name, std::string(n.op),
        {nodes_[static_cast<std::size_t>(input(i, 0))].name, written_[static_cast<std::size_t>(input(i, 1))].name},
        {{"T", n.type}, {"use_locking", false}}, n.type);
    return;
  }
  if (n.source->op == &placeholder_card) {
    std::vector<graph_def_attr> attrs{{"dtype", n.type}, {"shape", to_shape_def(n.dims)}};
    // An extent of several batches is -1 in TensorFlow; an import of the graph here reads from this attribute how many
    // they are.
    std::vector<std::int64_t> own(n.dims.dims, n.dims.dims + n.dims.rank);
    if (std::any_of(own.begin(), own.end(), [](std::int64_t d) { return d < -1; }))
      attrs.push_back({"_gradus_shape", std::move(own)});
    written_[i] = to_.add(n.name, "Placeholder", {}, std::move(attrs), n.type);
    return;
  }
  if (n.source->op == &constant_card) {
    const tensor_def value = to_tensor_def(n);
    if (n.constant.size() > 1 || n.dims.rank == 0) {
      written_[i] = to_.constant(n.name, value);
      return;
    }
    std::vector<std::int64_t> dims(n.dims.dims, n.dims.dims + n.dims.rank);
    tensorflow_settings settings = shaped(dims, n.type);
    settings.emplace_back("value", value);
    written_[i] = to_.write(n.name, "Fill(@shape, @value)", {}, std::move(settings));
    return;
  }
  std::vector<tensor> operands;
  for (int k = 0; k < n.source->inputs; ++k) operands.push_back(written_[static_cast<std::size_t>(input(i, k))]);
  std::string formula(n.op);
  const shape none;
  const shape& first = n.source->inputs > 0 ? p_.view.nodes[input(i, 0)].dims : none;
  tensorflow_settings settings = tensorflow_settings_of(n, p_.view.ints + n.source->attr, first, formula);
  if (!operands.empty() && !is_float(operands[0].type) && find_tensorflow_formula(formula + "#") != nullptr)
    formula += "#";
  const tensorflow_formula& f = *find_tensorflow_formula(formula);
  const bool narrow = f.widens && !operands.empty() && operands[0].type == uint8;
  if (!narrow) {
    written_[i] = to_.write(n.name, f.text, std::move(operands), std::move(settings));
    return;
  }
  for (tensor& t : operands)
    if (t.type == uint8) t = to_.write(to_.take(n.name + "/widened"), "Cast($0){DstT=type}", {t}, {{"type", int32}});
  if (n.type != uint8) {
    written_[i] = to_.write(n.name, f.text, std::move(operands), std::move(settings));
    return;
  }
  const tensor wide = to_.write(to_.take(n.name + "/wide"), f.text, std::move(operands), std::move(settings));
  written_[i] = to_.write(n.name, "Cast($0){DstT=type}", {wide}, {{"type", uint8}});
}

GRADUS_BODY meta_writer::tensor meta_writer::add_initial_value(const std::string& name, const saved_tensor& s,
                                                               const variable_attr& a) {
  const dtype type = is_float(s.type) ? s.type : float32;
  tensorflow_settings settings = shaped(s.dims, type);
  shape dims;
  for (const std::int64_t d : s.dims) dims.push(static_cast<int>(d));
  const initializer from{a.kind, a.a, a.b, a.fan, a.distribution};
  const auto put = [&](std::string_view key, double v) { settings.emplace_back(key, tensor_of(type, {}, {v})); };
  std::string_view formula = "Fill(@shape, @a)";
  const bool scales = a.kind == initializer::variance_scaling;
  if (a.kind == initializer::uniform || (scales && a.distribution == initializer::uniform)) {
    const double limit = scales ? uniform_limit(from, dims) : 0, low = scales ? -limit : static_cast<double>(a.a);
    put("a", low), put("b", scales ? 2 * limit : static_cast<double>(a.b) - static_cast<double>(a.a));
    formula = "Add(Mul(RandomUniform(@shape){dtype=type}, @b), @a)";
  } else if (a.kind == initializer::normal || a.kind == initializer::truncated_normal || scales) {
    put("a", scales ? 0 : static_cast<double>(a.a)), put("b", stddev_before_truncation(from, dims));
    formula = a.kind == initializer::normal || (scales && a.distribution == initializer::normal)
                  ? "Add(Mul(RandomStandardNormal(@shape){dtype=type}, @b), @a)"
                  : "Add(Mul(TruncatedNormal(@shape){dtype=type}, @b), @a)";
  } else if (a.kind == initializer::orthogonal && s.dims.size() >= 2) {
    std::int64_t rows = 1;
    for (std::size_t i = 0; i + 1 < s.dims.size(); ++i) rows *= s.dims[i];
    const std::int64_t columns = s.dims.back();
    put("a", static_cast<double>(a.a));
    settings.emplace_back("tall", std::vector<std::int64_t>{std::max(rows, columns), std::min(rows, columns)});
    settings.emplace_back("turn", std::vector<std::int64_t>{1, 0});
    formula = rows < columns ? "q = Qr(RandomStandardNormal(@tall){dtype=type});"
                               " Mul(Reshape(Transpose(q, @turn), @shape), @a)"
                             : "q = Qr(RandomStandardNormal(@tall){dtype=type}); Mul(Reshape(q, @shape), @a)";
  } else if (a.kind == initializer::identity && s.dims.size() == 2) {
    put("a", static_cast<double>(a.a)), put("zero", 0);
    settings.emplace_back("rows", s.dims[0]), settings.emplace_back("columns", s.dims[1]);
    formula = "OneHot(Range(0i, @rows, 1i), @columns, @a, @zero){axis=-1}";
  } else {
    put("a", a.kind == initializer::constant ? static_cast<double>(a.a) : 0);
  }
  if (type == s.type) return to_.write(name, formula, {}, std::move(settings));
  const tensor real = to_.write(to_.take(name + "/real"), formula, {}, std::move(settings));
  return to_.write(name, "Cast($0){DstT=type}", {real}, {{"type", s.type}});
}

GRADUS_BODY variable_def meta_writer::add_variable_nodes(const saved_tensor& s, const std::string& name,
                                                         std::size_t ours) {
  const bool known = ours < nodes_.size();
  const tensor start =
      add_initial_value(to_.take(name + "/initial_value"), s, known ? settings_of(nodes_[ours]) : variable_attr{});
  to_.add(
      name, "VariableV2", {},
      {{"dtype", s.type}, {"shape", shape_def{s.dims}}, {"container", std::string()}, {"shared_name", std::string()}},
      s.type);
  const tensor assign = to_.add(to_.take(name + "/Assign"), "Assign", {name, start.name},
                                {{"T", s.type}, {"use_locking", true}, {"validate_shape", true}}, s.type);
  const tensor read = to_.add(to_.take(name + "/read"), "Identity", {name}, {{"T", s.type}}, s.type);
  if (known) written_[ours] = read;
  return {.name = name,
          .initializer = assign.name,
          .snapshot = read.name + ":0",
          .initial_value = start.name + ":0",
          .trainable = s.trainable,
          .part = s.part};
}

GRADUS_BODY void meta_writer::add_saved(const saved_tensor& s) {
  std::size_t ours = nodes_.size();
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (is_variable(nodes_[i]) && nodes_[i].name == s.name) ours = i;
  const std::string name = ours < nodes_.size() ? s.name : to_.take(s.name);
  const variable_def v = add_variable_nodes(s, name, ours);
  variables_.push_back(name);
  add_variable(m_, v);
  if (s.name == "global_step") m_.collections["global_step"].messages.push_back(encode_variable_def(v));
}

GRADUS_BODY void meta_writer::add_predictions() {
  signature_def signature;
  for (int k = 0; k < p_.output_count; ++k) {
    const output& o = p_.outputs[k];
    const auto i = static_cast<std::size_t>(o.node);
    if (o.kind != output::prediction || !wanted_[i] || written_[i].name.empty()) continue;
    const std::string key(name_in(names_, o.name));
    const tensor t = to_.write(to_.take("predictions/" + key), "Identity($0)", {written_[i]}, {});
    signature.outputs[key] = {t.name + ":0", t.type, to_shape_def(nodes_[i].dims)};
    m_.collections["predictions"].nodes.push_back(t.name + ":0");
  }
  if (signature.outputs.empty()) return;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (wanted_[i] && nodes_[i].source->op == &placeholder_card)
      signature.inputs[nodes_[i].name] = {nodes_[i].name + ":0", nodes_[i].type, to_shape_def(nodes_[i].dims)};
  m_.signatures["serving_default"] = std::move(signature);
}

GRADUS_BODY tensor_info meta_writer::info_of(int node) const {
  const auto i = static_cast<std::size_t>(node);
  return {written_[i].name + ":0", written_[i].type, to_shape_def(nodes_[i].dims)};
}

GRADUS_BODY void meta_writer::add_signatures() {
  for (const auto& [name, asked] : *asked_) {
    signature_def& s = m_.signatures[name];
    s.method = asked.method;
    for (const auto& [key, node] : asked.inputs) s.inputs[key] = info_of(node);
    for (const auto& [key, node] : asked.outputs) s.outputs[key] = info_of(node);
  }
}

// Adds the op that TensorFlow's loader runs after it has restored the saved variables.
GRADUS_BODY void meta_writer::add_main_op() {
  if (first_values_.empty()) return;
  const tensor all = to_.add(to_.take("init_local"), "NoOp", first_values_, {}, {});
  m_.collections[std::string(main_op_collection)].nodes.push_back(all.name);
}

GRADUS_BODY void meta_writer::add_saver(const std::vector<saved_tensor>& saved) {
  if (saved.empty()) {
    m_.saver = std::nullopt;
    return;
  }
  const auto strings = [this](std::string_view name, std::vector<std::string> values, bool one = false) {
    tensor_def t{string_in_graphs, {}, {}, std::move(values)};
    if (!one) t.dims = {static_cast<std::int64_t>(t.strings.size())};
    return to_.constant(to_.take(name), std::move(t)).name;
  };
  std::vector<std::string> keys, slices;
  std::vector<dtype> types;
  for (const saved_tensor& s : saved)
    keys.push_back(s.key.empty() ? s.name : s.key), slices.push_back(s.slice), types.push_back(s.type);
  const auto with_default = [this](std::string_view name, const std::string& from) {
    return to_.add(to_.take(name), "PlaceholderWithDefault", {from},
                   {{"dtype", string_in_graphs}, {"shape", shape_def{}}}, string_in_graphs);
  };
  const std::string file =
      with_default("save/Const", with_default("save/filename", strings("save/filename/input", {"model"}, true)).name)
          .name;
  std::vector<std::string> inputs{file, strings("save/SaveV2/tensor_names", keys),
                                  strings("save/SaveV2/shape_and_slices", slices)};
  inputs.insert(inputs.end(), variables_.begin(), variables_.end());
  const std::string save = to_.add(to_.take("save/SaveV2"), "SaveV2", inputs, {{"dtypes", types}}, {}).name;
  const std::string saved_to = to_.add(to_.take("save/control_dependency"), "Identity", {file, text("^", save)},
                                       {{"T", string_in_graphs}}, string_in_graphs)
                                   .name;
  const std::string restore =
      to_.add(to_.take("save/RestoreV2"), "RestoreV2",
              {file, strings("save/RestoreV2/tensor_names", keys), strings("save/RestoreV2/shape_and_slices", slices)},
              {{"dtypes", types}}, {})
          .name;
  std::vector<std::string> all;
  for (std::size_t i = 0; i < saved.size(); ++i) {
    const std::string value = i == 0 ? restore : text(restore, ":", i);
    const auto assign = to_.add(to_.take("save/Assign"), "Assign", {variables_[i], value},
                                {{"T", types[i]}, {"use_locking", true}, {"validate_shape", true}}, types[i]);
    all.push_back(text("^", assign.name));
  }
  const std::string whole = to_.add(to_.take("save/restore_all"), "NoOp", std::move(all), {}, {}).name;
  m_.saver = saver_def{.filename_tensor = file + ":0", .save_tensor = saved_to + ":0", .restore_op = whole};
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY meta_graph to_meta_graph(const graph_parts& p, const char* names, std::vector<saved_tensor> saved,
                                     std::string_view refusal) {
  return detail::meta_writer(p, names, refusal).run(std::move(saved));
}

GRADUS_BODY meta_graph to_meta_graph(const graph_parts& p, const char* names, std::vector<saved_tensor> saved,
                                     const std::map<std::string, node_signature>& signatures) {
  detail::meta_writer writer(p, names, {});
  writer.use(signatures);
  return writer.run(std::move(saved));
}

}  // namespace gradus
