// The reader of .meta files as a function of bytes (readers.hpp), and a good one.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "gradus/train/import_meta_graph.hpp"

namespace fuzz {

// As a MetaGraphDef, as a GraphDef and as a SavedModel.
inline bool read_meta_graph(std::span<const std::byte> file) {
  using namespace gradus;
  const import_options o{.limits = {.inflated_bytes = 1 << 18, .inflated_times = 1, .entries = 1 << 14}};
  const auto attempt = [&](auto read) {
    try {
      const imported_graph g = read();
      for (const auto& [tensor, why] : g.left_out())
        if (why.empty()) std::abort();
      const graph& made = g.of();
      for (int i = 0; i < made.nodes.count; ++i) {
        const node& n = made.nodes.first[i];
        for (int k = 0; k < n.dims.rank; ++k)
          if (n.dims.dims[k] == 0) std::abort();
        for (int k = 0; k < n.inputs; ++k)
          if (const int from = made.edges.first[n.first + k]; from < 0 || from >= i) std::abort();
      }
      return g.left_out().empty() && made.nodes.count > 0;
    } catch (const error& e) {
      const status k = e.kind();
      if (k == status::invalid_argument || k == status::data_loss || k == status::resource_exhausted ||
          k == status::unimplemented || k == status::failed_precondition)
        return false;
      std::fprintf(stderr, "fuzz: %s\n", e.what());
      std::abort();
    }
  };
  const bool whole = attempt([&] { return import_meta_graph(file, o); });
  attempt([&] { return import_graph_def(file, o); });
  attempt([&] {
    auto all = decode_saved_model(file, o.limits);
    return imported_graph(all.empty() ? meta_graph() : std::move(all[0]), o);
  });
  return whole;
}

// A layer, a shape that is computed, a reduction, a variable with its first value, a signature.
inline std::vector<std::byte> sample_meta_graph() {
  using namespace gradus;
  const auto whole = [](std::vector<std::int32_t> list, std::vector<std::int64_t> dims) {
    tensor_def t{int32, std::move(dims), {}};
    const auto b = std::as_bytes(std::span(list));
    t.content.assign(b.begin(), b.end());
    return t;
  };
  meta_graph m;
  auto& n = m.graph.nodes;
  n.push_back({"x", "Placeholder", {}, {}, {{"dtype", float32}, {"shape", shape_def{{-1, 2}}}}});
  n.push_back({"i", "Const", {}, {}, {{"dtype", float32}, {"value", tensor_def::scalar(0.5f)}}});
  n.push_back({"to", "Const", {}, {}, {{"dtype", int32}, {"value", whole({2, 2}, {2})}}});
  n.push_back({"f", "Fill", {"to", "i"}});
  n.push_back({"w", "VariableV2", {}, {}, {{"dtype", float32}, {"shape", shape_def{{2, 2}}}}});
  n.push_back({"r", "Identity", {"w"}});
  n.push_back({"m", "MatMul", {"x", "r"}, {}, {{"transpose_b", true}}});
  n.push_back({"s", "Shape", {"m"}});
  n.push_back({"k", "Const", {}, {}, {{"dtype", int32}, {"value", whole({1}, {})}}});
  n.push_back({"g", "GatherV2", {"s", "k", "k"}});
  n.push_back({"p", "Pack", {"g", "k", "k"}});
  n.push_back({"v", "Sum", {"m", "k"}, {}, {{"keep_dims", true}}});
  n.push_back({"y", "Relu", {"v", "^f"}});
  add_variable(m, {.name = "w", .initial_value = "f"});
  m.signatures["d"] = {{{"x", {"x:0", float32, {{-1, 2}}}}}, {{"y", {"y:0", float32, {{-1, 1}}}}}, "p"};
  std::vector<std::byte> out;
  encode_meta_graph(out, m);
  return out;
}

}  // namespace fuzz
