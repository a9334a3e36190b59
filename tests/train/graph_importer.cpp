// Graphs as TensorFlow 1.15's own programs write them, node by node, through import_graph_def.
#include <gradus/train/graph_importer.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/run/session.hpp>

#include <doctest/doctest.h>

#include <cmath>

#include "graph_def_nodes.hpp"

using namespace graph_def_nodes;

namespace {
template <class T>
graph_def_node constant_node(const char* name, std::vector<std::int64_t> dims, std::vector<T> list) {
  tensor_def t{dtype_of<T>, std::move(dims), {}};
  const auto b = std::as_bytes(std::span(list));
  t.content.assign(b.begin(), b.end());
  return {name, "Const", {}, {}, {{"dtype", dtype_of<T>}, {"value", std::move(t)}}};
}
std::vector<float> run(const imported_graph& g, const char* tensor, std::vector<float> x) {
  const value y = g[tensor];
  session s{g.of()};
  s.initialize(1);
  const auto r = s.run(y, {{"x", x}});
  if (r.type == int64) {
    const auto v = r.as<std::int64_t>();
    return {v.begin(), v.end()};
  }
  if (r.type == int32) {
    const auto v = r.as<std::int32_t>();
    return {v.begin(), v.end()};
  }
  const auto v = r.as<float>();
  return {v.begin(), v.end()};
}
std::string refused(const imported_graph& g, const char* tensor) {
  try {
    g[tensor];
  } catch (const error& e) {
    return text(name_of(e.kind()), ": ", e.what());
  }
  return "(nothing was refused)";
}
using floats = std::vector<float>;
}  // namespace

TEST_CASE("ops of TensorFlow's that this library makes of its own") {
  const graph_def_node x = input("x", {-1, 3});
  const auto one = constant_node<std::int32_t>("one", {}, {1}), last = constant_node<std::int32_t>("last", {}, {-1});
  const auto value_of = [&](std::vector<graph_def_node> more, floats in) {
    more.insert(more.begin(), {x, one, last});
    return run(of(more), "y", std::move(in));
  };
  CHECK(value_of({constant_node<float>("b", {3}, {1, 2, 3}), {"y", "BiasAdd", {"x", "b"}}}, {1, 1, 1}) ==
        floats{2, 3, 4});
  CHECK(value_of({{"y", "AddV2", {"x", "x"}}}, {1, 2, 3}) == floats{2, 4, 6});
  CHECK(value_of({{"y", "Relu6", {"x"}}}, {-1, 2, 7}) == floats{0, 2, 6});
  CHECK(std::isnan(value_of({{"y", "Relu6", {"x"}}}, {std::nanf(""), 2, 7})[0]));
  CHECK(value_of({{"y", "LeakyRelu", {"x"}, {}, {{"alpha", 0.5f}}}}, {-1, 2, -3}) == floats{-0.5f, 2, -1.5f});
  CHECK(value_of({{"y", "Reciprocal", {"x"}}}, {1, 2, -4}) == floats{1, 0.5f, -0.25f});
  CHECK(value_of({{"y", "AddN", {"x", "x", "x"}}}, {1, 2, 3}) == floats{3, 6, 9});
  CHECK(value_of({{"y", "OnesLike", {"x"}}}, {1, 2, 3}) == floats{1, 1, 1});
  CHECK(value_of({{"y", "ArgMax", {"x", "last"}, {}, {{"output_type", int32}}}}, {1, 9, 3, 7, 2, 5}) == floats{1, 0});
  CHECK(value_of({{"y", "ArgMax", {"x", "one"}}}, {1, 9, 3, 7, 2, 5}) == floats{1, 0});
  CHECK(value_of({{"e", "ExpandDims", {"x", "last"}},
                  {"y", "Squeeze", {"e"}, {}, {{"squeeze_dims", std::vector<std::int64_t>{2}}}}},
                 {1, 2, 3}) == floats{1, 2, 3});
  CHECK(value_of({{"y", "Pack", {"x", "x"}, {}, {{"axis", std::int64_t{1}}}}}, {1, 2, 3}) == floats{1, 2, 3, 1, 2, 3});
  CHECK(value_of({constant_node<std::int32_t>("p", {2, 2}, {0, 0, 1, 0}), {"y", "Pad", {"x", "p"}}}, {1, 2, 3}) ==
        floats{0, 1, 2, 3});
  CHECK(value_of({constant_node<std::int32_t>("b", {2}, {0, 1}),
                  constant_node<std::int32_t>("e", {2}, {0, 3}),
                  constant_node<std::int32_t>("s", {2}, {1, 1}),
                  {"y",
                   "StridedSlice",
                   {"x", "b", "e", "s"},
                   {},
                   {{"begin_mask", std::int64_t{1}}, {"end_mask", std::int64_t{1}}}}},
                 {1, 2, 3, 4, 5, 6}) == floats{2, 3, 5, 6});
  CHECK(value_of(
            {constant_node<std::int32_t>("b", {2}, {0, -1}),
             constant_node<std::int32_t>("e", {2}, {0, 0}),
             constant_node<std::int32_t>("s", {2}, {1, 1}),
             {"y",
              "StridedSlice",
              {"x", "b", "e", "s"},
              {},
              {{"begin_mask", std::int64_t{1}}, {"end_mask", std::int64_t{1}}, {"shrink_axis_mask", std::int64_t{2}}}}},
            {1, 2, 3, 4, 5, 6}) == floats{3, 6});
  CHECK(value_of({constant_node<float>("l", {3}, {0, 0, 1}),
                  {"sh", "Shape", {"x"}},
                  constant_node<float>("z", {}, {1}),
                  {"f", "Fill", {"sh", "z"}},
                  {"y", "Mul", {"f", "l"}}},
                 {5, 5, 5}) == floats{0, 0, 1});
  CHECK(value_of({{"d", "PlaceholderWithDefault", {"x"}}, {"y", "Snapshot", {"d"}}}, {1, 2, 3}) == floats{1, 2, 3});
}

TEST_CASE("variables, with the first values that TensorFlow writes") {
  const auto g = of({input("x", {-1, 2}),
                     constant_node<float>("w/init", {2, 1}, {3, 4}),
                     {"w", "VariableV2", {}, {}, {{"dtype", float32}, {"shape", shape_def{{2, 1}}}}},
                     {"w/read", "Identity", {"w"}},
                     {"r", "VarHandleOp", {}, {}, {{"dtype", float32}, {"shape", shape_def{{1}}}}},
                     {"r/Read", "ReadVariableOp", {"r"}},
                     {"m", "MatMul", {"x", "w/read"}},
                     {"y", "BiasAdd", {"m", "r/Read"}}});
  CHECK(g.variables() == std::vector<std::string>{"w", "r"});
  CHECK(g["w/read"].id == g["w"].id);
  CHECK(run(g, "y", {1, 2}) == floats{0});  // a GraphDef does not say which values are the first
}

TEST_CASE("an op that is missing is refused by name where it is needed, and nowhere else") {
  const std::vector<graph_def_node> nodes{input("x", {-1, 3}),        {"odd", "MatrixDeterminant", {"x"}},
                                          {"after", "Relu", {"odd"}}, {"fine", "Relu", {"x"}},
                                          {"two", "TopKV2", {"x"}},   {"save", "NoOp", {"^fine"}},
                                          {"pair", "Relu", {"x:1"}}};
  const auto g = of(nodes);
  CHECK(run(g, "fine", {1, -1, 2}) == floats{1, 0, 2});
  CHECK(
      says(refused(g, "after:0"),
           "unimplemented: node \"odd\" (MatrixDeterminant): this library has no such op; ask for a tensor before it"));
  CHECK(says(refused(g, "nothing"), "not_found: the graph has no node for the tensor \"nothing\""));
  CHECK(says(refused(g, "save"), "it changes variables or makes no tensor"));
  CHECK(says(refused(g, "pair"), "node \"x\" (Placeholder): its output 1 is asked for"));
  CHECK(g.left_out().at("after").find("MatrixDeterminant") != std::string::npos);
  CHECK(!g.left_out().contains("fine"));
  // A placeholder can stand for it.
  const auto h = of(nodes, {.placeholders = {{"odd", {{batch}, float32}}}});
  CHECK(h["after"].dims() == shape{batch});
  try {
    of(nodes, {.placeholders = {{"none", {}}}});
    FAIL("not refused");
  } catch (const invalid_argument& e) {
    CHECK(says(e.what(), "there is no node \"none\" in the graph for which a placeholder could stand"));
  }
}

TEST_CASE("a reader of a variable that waits for its update is refused, and other control inputs are dropped") {
  const auto g = of({input("x", {-1, 1}),
                     constant_node<float>("k", {1}, {1}),
                     {"w", "VariableV2", {}, {}, {{"dtype", float32}, {"shape", shape_def{{1}}}}},
                     {"w/add", "AssignAdd", {"w", "k"}},
                     {"late", "Mul", {"x", "w", "^w/add"}},
                     {"check", "Assert", {"x"}},
                     {"y", "Relu", {"x", "^check"}}});
  CHECK(
      says(refused(g, "late"), "node \"late\" (Mul): waits for node \"w/add\" (AssignAdd), which changes a variable"));
  CHECK(run(g, "y", {2}) == floats{2});
}

TEST_CASE("a chain of 20000 ops needs no stack") {
  std::vector<graph_def_node> nodes{input("x", {1})};
  for (int i = 0; i < 20000; ++i) nodes.push_back({std::to_string(i), "Relu", {i == 0 ? "x" : std::to_string(i - 1)}});
  const auto g = of(std::move(nodes));
  CHECK(g["19999"].dims() == shape{1});
  CHECK(g.left_out().empty());
}

TEST_CASE("a problem that many nodes share takes no more than a line of each") {
  const std::string long_name(100000, 'n');
  std::vector<graph_def_node> nodes{input("x", {1}), {long_name, "NoSuchOp", {"x"}}};
  for (int i = 0; i < 100; ++i)
    nodes.push_back({std::to_string(i), "Relu", {i == 0 ? long_name : std::to_string(i - 1)}});
  const auto g = of(std::move(nodes));
  const std::string& why = g.left_out().at("99");
  CHECK(why.size() < 1000);
  CHECK(says(why, "node \"nnn"));
}
