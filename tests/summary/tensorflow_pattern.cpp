#include <gradus/summary/tensorflow_pattern.hpp>

#include <doctest/doctest.h>

#include <set>

using namespace gradus;
using namespace gradus::detail;

namespace {
tensor_def number(float x) { return tensor_def::scalar(x); }
// x * (1 / (1 + e^-x)) in the shape of "TanhGrad($1, $0)" and of Gelu's formula, under a name for its helpers.
std::vector<graph_def_node> gelu_nodes(const std::string& under, float cubic = 0.044715f) {
  const auto in = [&](const char* n) { return under + n; };
  std::vector<graph_def_node> out{{"x", "Placeholder", {}, {}, {{"dtype", float32}}}};
  const auto constant = [&](const char* n, float v) {
    out.push_back({in(n), "Const", {}, {}, {{"value", number(v)}}});
  };
  constant("k0", 0.7978845608028654f), constant("k1", cubic), constant("k2", 0.5f), constant("k3", 1);
  out.push_back({in("square"), "Square", {"x"}});
  out.push_back({in("c"), "Mul", {"x", in("square")}});
  out.push_back({in("scaled"), "Mul", {in("k1"), in("c")}});
  out.push_back({in("sum"), "AddV2", {"x", in("scaled")}});
  out.push_back({in("inner"), "Mul", {in("k0"), in("sum")}});
  out.push_back({in("t"), "Tanh", {in("inner")}});
  out.push_back({in("half"), "Mul", {in("k2"), "x"}});
  out.push_back({in("one"), "Add", {in("k3"), in("t")}});
  out.push_back({"y", "Mul", {in("half"), in("one")}});
  return out;
}
const tensorflow_pattern* found(const graph_index& g, std::string_view node) {
  const int i = g.find(node);
  for (const tensorflow_pattern* p : patterns_of(common_op_name(g.node(i).op)))
    if (match(g, *p, i)) return p;
  return nullptr;
}
}  // namespace

TEST_CASE("every formula is read as a pattern, once for each way of writing") {
  std::set<std::string_view> texts, known;
  for (const auto& f : tensorflow_formulas) texts.insert(f.text);
  for (const auto& f : tensorflow_formulas) {
    const std::string_view op = f.text.substr(f.text.rfind(';') == f.text.npos ? 0 : f.text.rfind(';') + 1);
    const auto from = op.find_first_not_of(' ');
    for (const tensorflow_pattern* p : patterns_of(op.substr(from, op.find('(') - from)))
      if (p->formula->text == f.text) known.insert(f.text);
  }
  CHECK(known == texts);
  CHECK(patterns_of("NoSuchOp").empty());
  const auto mul = patterns_of("Mul");
  REQUIRE(mul.size() > 2);
  for (std::size_t i = 1; i < mul.size(); ++i) CHECK(mul[i - 1]->calls >= mul[i]->calls);
  CHECK(mul.back()->formula->name == "Mul");
}

TEST_CASE("an op of several nodes is found by the helpers under its name") {
  CHECK(found(graph_index({gelu_nodes("y/")}), "y")->formula->name == "Gelu");
  // By hand, or by TensorFlow: what stands elsewhere is taken node by node.
  CHECK(found(graph_index({gelu_nodes("other/")}), "y")->formula->name == "Mul");
  CHECK(found(graph_index({gelu_nodes("y/", 0.05f)}), "y")->formula->name == "Mul");
  auto two_inputs = gelu_nodes("y/");
  two_inputs.push_back({"z", "Placeholder"});
  for (auto& n : two_inputs)
    if (n.name == "y/half") n.inputs[1] = "z";
  CHECK(found(graph_index({two_inputs}), "y")->formula->name == "Mul");
}

TEST_CASE("attributes: those of the formula, those that are settings, and TensorFlow's defaults") {
  const graph_index g({{{"x", "P"},
                        {"axes", "Const"},
                        {"a", "Sum", {"x", "axes"}},
                        {"b", "Sum", {"x", "axes"}, {}, {{"keep_dims", true}}},
                        {"c", "ArgMax", {"x", "axes"}, {}, {{"output_type", int32}}},
                        {"d", "Sum", {"x"}}}});
  const auto keeps = [&](std::string_view node) {
    const auto m = match(g, *patterns_of("Sum").front(), g.find(node));
    REQUIRE(m);
    CHECK(m->operands == std::vector<tensor_place>{{0, 0}});
    CHECK(*m->tensor("axes") == tensor_place{1, 0});
    return m->attr("keep")->get<bool>();
  };
  CHECK_FALSE(keeps("a"));
  CHECK(keeps("b"));
  CHECK(found(g, "c") == nullptr);
  CHECK(found(g, "d") == nullptr);
}
