// Graphs of every op that the library writes as TensorFlow's are written, read back and run: what comes out has the
// bits of the graph that was written, and is the same nodes.
#include <gradus/train/import_meta_graph.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/run/session.hpp>
#include <gradus/summary/run_graph.hpp>

#include <doctest/doctest.h>

#include <set>

#include "tensorflow_cases.hpp"

using namespace gradus;
using namespace gradus::tensorflow_cases;

TEST_CASE("import_meta_graph: every op that is written comes back and computes the same bits") {
  std::set<std::string> seen;
  for_each_case([&](const std::string& name, const auto& build) {
    INFO(name);
    graph g(mode::predict);
    build(g);
    session s{g};
    s.initialize(7);
    std::vector<std::byte> bytes;
    encode_meta_graph(bytes, to_meta_graph(parts_of(g), g.names.chars.first));
    const imported_graph back = import_meta_graph(bytes);
    for (const auto& [tensor, why] : back.left_out()) FAIL_CHECK(tensor << ": " << why);
    session t{back.of()};
    t.initialize(7);
    for (const std::string& v : back.variables()) {
      const auto from = s.variable(v);
      const auto to = t.mutable_variable(v);
      REQUIRE((from.type == to.type && from.dims == to.dims));
      std::memcpy(to.mutable_data(), from.data, from.size_bytes());
    }
    std::uint32_t state = 11;
    std::vector<fed> feeds;
    for (int i = 0; i < g.nodes.count; ++i)
      if (g.nodes[i].op == &placeholder_card) feeds.push_back(feed_for(g, i, 3, state));
    std::vector<feed> given, there;
    for (const fed& f : feeds) {
      const_tensor_view v;
      v.data = f.bytes.data(), v.type = f.type;
      for (const auto d : f.dims) v.dims.push(d);
      given.push_back(feed{std::string_view(f.name), v});
      if (back.of().find(f.name) >= 0) there.push_back(given.back());
    }
    for (int k = 0; k < g.outputs.count; ++k) {
      const std::string_view key = g.text_at(g.outputs[k].name);
      INFO(std::string(key));
      const int node = g.outputs[k].node;
      const value v = back[text("predictions/", key)];
      // The prediction is a name for the node.
      const int own = back.of().edges[back.of().nodes[v.id].first];
      const std::string_view was = g.nodes[node].op->name, is = back.of().nodes[own].op->name;
      const bool alias = was == "DeepCopy" || was == "Dropout" || (was == "ConcatV2" && g.nodes[node].inputs == 1);
      const bool wide = g.nodes[g.nodes[node].inputs > 0 ? g.edges[g.nodes[node].first] : node].type == uint8;
      if (!alias && !wide) CHECK(is == was);
      CHECK(v.dims() == value{&g, node}.dims());
      CHECK(v.type() == value{&g, node}.type());
      seen.emplace(was);
      if (key.starts_with("random")) continue;  // drawn anew
      const fetch one(value{&g, node}), two(v);
      const auto a = s.run(std::span(&one, 1), given);
      const auto b = t.run(std::span(&two, 1), there);
      REQUIRE(a[0].size_bytes() == b[0].size_bytes());
      CHECK(std::memcmp(a[0].data, b[0].data, a[0].size_bytes()) == 0);
    }
  });
  // Every formula's op was there.
  for (const auto& f : detail::tensorflow_formulas) {
    const std::string op(f.name.substr(0, f.name.find_first_of(" #")));
    INFO(op);
    if (op != "MatMuls") CHECK(seen.contains(op));
  }
}
