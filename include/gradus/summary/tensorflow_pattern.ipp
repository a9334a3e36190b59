// The bodies of tensorflow_pattern.hpp.
#pragma once
#include <algorithm>

#include "../base/body.hpp"
#include "../base/sort.hpp"
#include "../store/decimal.hpp"
#include "tensorflow_pattern.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// Parses the grammar at the top of tensorflow_ops.hpp. The table is part of the library, so a formula that cannot be
// parsed is a mistake in the table.
class pattern_parser {
public:
  explicit pattern_parser(const tensorflow_formula& f) : text_(f.text) { out_.formula = &f; }

  tensorflow_pattern run() {
    for (;;) {
      const std::size_t end = text_.find(';', at_);
      if (end == std::string_view::npos) break;
      const std::string_view name = word();
      at_ = text_.find('=', at_) + 1;
      const int term = expression();
      helpers_.emplace_back(name, term);
      at_ = end + 1;
    }
    out_.root = expression();
    return std::move(out_);
  }

private:
  std::string_view text_;
  std::size_t at_ = 0;
  tensorflow_pattern out_;
  std::vector<std::pair<std::string_view, int>> helpers_;

  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::string_view word() {
    skip();
    const std::size_t from = at_;
    while (at_ < text_.size() && std::string_view(" ,(){}=;^$@").find(text_[at_]) == std::string_view::npos) ++at_;
    return text_.substr(from, at_ - from);
  }
  static double number(std::string_view w) {
    double v = 0;
    decimal_at(w.data(), w.data() + w.size(), v);
    return v;
  }
  int put(pattern_term t) {
    out_.terms.push_back(std::move(t));
    return static_cast<int>(out_.terms.size()) - 1;
  }
  int expression() {
    pattern_term t;
    if (take('$')) {
      if (take('*')) {
        t.kind = pattern_term::all_operands;
        return put(t);
      }
      t.kind = pattern_term::operand, t.index = static_cast<int>(number(word()));
      return put(t);
    }
    if (take('@')) {
      t.kind = pattern_term::setting, t.word = word();
      return put(t);
    }
    std::string_view w = word();
    if (!w.empty() && (w[0] == '-' || (w[0] >= '0' && w[0] <= '9'))) {
      t.kind = pattern_term::number, t.whole = w.back() == 'i';
      if (t.whole) w.remove_suffix(1);
      t.value = number(w);
      return put(t);
    }
    if (!take('(')) {
      t.kind = pattern_term::helper;
      for (const auto& [name, term] : helpers_)
        if (name == w) t.index = term;
      return put(t);
    }
    t.word = w;
    while (!take(')')) {
      if (take('^')) {
        const int a = expression();
        t.after.push_back(a);
      } else {
        const int a = expression();
        t.operands.push_back(a);
      }
      take(',');
    }
    if (take('{'))
      while (!take('}')) {
        const std::string_view key = word();
        take('=');
        t.attrs.emplace_back(key, word());
        take(',');
      }
    ++out_.calls;
    return put(std::move(t));
  }
};

GRADUS_BODY const tensor_place* pattern_match::tensor(std::string_view setting) const {
  for (const auto& [name, t] : tensors)
    if (name == setting) return &t;
  return nullptr;
}

GRADUS_BODY const attr_value* pattern_match::attr(std::string_view setting) const {
  for (const auto& [name, v] : attrs)
    if (name == setting) return v;
  return nullptr;
}

GRADUS_BODY std::string_view common_op_name(std::string_view op) {
  if (op == "AddV2") return "Add";
  if (op == "BatchMatMul") return "BatchMatMulV2";
  if (op == "Select") return "SelectV2";
  if (op == "Variable") return "VariableV2";
  return op;
}

struct pattern_table {
  std::vector<tensorflow_pattern> all;
  std::map<std::string_view, std::vector<const tensorflow_pattern*>> by_op;

  pattern_table() {
    for (const tensorflow_formula& f : tensorflow_formulas) {
      // Of ops with the same formula the first one is taken: Identity is also written for a copy, and for dropout in
      // inference.
      const bool again = std::any_of(all.begin(), all.end(), [&](const auto& p) { return p.formula->text == f.text; });
      if (!again) all.push_back(pattern_parser(f).run());
    }
    for (const tensorflow_pattern& p : all) by_op[p.terms[static_cast<std::size_t>(p.root)].word].push_back(&p);
    for (auto& [op, list] : by_op) sort_stably(list, [](const auto* a, const auto* b) { return a->calls > b->calls; });
  }
};

GRADUS_BODY std::span<const tensorflow_pattern* const> patterns_of(std::string_view op) {
  static const pattern_table table;
  const auto found = table.by_op.find(op);
  if (found == table.by_op.end()) return {};
  return found->second;
}

// Returns TensorFlow's default for an attribute that is missing.
GRADUS_BODY const attr_value* default_attribute(std::string_view key) {
  static const std::map<std::string_view, attr_value> known{
      {"keep_dims", false},
      {"transpose_a", false},
      {"transpose_b", false},
      {"adj_x", false},
      {"adj_y", false},
      {"axis", std::int64_t{-1}},
      {"data_format", std::string("NHWC")},
      {"dilations", std::vector<std::int64_t>{1, 1, 1, 1}},
      {"output_type", int64},
  };
  const auto found = known.find(key);
  return found == known.end() ? nullptr : &found->second;
}

class pattern_matcher {
public:
  pattern_matcher(const graph_index& g, const tensorflow_pattern& p, int node)
      : g_(g), p_(p), prefix_(g.node(node).name + "/"), places_(p.terms.size()) {
    found_.what = &p;
  }

  std::optional<pattern_match> run(int node) {
    if (!call(p_.root, node, true)) return std::nullopt;
    return std::move(found_);
  }

private:
  const graph_index& g_;
  const tensorflow_pattern& p_;
  std::string prefix_;
  std::vector<tensor_place> places_;  // of each term that has been matched
  pattern_match found_;

  const pattern_term& at(int t) const { return p_.terms[static_cast<std::size_t>(t)]; }

  bool term(int number, tensor_place t) {
    const pattern_term& e = at(number);
    switch (e.kind) {
    case pattern_term::operand: return operand(static_cast<std::size_t>(e.index), t);
    case pattern_term::setting: found_.tensors.emplace_back(e.word, t); return true;
    case pattern_term::number: return holds(t, e);
    case pattern_term::helper: return once(e.index, t);
    case pattern_term::call: return once(number, t);
    case pattern_term::all_operands: break;
    }
    return false;
  }
  // Matches a helper, which is the same tensor however often it is read.
  bool once(int number, tensor_place t) {
    tensor_place& place = places_[static_cast<std::size_t>(number)];
    if (place.node >= 0) return place == t;
    if (t.output != 0 || !call(number, t.node, false)) return false;
    place = t;
    return true;
  }
  bool operand(std::size_t i, tensor_place t) {
    if (found_.operands.size() <= i) found_.operands.resize(i + 1);
    if (found_.operands[i].node >= 0) return found_.operands[i] == t;
    found_.operands[i] = t;
    return true;
  }
  bool call(int number, int node, bool root) {
    const pattern_term& e = at(number);
    const graph_def_node& n = g_.node(node);
    if (common_op_name(n.op) != e.word || (!root && !n.name.starts_with(prefix_))) return false;
    const auto& inputs = g_.inputs(node);
    std::size_t i = 0;
    for (const int o : e.operands) {
      if (at(o).kind == pattern_term::all_operands) {
        if (inputs.size() + 1 < e.operands.size()) return false;
        for (const std::size_t end = inputs.size() + 1 - e.operands.size(); i < end; ++i)
          found_.operands.push_back(inputs[i]);
        continue;
      }
      if (i >= inputs.size() || !term(o, inputs[i])) return false;
      ++i;
    }
    if (i != inputs.size()) return false;
    for (const int a : e.after) {
      const auto& waits = g_.controls(node);
      if (std::none_of(waits.begin(), waits.end(), [&](int c) { return term(a, {c, 0}); })) return false;
    }
    for (const auto& [key, word] : e.attrs)
      if (!attribute(node, key, word)) return false;
    return true;
  }
  bool attribute(int node, std::string_view key, std::string_view word) {
    const attr_value* v = g_.attribute(node, key);
    if (v == nullptr) v = default_attribute(key);
    if (v == nullptr) return false;
    const auto is = [v](const auto& wanted) {
      const auto* typed = v->get_if<std::decay_t<decltype(wanted)>>();
      return typed != nullptr && *typed == wanted;
    };
    if (word == "true") return is(true);
    if (word == "bfloat16") return is(bfloat16);
    if (word == "float16") return is(float16);
    if (word == "int64") return is(int64);
    if (word == "-1" || (word[0] >= '0' && word[0] <= '9')) {
      double wanted = 0;
      decimal_at(word.data(), word.data() + word.size(), wanted);
      return is(static_cast<std::int64_t>(wanted));
    }
    found_.attrs.emplace_back(word, v);
    return true;
  }
  // Returns whether the tensor is a constant of this number, in the constant's own type.
  bool holds(tensor_place t, const pattern_term& e) const {
    if (t.output != 0 || g_.node(t.node).op != "Const") return false;
    const attr_value* v = g_.attribute(t.node, "value");
    const auto* c = v == nullptr ? nullptr : v->get_if<tensor_def>();
    if (c == nullptr || !c->dims.empty() || (e.whole && c->type != int32)) return false;
    bool equal = false;
    with_element_type(c->type, [&]<class T>() {
      const T wanted = element_from<T>(e.value);
      equal = c->content.size() == sizeof(T) && std::memcmp(c->content.data(), &wanted, sizeof(T)) == 0;
    });
    return equal;
  }
};

GRADUS_BODY std::optional<pattern_match> match(const graph_index& g, const tensorflow_pattern& p, int node) {
  return pattern_matcher(g, p, node).run(node);
}

}  // namespace gradus::detail
