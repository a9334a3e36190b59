#include "gradus/summary/run_graph.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "gradus/ops/host.hpp"
#include "gradus/ops/layer.hpp"
#include "gradus/ops/state.hpp"

using namespace gradus;

namespace {
void build(graph& g) {
  const auto x = g.placeholder("x", {batch, 3});
  const auto y = dense(x, {.units = 2, .name = "out"});
  g.variable("counter", {}, {.trainable = false});
  reduce_mean(y);
}
}  // namespace

TEST_CASE("run_graph: the graph, and its variables in TensorFlow's two collections") {
  graph g;
  build(g);
  const auto m = to_meta_graph(parts_of(g), g.names.chars.first);
  REQUIRE(m.saver);
  CHECK(m.saver->restore_op == "save/restore_all");
  REQUIRE(m.collections.contains("variables"));
  CHECK(m.collections.at("variables").messages.size() == 3);
  CHECK(m.collections.at("trainable_variables").messages.size() == 2);
  CHECK(m.collections.at(std::string(left_out_collection)).messages.size() == 1);  // it predicts nothing
  CHECK(to_pbtxt(m).find("out/kernel") != std::string::npos);
}

namespace {
std::vector<std::string> sentences(const meta_graph& m) {
  std::vector<std::string> out;
  const auto found = m.collections.find(std::string(left_out_collection));
  if (found == m.collections.end()) return out;
  for (const auto& b : found->second.messages) out.emplace_back(reinterpret_cast<const char*>(b.data()), b.size());
  return out;
}
bool has_node(const meta_graph& m, std::string_view name) {
  for (const auto& n : m.graph.nodes)
    if (n.name == name) return true;
  return false;
}
void twice(std::span<float> y, std::span<const float> x) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = 2 * x[i];
}
}  // namespace

TEST_CASE("run_graph: a prediction that TensorFlow cannot compute is left out, the others stay") {
  static constexpr card own{
      .name = "Own", .operands = 1, .infer = [](inference& r) { r.type = r.in_type(0), r.dims = r.in(0); }};
  graph g(mode::predict);
  const auto x = g.placeholder("x", {batch, 3});
  const auto w = g.variable("w", {3}), counter = g.variable("counter", {}, {.trainable = false, .local = true});
  const auto other = square(host_call<&twice>({x * w}));
  g.add_output(output::prediction, "good", x * w);
  g.add_output(output::prediction, "bad", other);
  g.add_output(output::prediction, "own", g.add(own, {x}));
  g.add_output(output::prediction, "changed", assign_add(w, w));
  g.add_output(output::prediction, "counted", counter + 1.0);
  const auto m = to_meta_graph(parts_of(g), g.names.chars.first);
  CHECK(
      sentences(m) ==
      std::vector<std::string>{
          "prediction \"bad\": node \"HostCall\" (HostCall): it calls a function of the program, which no file can "
          "hold",
          "prediction \"own\": node \"Own\" (Own): TensorFlow has no such op, and this library knows none that make it "
          "up",
          "prediction \"changed\": node \"AssignAdd\" (AssignAdd): it changes a variable, which inference does not"});
  CHECK(m.collections.at("predictions").nodes ==
        std::vector<std::string>{"predictions/good:0", "predictions/counted:0"});
  CHECK(m.signatures.at("serving_default").outputs.contains("good"));
  CHECK(m.signatures.at("serving_default").inputs.at("x").tensor == "x:0");
  CHECK(m.collections.at("variables").messages.size() == 1);
  CHECK(m.collections.at("local_variables").messages.size() == 1);  // not saved, not restored
  CHECK(!has_node(m, "HostCall"));
  CHECK(!has_node(m, "Square"));
}

TEST_CASE("run_graph: signatures may change local variables, as a metric's update does, and no others") {
  graph g(mode::predict);
  const auto x = g.placeholder("x", {});
  const auto total = g.variable("total", {}, {.trainable = false, .local = true}), w = g.variable("w", {});
  const auto less = g.variable("less", {}, {.trainable = false, .local = true});
  const auto up = assign_add(total, x), down = assign_sub(less, x), set = assign(less, down * 2.0), late = total + 0.0;
  const auto m = to_meta_graph(parts_of(g), g.names.chars.first, {},
                               {{"eval", {{{"x", x.id}}, {{"up", up.id}, {"set", set.id}, {"late", late.id}}}}});
  const auto node = [&](std::string_view name) {
    const auto& all = m.graph.nodes;
    return *std::find_if(all.begin(), all.end(), [&](const auto& n) { return n.name == name; });
  };
  const std::string up_name = "AssignAdd", set_name = "Assign", down_name = "AssignSub";
  REQUIRE((has_node(m, up_name) && has_node(m, set_name) && has_node(m, down_name)));
  CHECK((node(up_name).op == "AssignAdd" && node(up_name).inputs == std::vector<std::string>{"total", "x"}));
  CHECK((node(down_name).op == "AssignSub" && node(down_name).inputs == std::vector<std::string>{"less", "x"}));
  CHECK((node(set_name).op == "Assign" && node(set_name).inputs[0] == "less"));
  std::string attrs;
  for (const auto& a : node(up_name).attrs) attrs += text(a.key, " ");
  CHECK(attrs == "T use_locking ");
  CHECK(m.signatures.at("eval").outputs.at("up").tensor == up_name + ":0");
  CHECK(m.signatures.at("eval").outputs.at("up").type == float32);
  // A loader gives them their first values.
  CHECK(m.collections.at("local_variables").messages.size() == 2);
  CHECK(m.collections.at("saved_model_main_op").nodes == std::vector<std::string>{"init_local"});
  CHECK(node("init_local").op == "NoOp");
  CHECK(node("init_local").inputs == std::vector<std::string>{"^total/Assign", "^less/Assign"});
  // Without local variables there is nothing to run.
  const auto none_local = to_meta_graph(parts_of(g), g.names.chars.first, {}, {{"a", {{{"x", x.id}}, {{"y", x.id}}}}});
  CHECK(!none_local.collections.contains("saved_model_main_op"));
  const auto trains = assign_add(w, x);
  CHECK_THROWS_WITH_AS(
      to_meta_graph(parts_of(g), g.names.chars.first, {}, {{"a", {{{"x", x.id}}, {{"y", trains.id}}}}}),
      doctest::Contains("the output \"y\" cannot be written in TensorFlow's ops: node \"AssignAdd_1\" "
                        "(AssignAdd): it changes a variable, which inference does not"),
      unimplemented);
}

TEST_CASE("run_graph: TensorFlow's kernel of depthwise convolutions takes equal strides alone") {
  const auto written = [](extent2 strides) {
    graph g(mode::predict);
    const auto x = g.placeholder("x", {batch, 6, 6, 2});
    const auto y = depthwise_conv2d(x, g.constant(1, float32, {3, 3, 2, 1}), {.strides = strides});
    return to_meta_graph(parts_of(g), g.names.chars.first, {}, {{"serve", {{{"x", x.id}}, {{"y", y.id}}}}});
  };
  CHECK(has_node(written(2), "DepthwiseConv2dNative"));
  CHECK_THROWS_WITH_AS(written({1, 2}),
                       doctest::Contains("node \"DepthwiseConv2dNative\" (DepthwiseConv2dNative): strides 1, 2; "
                                         "TensorFlow's depthwise convolutions have equal ones alone"),
                       unimplemented);
}

TEST_CASE("run_graph: what a checkpoint holds beside the model's variables; names that are taken already") {
  graph g(mode::predict);
  const auto w = g.variable("w", {2}, {.init = zeros}), taken = g.variable("save/restore_all", {}, {.init = zeros});
  g.add_output(output::prediction, "w/read", identity(w + taken, "w/read"));
  const auto m = to_meta_graph(parts_of(g), g.names.chars.first,
                               {{"w", float32, {2}, true},
                                {"save/restore_all", float32, {}},
                                {"w/Adam", float32, {2}},
                                {"global_step", int64, {}, false, "step"}});
  CHECK(m.saver->restore_op == "save/restore_all_1");
  CHECK(m.collections.at("variables").messages.size() == 4);
  CHECK(m.collections.at("trainable_variables").messages.size() == 1);
  CHECK(m.collections.at("global_step").messages.size() == 1);
  const std::string def(reinterpret_cast<const char*>(m.collections.at("variables").messages[0].data()),
                        m.collections.at("variables").messages[0].size());
  CHECK(def.find("w/read_1:0") != std::string::npos);  // "w/read" is a node of the model's
  for (const auto& n : m.graph.nodes)
    if (n.name == "save/RestoreV2/tensor_names")
      for (const auto& a : n.attrs)
        if (a.key == "value")
          CHECK(a.value.get<tensor_def>().strings ==
                std::vector<std::string>{"w", "save/restore_all", "w/Adam", "step"});
}
