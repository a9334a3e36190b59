// The bodies of show.hpp.
#pragma once
#include "../base/body.hpp"
#include "show.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::string_view name_in(const char* names, int offset) {
  return names == nullptr || offset < 0 ? std::string_view{} : std::string_view(names + offset);
}

GRADUS_BODY std::string unique_names::take(std::string_view wanted) {
  std::string name;
  for (char c : wanted) {
    const bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (name.empty() && !plain && c != '.') name += '.';  // TensorFlow does not accept a name that begins otherwise
    name += plain || c == '.' || c == '_' || c == '/' || c == '-' ? c : '_';
  }
  const std::size_t stem = name.size();
  for (int k = 1; !used_.insert(name).second; ++k) name.resize(stem), name += text("_", k);
  return name;
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::vector<shown_node> describe(const graph_parts& p, const char* names) {
  const graph_view& v = p.view;
  std::vector<shown_node> nodes(static_cast<std::size_t>(v.size));
  detail::unique_names taken;
  const auto at = [&](int i) -> shown_node& { return nodes[static_cast<std::size_t>(i)]; };
  for (int i = 0; i < v.size; ++i)  // first those that have a name, which stays as it is
    if (const auto own = detail::name_in(names, v.nodes[i].name); !own.empty()) at(i).name = taken.take(own);
  for (int i = 0; i < v.size; ++i) {
    const node& n = v.nodes[i];
    shown_node& s = at(i);
    s.op = n.op->name, s.device = detail::name_in(names, n.device), s.type = n.type, s.dims = n.dims, s.source = &n;
    if (s.name.empty()) {
      std::string scope(n.scope == graph::gradient_scope ? "gradients/" : detail::name_in(names, n.scope));
      if (n.op->is(trait::session) && n.op->is(trait::writes))
        scope = "train/update_" + at(v.edges[n.first]).name + "/";
      s.name = taken.take(scope + std::string(n.op->name));
    }
    for (int e = n.first, end = e + n.inputs; e < end; ++e) s.inputs.push_back(at(v.edges[e]).name);
    for (int e = n.first + n.inputs, end = e + n.controls; e < end; ++e) s.inputs.push_back("^" + at(v.edges[e]).name);
    if (n.op == &constant_card)
      for (int w = n.attr, end = n.attr + n.attrs; w + 1 < end; w += 2)
        s.constant.push_back(std::bit_cast<double>(std::array<int, 2>{v.ints[w], v.ints[w + 1]}));
  }
  return nodes;
}

GRADUS_BODY std::string to_text(const graph_parts& p, const char* names) {
  static constexpr std::string_view kinds[] = {"loss", "metric", "prediction", "summary", "update",
                                               "norm", "fetch",  "histogram",  "image",   "audio"};
  const auto nodes = describe(p, names);
  std::string out;
  for (const shown_node& s : nodes) {
    out += text(s.name, " = ", s.op);
    if (s.source->op->is(trait::expression)) {
      const expression& x = p.view.expressions[expression_of(*s.source, p.view.ints)];
      for (int k = 0; k < x.steps; ++k) out += text(k == 0 ? "[" : ", ", x.op[k]->name);
      out += "]";
    }
    out += "(";
    std::string after;
    std::size_t shown = 0;
    for (const std::string& i : s.inputs) {
      if (i.front() == '^')
        after += (after.empty() ? " after " : ", ") + i.substr(1);
      else
        out += (shown++ == 0 ? "" : ", ") + i;
    }
    for (std::size_t k = 0; k < s.constant.size(); ++k) out += text(k == 0 ? "" : ", ", s.constant[k]);
    out += ")";
    if (s.type != dtype::none) out += text(": ", name_of(s.type), " ", to_text(s.dims));
    out += after;
    if (!s.device.empty()) out += text(" on ", s.device);
    out += "\n";
  }
  for (int i = 0; i < p.output_count; ++i) {
    const output& o = p.outputs[i];
    const auto name = detail::name_in(names, o.name);
    out += text(kinds[o.kind], name.empty() ? "" : text(" \"", name, "\""), " = ",
                nodes[static_cast<std::size_t>(o.node)].name, "\n");
  }
  return out;
}

}  // namespace gradus
