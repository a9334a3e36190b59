#include <gradus/summary/tensorflow_graph.hpp>

#include <doctest/doctest.h>

using namespace gradus;
using detail::tensorflow_graph;

namespace {
std::string line_of(const graph_def_node& n) {
  std::string out = text(n.name, " = ", n.op, "(");
  for (std::size_t i = 0; i < n.inputs.size(); ++i) out += text(i == 0 ? "" : ", ", n.inputs[i]);
  out += ")";
  for (const auto& a : n.attrs) {
    out += " " + a.key;
    if (const auto* t = a.value.get_if<dtype>()) out += text("=", name_of(*t));
    if (const auto* i = a.value.get_if<std::int64_t>()) out += text("=", *i);
  }
  return out;
}
}  // namespace

TEST_CASE("tensorflow_graph: a formula becomes nodes under its node's name") {
  tensorflow_graph g;
  const auto x = g.add(g.take("x"), "Placeholder", {}, {}, float32);
  const auto y = g.write(g.take("y"), "a = Square($0); c = Assert(All(Less(a, 2), @axes), a); Pack($*, a, ^c)", {x, x},
                         {{"axes", std::vector<std::int64_t>{0, 1}}});
  CHECK(y.name == "y");
  CHECK(y.type == float32);
  std::vector<std::string> lines;
  for (const auto& n : g.def.nodes) lines.push_back(line_of(n));
  CHECK(lines == std::vector<std::string>{
                     "x = Placeholder()",
                     "y/Square = Square(x) T=float32",
                     "y/Const = Const() dtype=float32 value",
                     "y/Less = Less(y/Square, y/Const) T=float32",
                     "y/axes = Const() dtype=int32 value",
                     "y/All = All(y/Less, y/axes) Tidx=int32",
                     "y/Assert = Assert(y/All, y/Square) T",
                     "y = Pack(x, x, y/Square, ^y/Assert) T=float32 N=3",
                 });
}

TEST_CASE("tensorflow_graph: extents that hold the batch are asked for when the graph runs") {
  tensorflow_graph g;
  const auto x = g.add(g.take("x"), "Placeholder", {}, {}, float32);
  g.batch_from = {{x, 1, 2}};
  g.write(g.take("y"), "Fill(@shape, 1)", {}, {{"shape", shape_def{{-1, 3, -4}}}});
  g.write(g.take("z"), "Fill(@shape, 1)", {}, {{"shape", shape_def{{-1}}}});
  int shapes = 0;
  std::string packed;
  for (const auto& n : g.def.nodes) {
    shapes += n.op == "Shape";
    if (n.op == "Pack") packed += line_of(n) + "; ";
  }
  CHECK(shapes == 1);
  CHECK(packed ==
        "y/shape = Pack(batch, y/extent, y/extents) T=int32 N=3 axis=0; "
        "z/shape = Pack(batch) T=int32 N=1 axis=0; ");
}

TEST_CASE("tensorflow_graph: a formula that asks for what is not there") {
  tensorflow_graph g;
  for (const char* wrong : {"Add($0, $1)", "Add(a, 1)", "Fill(@shape, 1)", "Cast(1){DstT=type}", "Add(1, ", "", "Add"})
    CHECK_THROWS_AS(g.write("y", wrong, {}, {}), internal);
}
