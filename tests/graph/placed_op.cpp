#include <gradus/graph/placed_op.hpp>

#include <doctest/doctest.h>

#include <concepts>
#include <string>
#include <vector>

using namespace gradus;

namespace {
std::string device_of(graph& g, value v) {
  const int at = g.nodes[v.id].device;
  return at < 0 ? std::string() : std::string(g.text_at(at));
}
}  // namespace

TEST_CASE("a device function sees a node's name, op, device, type and shape") {
  const device_function f = [](const placed_op& op) {
    return std::string(op.name) + "|" + std::string(op.type) + "|" + std::string(op.device) + "|" +
           std::to_string(op.dims.rank) + (op.output == float32 ? "|f" : "|?");
  };
  CHECK(f({.name = "a/b", .type = "matmul", .device = "/job:ps", .output = float32, .dims = {2, 3}}) ==
        "a/b|matmul|/job:ps|2|f");
  CHECK(f({}) == "|||0|?");
  static_assert(!std::constructible_from<device_function, std::string (*)()>);
}

TEST_CASE("g.device(function) holds for its block: variables, constants, ops") {
  graph g;
  std::vector<std::string> seen;
  value before = g.variable("before", {2}), v, c, list, s;
  {
    const auto on = g.device([&](const placed_op& op) {
      seen.push_back(text(op.name, " ", op.type, " ", op.device, " ", to_text(op.dims)));
      return std::string(op.type == "VariableV2" ? "/job:ps" : "");
    });
    const auto in = g.name_scope("in");
    v = g.variable("v", {2});
    {
      const auto cpu = g.device("/cpu:0");
      c = g.constant(1.0);
    }
    list = g.constant({1, 2}, {2});
    s = g.group({v}, "together");
    const graph copy = g;  // no function of the original's block is called for what is added to it
    graph other = copy;
    other.variable("w", {});
  }
  const value after = g.variable("after", {});
  CHECK(seen ==
        std::vector<std::string>{"in/v VariableV2  [2]", " Const /cpu:0 []", " Const  [2]", "in/together NoOp  []"});
  CHECK(device_of(g, v) == "/job:ps");
  CHECK((device_of(g, before).empty() && device_of(g, after).empty() && device_of(g, c).empty()));
  CHECK((g.nodes[list.id].device == -1 && g.nodes[s.id].device == -1));
}

TEST_CASE("device functions and strings around each other: the inner one's answer is filled in by the outer one") {
  graph g;
  const auto ps = [](const placed_op&) { return std::string("/job:ps"); };
  const auto append = [](const placed_op& op) { return std::string(op.device) + "/task:1"; };
  {
    const auto outer = g.device("/job:outer/cpu:0");
    const auto inner = g.device(ps);
    CHECK(device_of(g, g.constant(1)) == "/job:ps/device:CPU:0");
    const auto innermost = g.device("/task:3");  // the function sees it, and gives something else
    CHECK(device_of(g, g.constant(1)) == "/job:ps/device:CPU:0");
  }
  {
    const auto outer = g.device("/job:outer");
    { const auto inner = g.device(ps); }
    CHECK(device_of(g, g.constant(1)) == "/job:outer");  // what was asked for before is asked for again
  }
  {
    const auto outer = g.device(append);
    CHECK(device_of(g, g.constant(1)) == "/task:1");
    const auto inner = g.device(ps);
    CHECK(device_of(g, g.constant(1)) == "/job:ps/task:1");
  }
  {
    const auto nothing = g.device(device_function());
    CHECK(g.nodes[g.constant(1).id].device == -1);
    const auto cpu = g.device("/cpu:0");
    CHECK(device_of(g, g.constant(1)) == "/cpu:0");
  }
  CHECK(g.nodes[g.constant(1).id].device == -1);
}
