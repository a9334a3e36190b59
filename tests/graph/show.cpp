#include <gradus/graph/show.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/pass/fuse.hpp>
#include <gradus/pass/minimize.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace gradus;

namespace {
graph linear() {
  graph g;
  const auto ps = g.device("/job:ps/task:0");
  const value x = g.placeholder("x", {batch, 2});
  const value y = dense(x, {.units = 3, .name = "out"});
  g.add_output(output::loss, "loss", reduce_mean(square(y) * 0.5));
  return g;
}
bool is_a_name(std::string_view s) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
  };
  return !s.empty() && plain(s[0]) &&
         std::all_of(s.begin(), s.end(), [&](char c) { return plain(c) || c == '_' || c == '/' || c == '-'; });
}
}  // namespace

TEST_CASE("text: a line a node, a line an output") {
  CHECK(to_text(linear()) ==
        "x = Placeholder(): float32 [batch, 2] on /job:ps/task:0\n"
        "out/kernel = VariableV2(): float32 [2, 3] on /job:ps/task:0\n"
        "out/MatMul = MatMul(x, out/kernel): float32 [batch, 3] on /job:ps/task:0\n"
        "out/bias = VariableV2(): float32 [3] on /job:ps/task:0\n"
        "out/Add = Add(out/MatMul, out/bias): float32 [batch, 3] on /job:ps/task:0\n"
        "Square = Square(out/Add): float32 [batch, 3] on /job:ps/task:0\n"
        "Const = Const(0.5): float32 [] on /job:ps/task:0\n"
        "Mul = Mul(Square, Const): float32 [batch, 3] on /job:ps/task:0\n"
        "Mean = Mean(Mul): float32 [] on /job:ps/task:0\n"
        "loss \"loss\" = Mean\n");
  graph g = linear();
  g.group({value{&g, 8}}, "done");
  CHECK(to_text(g).find("done = NoOp() after Mean\n") != std::string::npos);
  const graph f = fuse(parts_of(g));
  CHECK(to_text(parts_of(f), g.names.chars.first).find("FusedMatMul[Add, Square, Mul](") != std::string::npos);
}

TEST_CASE("every node has a name of its own in TensorFlow's grammar; gradients and updates have scopes of theirs") {
  graph g = linear();
  g.placeholder("_under", {});
  g.placeholder("sp ace", {});
  g.placeholder("sp_ace", {});
  g.placeholder("Mean", {});  // what an unnamed node would be called
  const graph whole = minimize(parts_of(g), {gating::graph, false});
  const auto nodes = describe(parts_of(whole), g.names.chars.first);
  std::set<std::string> names;
  int gradients = 0, updates = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    CAPTURE(nodes[i].name);
    CHECK(is_a_name(nodes[i].name));
    CHECK(names.insert(nodes[i].name).second);
    gradients += nodes[i].name.starts_with("gradients/");
    updates += nodes[i].name.starts_with("train/update_out/");
    bool control = false;
    for (const auto& in : nodes[i].inputs) {  // names of older nodes; control inputs last
      control = control || in.starts_with("^");
      CHECK(in.starts_with("^") == control);
      CHECK(names.count(in.starts_with("^") ? in.substr(1) : in) == 1);
    }
  }
  CHECK(gradients > 3);
  CHECK(updates == 2);
  for (const char* expected : {"x", "out/kernel", "out/bias", "._under", "sp_ace", "sp_ace_1", "Mean", "Mean_1",
                               "train/update_out/kernel/Apply", "train/update_out/bias/Apply"})
    CHECK(names.count(expected) == 1);
  CHECK(nodes[static_cast<std::size_t>(g.find("x"))].name == "x");
}

TEST_CASE("without names every node is named by its op") {
  const graph g = linear();
  const auto nodes = describe(parts_of(g), nullptr);
  CHECK(nodes[0].name == "Placeholder");
  CHECK(nodes[1].name == "VariableV2");
  CHECK(nodes[3].name == "VariableV2_1");
  CHECK(nodes[4].inputs == std::vector<std::string>{"MatMul", "VariableV2_1"});
}
