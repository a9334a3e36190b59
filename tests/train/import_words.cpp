// Attributes of ops out of TensorFlow's nodes, through import_graph_def: what fits, and what is refused by name.
#include <gradus/train/import_words.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer_norm.hpp>
#include <gradus/run/session.hpp>
#include <gradus/summary/run_graph.hpp>

#include <doctest/doctest.h>

#include "graph_def_nodes.hpp"

using namespace graph_def_nodes;

namespace {
std::string convolved(std::vector<graph_def_attr> attrs) {
  return problem(
      {input("x", {-1, 5, 5, 2}), input("w", {3, 3, 2, 4}), {"y", "Conv2D", {"x", "w"}, {}, std::move(attrs)}}, "y");
}
}  // namespace

TEST_CASE("every card that a formula describes is known") {
  for (const auto& f : detail::tensorflow_formulas) {
    std::string_view op = f.name.substr(0, f.name.find_first_of(" #"));
    if (op == "MatMuls") op = "MatMul";
    INFO(std::string(op));
    if (op == "DeepCopy" || op == "Dropout") continue;  // they come back as Identity
    CHECK((detail::card_named(op) != nullptr && detail::card_named(op)->name == op));
  }
  CHECK(detail::card_named("NoSuchOp") == nullptr);
}

TEST_CASE("windows: what is not NHWC, SAME or VALID, and of dilation 1") {
  using list = std::vector<std::int64_t>;
  const graph_def_attr strides{"strides", list{1, 2, 1, 1}}, same{"padding", std::string("SAME")};
  const auto g =
      of({input("x", {-1, 5, 5, 2}), input("w", {3, 3, 2, 4}), {"y", "Conv2D", {"x", "w"}, {}, {strides, same}}});
  CHECK(g["y"].dims() == shape{batch, 3, 5, 4});
  const auto each = of({input("x", {-1, 5, 5, 2}),
                        input("w", {3, 3, 2, 4}),
                        {"y", "DepthwiseConv2dNative", {"x", "w"}, {}, {strides, same}}});
  CHECK(each["y"].dims() == shape{batch, 3, 5, 8});
  CHECK(each["y"].g->nodes[each["y"].id].op == &cards::depthwise_conv2d);
  CHECK(says(convolved({strides, same, {"data_format", std::string("NCHW")}}),
             "node \"y\" (Conv2D): the format \"NCHW\""));
  CHECK(says(convolved({strides, {"padding", std::string("EXPLICIT")}}), "the padding \"EXPLICIT\""));
  CHECK(says(convolved({strides, same, {"dilations", list{1, 2, 2, 1}}}), "its dilations are not 1"));
  CHECK(says(convolved({{"strides", list{2, 1, 1, 1}}, same}), "its strides are not [1, height, width, 1]"));
  CHECK(says(convolved({{"strides", list{1, 0, 1, 1}}, same}), "its strides are not"));
  CHECK(says(convolved({same}), "its inputs or attributes are not those that this library knows of this op"));
  CHECK(says(convolved({{"strides", std::int64_t{1}}, same}), "its strides are not"));
}

TEST_CASE("attributes of another kind, and inputs that are too few") {
  CHECK(says(
      problem({input("x", {-1, 4}), numbers("a", {1}), {"y", "Sum", {"x", "a"}, {}, {{"keep_dims", std::int64_t{1}}}}},
              "y"),
      "node \"y\" (Sum): the attribute for \"keep\" is no boolean"));
  CHECK(says(problem({input("x", {-1, 4}), {"y", "Sum", {"x"}}}, "y"), "its inputs or attributes are not those"));
  CHECK(says(problem({input("x", {-1, 4}), {"y", "Relu", {"x", "x"}}}, "y"), "its inputs or attributes are not those"));
  CHECK(says(problem({input("x", {-1, 4}), {"y", "Cast", {"x"}}}, "y"), "its inputs or attributes are not those"));
  CHECK(says(problem({input("x", {-1, 4}), {"y", "Cast", {"x"}, {}, {{"DstT", string_in_graphs}}}}, "y"),
             "is of strings"));
  CHECK(says(problem({input("x", {-1, 4}), input("w", {3, 2}), {"y", "MatMul", {"x", "w"}}}, "y"),
             "node \"y\" (MatMul): MatMul: inner extents differ: 4 and 3"));
  CHECK(says(problem({input("x", {4, 4}), numbers("p", {0, 0}), {"y", "Transpose", {"x", "p"}}}, "y"),
             "must be a permutation"));
  CHECK(says(
      problem({input("x", {4, 4}), numbers("b", {3, 0}), numbers("s", {2, 4}), {"y", "Slice", {"x", "b", "s"}}}, "y"),
      "do not fit extent 4 of axis 0"));
}

TEST_CASE("an op of several nodes whose constants are not those that it is written with") {
  graph g(mode::predict);
  const value x = g.placeholder("x", {batch, 4});
  g.add_output(output::prediction, "y",
               g.add_with(cards::layer_norm_grads, {x, x},
                          detail::layer_norm_attr{1, 1, std::bit_cast<std::array<int, 2>>(1e-3)}));
  meta_graph m = to_meta_graph(parts_of(g), g.names.chars.first);
  int changed = 0;
  for (auto& n : m.graph.nodes)
    if (n.name.find("/leading") != std::string::npos)
      for (auto& a : n.attrs)
        if (a.key == "value" && ++changed == 1) a.value = whole({1});  // sums over the other axis
  REQUIRE(changed >= 1);
  const imported_graph back(std::move(m));
  REQUIRE(back.left_out().size() == 1);
  CHECK(says(back.left_out().begin()->second, "stands for LayerNormParameterGrad, but"));
  CHECK(says(back.left_out().begin()->second, "is not what that is written with"));
}
