// The bodies of graph_bytes.hpp.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>

#include "../base/body.hpp"
#include "../graph/law.hpp"
#include "graph_bytes.hpp"
#include "protocol/bytes.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

inline constexpr std::uint32_t graph_bytes_version = 1;
// The number of words after the last attribute, so that the shape rule of a node with too few attributes reads zeros.
inline constexpr int spare_words = 64;

GRADUS_BODY std::vector<std::byte> graph_to_bytes(const graph& g) {
  std::vector<std::byte> bytes;
  bytes_out out(bytes);
  std::vector<const card*> ops;
  const auto number_of = [&](const card* op) {
    const auto at = std::find(ops.begin(), ops.end(), op);
    if (at == ops.end()) ops.push_back(op);
    return static_cast<std::uint32_t>(at - ops.begin());
  };
  for (const node& n : g.nodes) {
    if (n.op->is(trait::expression))
      raise(status::unimplemented,
            text("a graph that passes have fused cannot be sent; send the graph as it was built"));
    if (n.op->frozen != nullptr)
      raise(status::unimplemented,
            text(n.op->name,
                 " cannot be sent: its weights are constants of this program, and the receiver has its own; "
                 "send a graph with layers of float32"));
    number_of(n.op);
  }
  out.number(graph_bytes_version);
  out.number(static_cast<int>(g.mode()));
  out.number(static_cast<std::uint32_t>(ops.size()));
  for (const card* op : ops) out.string(op->name);
  out.string({g.names.chars.first, static_cast<std::size_t>(g.names.chars.count)});
  const auto put_ints = [&](const int* first, int count) {
    out.bytes(std::as_bytes(std::span(first, static_cast<std::size_t>(count))));
  };
  put_ints(g.edges.first, g.edges.count);
  put_ints(g.ints.first, g.ints.count);
  put_ints(g.gates.first, g.gates.count);
  out.number(static_cast<std::uint32_t>(g.nodes.count));
  for (const node& n : g.nodes) {
    out.number(number_of(n.op));
    for (const int i : {n.first, n.inputs, n.controls, n.attr, n.attrs, n.name, n.scope, n.device}) out.number(i);
    out.number(static_cast<int>(n.type));
    out.number(static_cast<std::uint8_t>(n.dims.rank));
    for (int k = 0; k < n.dims.rank; ++k) out.number(n.dims.dims[k]);
  }
  out.number(static_cast<std::uint32_t>(g.outputs.count));
  for (const output& o : g.outputs) out.number(o.kind), out.number(o.name), out.number(o.node);
  out.number(static_cast<std::uint32_t>(g.members.count));
  for (const graph::member& m : g.members) out.number(m.collection), out.number(m.node);
  return bytes;
}

// The card of an unknown op has no shape rule: the shapes of its results are those that the sender gives.
GRADUS_BODY const card& unknown_ops::add(const std::string& name) {
  names_.push_back(name);
  return cards_.emplace_back(
      card{.name = names_.back(), .operands = -1, .traits = trait::keeps | trait::blocks | trait::session});
}
GRADUS_BODY bool unknown_ops::has(const card* op) const {
  return std::any_of(cards_.begin(), cards_.end(), [&](const card& c) { return &c == op; });
}

GRADUS_BODY graph graph_from_bytes(std::span<const std::byte> bytes, const card_finder& cards, unknown_ops& unknown) {
  bytes_in in(bytes, "graph");
  if (const auto version = in.number<std::uint32_t>(); version != graph_bytes_version)
    in.refuse(text("it is of version ", version, "; expected ", graph_bytes_version));
  const int what = in.number<int>();
  if (what < 0 || what > static_cast<int>(mode::predict)) in.refuse(text("its mode is ", what));
  graph g(static_cast<mode>(what));
  std::vector<const card*> ops;
  for (std::size_t n = in.count(4); n > 0; --n) {
    const std::string name = in.string();
    const card* const known = cards(name);
    ops.push_back(known != nullptr ? known : &unknown.add(name));
  }
  std::vector<char> begins;  // by offset: whether a text begins there
  const std::string texts = in.string();
  for (std::size_t at = 0; at < texts.size();) {
    const std::size_t end = texts.find('\0', at);
    if (end == std::string::npos) in.refuse("its last name has no end");
    if (g.names.intern(std::string_view(texts).substr(at, end - at)) != static_cast<int>(at))
      in.refuse("a name is there twice");
    begins.resize(end + 1);
    begins[at] = 1;
    at = end + 1;
  }
  const auto take_ints = [&](seq<int>& to) {
    const auto from = in.bytes();
    if (from.size() % sizeof(int) != 0) in.refuse("a list of numbers ends within one");
    for (std::size_t i = 0; i < from.size(); i += sizeof(int)) {
      int one;
      std::memcpy(&one, from.data() + i, sizeof one);
      to.push(one);
    }
  };
  take_ints(g.edges), take_ints(g.ints), take_ints(g.gates);
  const auto text_at = [&](int offset, bool may_lack) {
    const bool is_one = offset >= 0 && static_cast<std::size_t>(offset) < begins.size() &&
                        begins[static_cast<std::size_t>(offset)] != 0;
    if (!is_one && !(may_lack && offset < 0)) in.refuse(text("no name begins at ", offset));
    return offset;
  };
  for (std::size_t count = in.count(41); count > 0; --count) {
    node n;
    const auto op = in.number<std::uint32_t>();
    if (op >= ops.size()) in.refuse(text("a node has op ", op, " of ", ops.size()));
    n.op = ops[op];
    for (int* const i : {&n.first, &n.inputs, &n.controls, &n.attr, &n.attrs, &n.name, &n.scope, &n.device})
      *i = in.number<int>();
    text_at(n.name, true), text_at(n.scope, true), text_at(n.device, true);
    const int type = in.number<int>();
    n.type = static_cast<dtype>(type);
    if (type != static_cast<int>(dtype::none) && size_of(n.type) == 0) in.refuse(text("a node has the dtype ", type));
    n.dims.rank = in.number<std::uint8_t>();
    if (n.dims.rank > max_rank) in.refuse(text("a node has the rank ", n.dims.rank));
    for (int k = 0; k < n.dims.rank; ++k) n.dims.dims[k] = in.number<int>();
    g.nodes.push(n);
  }
  const auto node_of = [&](int id) {
    if (id < 0 || id >= g.nodes.count) in.refuse(text("node ", id, " of ", g.nodes.count));
    return id;
  };
  for (std::size_t n = in.count(12); n > 0; --n) {
    output o{};
    o.kind = in.number<int>(), o.name = text_at(in.number<int>(), false), o.node = node_of(in.number<int>());
    g.outputs.push(o);
  }
  for (std::size_t n = in.count(8); n > 0; --n) {
    graph::member m{};
    m.collection = text_at(in.number<int>(), false), m.node = node_of(in.number<int>());
    g.members.push(m);
  }
  in.end();
  for (int i = 0; i < spare_words; ++i) g.ints.push(0);
  const char* law = nullptr;
  try {
    law = broken_law(parts_of(g));
  } catch (const error& e) {  // of a shape rule
    in.refuse(e.what());
  }
  if (law != nullptr) in.refuse(text("this does not hold in it: ", law));
  return g;
}

GRADUS_BODY std::string unknown_for(const graph& g, std::span<const int> nodes, const unknown_ops& unknown) {
  std::string names;
  std::vector<char> seen(static_cast<std::size_t>(g.nodes.count), 0);
  std::vector<int> left(nodes.begin(), nodes.end());
  while (!left.empty()) {
    const int id = left.back();
    left.pop_back();
    if (std::exchange(seen[static_cast<std::size_t>(id)], 1) != 0) continue;
    const node& n = g.nodes.first[id];
    if (unknown.has(n.op)) names += text(names.empty() ? "" : ", ", n.op->name);
    for (int e = 0; e < n.inputs + n.controls; ++e) left.push_back(g.edges.first[n.first + e]);
  }
  return names;
}

}  // namespace gradus::detail
