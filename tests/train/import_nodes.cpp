// Shapes and axes that TensorFlow computes in the graph, through import_graph_def.
#include <gradus/train/import_nodes.hpp>

#include <gradus/cpu/device.hpp>

#include <doctest/doctest.h>

#include "graph_def_nodes.hpp"

using namespace graph_def_nodes;

TEST_CASE("a shape that is computed from that of a tensor: TensorFlow's usual reshape") {
  // tf.reshape(x, [tf.shape(x)[0], 2, -1]) and tf.reshape(x, tf.stack([tf.shape(x)[0] * 4, 3]))
  const auto g = of({input("x", {-1, 4, 3}),
                     {"s", "Shape", {"x"}},
                     numbers("zero", {0}),
                     numbers("one", {1}),
                     {"n", "StridedSlice", {"s", "zero", "one", "one"}, {}, {{"shrink_axis_mask", std::int64_t{1}}}},
                     single("two", 2),
                     single("rest", -1),
                     single("four", 4),
                     single("three", 3),
                     {"to", "Pack", {"n", "two", "rest"}},
                     {"y", "Reshape", {"x", "to"}},
                     {"many", "Mul", {"n", "four"}},
                     {"flat", "Pack", {"many", "three"}},
                     {"z", "Reshape", {"x", "flat"}},
                     {"tail", "StridedSlice", {"s", "one", "zero", "one"}, {}, {{"end_mask", std::int64_t{1}}}},
                     {"head", "Prod", {"s", "zero"}},
                     {"all", "ExpandDims", {"head", "rest"}},
                     {"joined", "ConcatV2", {"s", "tail", "rest"}}});
  CHECK(g["y"].dims() == shape{batch, 2, 6});
  CHECK(g["z"].dims() == shape{4 * batch, 3});
}

TEST_CASE("shapes and axes that make no sense") {
  const auto reshape_to = [](std::vector<std::int32_t> to) {
    return problem({input("x", {-1, 4}), numbers("to", std::move(to)), {"y", "Reshape", {"x", "to"}}}, "y");
  };
  CHECK(says(reshape_to({-1, 3}), "an extent of -1 cannot be found for [batch, 4]"));
  CHECK(says(reshape_to({-1, -1}), "an extent of -1 cannot be found"));
  CHECK(says(reshape_to({0, 4}), "an extent of 0 is none that a tensor here has"));
  CHECK(says(reshape_to({8, 4}), "the number of elements differs"));
  CHECK(says(reshape_to({1, 1, 1, 1, 1, 1, -1}), "more than 6 extents"));
  CHECK(reshape_to({2, -1, 2}) == "(nothing was refused)");
  const auto sum_over = [](std::vector<std::int32_t> axes) {
    return problem({input("x", {-1, 4}), numbers("axes", std::move(axes)), {"y", "Sum", {"x", "axes"}}}, "y");
  };
  CHECK(says(sum_over({2}), "node \"y\" (Sum): the axis 2 is outside of rank 2"));
  CHECK(says(sum_over({-3}), "the axis -3 is outside"));
  CHECK(says(problem({input("x", {-1, 4}), input("axes", {1}, int32), {"y", "Sum", {"x", "axes"}}}, "y"),
             "\"axes\" has to be known before the graph runs: node \"axes\" (Placeholder) is not computed beforehand"));
}

TEST_CASE("placeholders and constants that no graph here has") {
  CHECK(says(problem({input("x", {-1, -1})}, "x"), "several of its extents are not known"));
  CHECK(says(problem({input("x", {0})}, "x"), "an extent of 0"));
  CHECK(says(problem({input("x", {std::int64_t{1} << 40})}, "x"), "an extent of 1099511627776"));
  CHECK(
      says(problem({input("x", {1 << 27, 1 << 27})}, "x"),
           "[134217728, 134217728] has more than 2147483647 elements behind its first axis, or more than 2^44 in all"));
  CHECK(says(problem({input("x", {1 << 27}), numbers("zero", {0}), {"y", "ConcatV2", {"x", "x", "zero"}}}, "y"),
             "its extents [268435456] are too large"));
  CHECK(says(problem({input("x", {2}, string_in_graphs)}, "x"), "is of strings"));
  CHECK(says(problem({input("x", {2}, dtype::int8)}, "x"), "TensorFlow's dtype 6"));
  CHECK(says(problem({{"x", "Placeholder", {}, {}, {{"dtype", float32}, {"shape", shape_def{{}, true}}}}}, "x"),
             "its rank is not known"));
  CHECK(says(problem({{"x", "Placeholder", {}, {}, {{"dtype", float32}}}}, "x"), "has no attribute \"shape\""));
  CHECK(says(problem({{"x", "Placeholder", {}, {}, {{"dtype", std::int64_t{1}}, {"shape", shape_def{}}}}}, "x"),
             "the attribute \"dtype\" is of another kind"));
  CHECK(says(
      problem({{"c", "Const", {}, {}, {{"dtype", int64}, {"value", tensor_def::scalar((std::int64_t{1} << 53) + 1)}}}},
              "c"),
      "a whole number above 2^53"));
  CHECK(problem({{"c", "Const", {}, {}, {{"dtype", int64}, {"value", tensor_def::scalar(-(std::int64_t{1} << 53))}}}},
                "c") == "(nothing was refused)");
  CHECK(says(problem({{"c", "Const", {}, {}, {{"dtype", float32}, {"value", tensor_def{float32, {0}, {}}}}}}, "c"),
             "an extent of 0"));
  const tensor_def seven{dtype::int8, {}, {std::byte{7}}};
  CHECK(
      says(problem({{"c", "Const", {}, {}, {{"dtype", dtype::int8}, {"value", seven}}}}, "c"), "TensorFlow's dtype 6"));
  CHECK(says(problem({numbers("to", {2}),
                      {"c", "Const", {}, {}, {{"dtype", dtype::int8}, {"value", seven}}},
                      {"x", "Fill", {"to", "c"}}},
                     "x"),
             "node \"x\" (Fill): holds int8, which no graph of this library has; cast it to int32"));
}

TEST_CASE("a shape that would be computed in 2^50 steps") {
  std::vector<graph_def_node> nodes{input("x", {4}), single("m0", 1)};
  for (int i = 1; i <= 50; ++i) {
    const std::string before = text("m", i - 1);
    nodes.push_back({text("m", i), "Mul", {before, before}});
  }
  nodes.push_back({"to", "Pack", {"m50", "m50"}}), nodes.push_back({"y", "Reshape", {"x", "to"}});
  CHECK(says(problem(std::move(nodes), "y"), "it takes too many steps to compute it"));
}
