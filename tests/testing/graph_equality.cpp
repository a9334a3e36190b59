#include <gradus/ops/elementwise.hpp>
#include <gradus/testing/graph_equality.hpp>

#include <doctest/doctest.h>

using namespace gradus;

namespace {
constexpr graph small(double factor = 2) {
  graph g;
  const value x = g.placeholder("x", {batch, 2});
  const value y = x * factor;
  g.group({x, y}, "both");
  g.add_output(output::fetch, "y", y);
  return g;
}
static_assert([] {
  const graph a = small(), b = small();
  return testing::same_graph(parts_of(a), parts_of(b));
}());

std::string failure(const graph_def& a, const graph_def& b) {
  try {
    testing::assert_equal_graph_def(a, b);
  } catch (const failed_precondition& e) {
    return e.what();
  }
  return "";
}
}  // namespace

TEST_CASE("the first field that differs is named") {
  const graph a = small();
  const auto after = [&](auto change) {
    graph b = small();
    change(b);
    return testing::explain_difference(parts_of(a), parts_of(b));
  };
  CHECK(after([](graph&) {}) == "");
  CHECK(after([](graph& b) { b.nodes[2].op = &cards::add; }) == "node 2 (Mul): op");
  CHECK(after([](graph& b) { b.nodes[2].inputs = 1; }) == "node 2 (Mul): number of operands");
  CHECK(after([](graph& b) { b.nodes[3].controls = 1; }) == "node 3 (NoOp): number of control edges");
  CHECK(after([](graph& b) { b.nodes[1].attrs = 0; }) == "node 1 (Const): number of attribute words");
  CHECK(after([](graph& b) { b.edges[b.nodes[2].first] = 1; }) == "node 2 (Mul): operand");
  CHECK(after([](graph& b) { b.edges[b.nodes[3].first + 1] = 0; }) == "node 3 (NoOp): control edge");
  CHECK(after([](graph& b) { b = small(3); }) == "node 1 (Const): attribute");
  CHECK(after([](graph& b) { b.nodes[0].type = float64; }) == "node 0 (Placeholder): dtype");
  CHECK(after([](graph& b) { b.nodes[0].dims = {2, 2}; }) == "node 0 (Placeholder): shape");
  CHECK(after([](graph& b) { b.nodes[0].name = -1; }) == "node 0 (Placeholder): name");
  CHECK(after([](graph& b) { b.nodes[0].scope = 1; }) == "node 0 (Placeholder): scope");
  CHECK(after([](graph& b) { b.nodes[0].device = 1; }) == "node 0 (Placeholder): device");
  CHECK(after([](graph& b) { b.constant(1); }) == "number of nodes, at 4");
  CHECK(after([](graph& b) { b.outputs[0].kind = output::loss; }) == "output, at 0");
  CHECK(after([](graph& b) { b.outputs.count = 0; }) == "number of outputs, at 0");
  CHECK(after([](graph& b) { b.gates.push(0); }) == "number of gates, at 0");
  CHECK(after([](graph& b) { b.expressions.push({}); }) == "number of expressions, at 0");
}

TEST_CASE("assert_equal_graph_def: what counts and what does not") {
  const graph_def e{{{"a", "Const", {}, "", {{"dtype", float32}, {"value", tensor_def::scalar(1.5f)}}},
                     {"b", "Const", {}, "", {}},
                     {"c", "Add", {"a", "b", "^x", "^y"}, "/cpu:0", {{"T", float32}}}},
                    38,
                    12};
  const auto after = [&](auto change) {
    graph_def a = e;
    change(a);
    return failure(a, e);
  };
  CHECK(after([](graph_def&) {}) == "");
  CHECK(after([](graph_def& a) { std::swap(a.nodes[0], a.nodes[2]); }) == "");             // order of nodes
  CHECK(after([](graph_def& a) { a.producer = 1, a.min_consumer = 0; }) == "");            // versions
  CHECK(after([](graph_def& a) { a.nodes[2].inputs = {"a:0", "b", "^y", "^x"}; }) == "");  // t and t:0, a set
  CHECK(after([](graph_def& a) {
          a.nodes[2].attrs.push_back({"_class", std::string("x")});
        }) == "");  // internal attributes
  CHECK(after([](graph_def& a) { std::swap(a.nodes[0].attrs[0], a.nodes[0].attrs[1]); }) == "");
  CHECK(after([](graph_def& a) { a.nodes.pop_back(); }).starts_with("Did not find expected node"));
  CHECK(after([](graph_def& a) { a.nodes.push_back({"d", "NoOp", {}, "", {}}); }).starts_with("Found unexpected node"));
  CHECK(after([](graph_def& a) { a.nodes[2].op = "Sub"; }) == "Node named 'c' has op 'Sub', expected 'Add'");
  CHECK(after([](graph_def& a) { a.nodes[2].device = ""; }) == "Node named 'c' has device '', expected '/cpu:0'");
  CHECK(after([](graph_def& a) {
          a.nodes[2].inputs = {"b", "a", "^x", "^y"};
        }) == "Node named 'c' has input 0 'b', expected 'a'");
  CHECK(after([](graph_def& a) {
          a.nodes[2].inputs = {"a:1", "b", "^x", "^y"};
        }) == "Node named 'c' has input 0 'a:1', expected 'a'");
  CHECK(after([](graph_def& a) {
          a.nodes[2].inputs = {"a", "b", "^x", "^z"};
        }) == "Node named 'c' has control inputs 'these', expected 'others'");
  CHECK(after([](graph_def& a) { a.nodes[2].inputs.pop_back(); }) ==
        "Node named 'c' has a number of inputs of '3', expected '4'");
  CHECK(after([](graph_def& a) { a.nodes[2].attrs[0].value = float64; }) ==
        "Node named 'c' has another value of the attribute 'T'");
  CHECK(after([](graph_def& a) { a.nodes[2].attrs.clear(); }) == "Node named 'c' lacks the attribute 'T'");
  CHECK(after([](graph_def& a) {
          a.nodes[2].attrs.push_back({"U", true});
        }) == "Node named 'c' has an unexpected attribute 'U'");
  CHECK(after([](graph_def& a) { a.nodes[0].attrs[1].value = tensor_def::scalar(2.5f); }) != "");
  CHECK(after([](graph_def& a) { a.nodes[1].name = "a"; }).starts_with("Ambiguous node name"));
}

TEST_CASE("graphs of ours, by their descriptions") {
  testing::assert_equal_graph_def(small(), small());
  CHECK_THROWS_WITH_AS(testing::assert_equal_graph_def(small(3), small()),
                       "Node named 'Const' has another value of the attribute 'value'", failed_precondition);
}

TEST_CASE("string constants: type, extents, content and strings all count") {
  const auto of = [](tensor_def value) { return graph_def{{{"a", "Const", {}, "", {{"value", std::move(value)}}}}}; };
  const auto strings = [](std::vector<std::string> list) {
    tensor_def t{dtype::none, {static_cast<std::int64_t>(list.size())}, {}};
    t.strings = std::move(list);
    return t;
  };
  const std::string differs = "Node named 'a' has another value of the attribute 'value'";
  CHECK(failure(of(strings({"x", "y"})), of(strings({"x", "y"}))) == "");
  CHECK(failure(of(strings({"x", "y"})), of(strings({"x", "z"}))) == differs);
  CHECK(failure(of(strings({"x", ""})), of(strings({"x"}))) == differs);
  const tensor_def two{int32, {2}, std::vector<std::byte>(8)};
  tensor_def other_type = two, other_dims = two;
  other_type.type = float32, other_dims.dims = {2, 1};
  CHECK(failure(of(two), of(two)) == "");
  CHECK(failure(of(two), of(other_type)) == differs);
  CHECK(failure(of(two), of(other_dims)) == differs);
}
