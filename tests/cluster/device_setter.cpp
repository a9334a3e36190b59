#include <gradus/cluster/device_setter.hpp>

#include <gradus/cluster/cluster_def.hpp>
#include <gradus/cpu/device.hpp>
#include <gradus/ops/elementwise.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/run/variable_ops.hpp>
#include <gradus/update/rules/momentum.hpp>

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

using namespace gradus;

namespace {

const cluster_spec two_ps{{"ps", {"ps0:2222", "ps1:2222"}},
                          {"worker", {"worker0:2222", "worker1:2222", "worker2:2222"}}};

// In the one form that devices are compared in.
std::string device_of(value v) {
  const int at = v.g->nodes[v.id].device;
  return at < 0 ? std::string() : device_spec::from_string(v.g->text_at(at)).to_string();
}
std::string canonical(std::string_view s) { return device_spec::from_string(s).to_string(); }
template <class Error = invalid_argument, class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "(nothing was refused)";
}

}  // namespace

TEST_CASE("P12 v and w on ps 0 and 1, a sum on the worker; of a cluster as spec, definition and map") {
  const std::map<std::string, std::vector<std::string>> dict{{"ps", {"ps0:2222", "ps1:2222"}},
                                                             {"worker", {"worker0:2222"}}};
  for (const cluster_spec& cluster : {two_ps, cluster_spec(two_ps.as_cluster_def()), cluster_spec(dict)}) {
    graph g;
    const auto on = g.device(replica_device_setter({.cluster = cluster}));
    const value v = g.variable("v", {2}), w = g.variable("w", {2}), a = v + w, x = g.variable("x", {2});
    CHECK(device_of(v) == "/job:ps/task:0");
    CHECK(device_of(w) == "/job:ps/task:1");
    CHECK(device_of(a) == "/job:worker");
    CHECK(device_of(x) == "/job:ps/task:0");  // 3 variables on 2 ps: 0, 1, 0
    CHECK(device_of(initializer_of(v)) == "/job:ps/task:0");
    CHECK(device_of(initializer_of(w)) == "/job:ps/task:1");
  }
}

TEST_CASE("P12 a device string inside keeps what the setter gives beside it") {
  {
    graph g;
    const auto on = g.device(replica_device_setter({.cluster = two_ps}));
    const auto on_cpu = [&](auto make) {
      const auto cpu = g.device("/cpu:0");
      return make();
    };
    const value v = on_cpu([&] { return g.variable("v", {2}); }), w = g.variable("w", {2});
    const value a = on_cpu([&] { return v + w; });
    CHECK(device_of(v) == canonical("/job:ps/task:0/cpu:0"));
    CHECK(device_of(initializer_of(v)) == canonical("/job:ps/task:0/cpu:0"));
    CHECK(device_of(w) == "/job:ps/task:1");
    CHECK(device_of(a) == canonical("/job:worker/cpu:0"));
  }
  {
    graph g;
    const auto on = g.device(replica_device_setter({.cluster = two_ps}));
    const value v = g.variable("v", {2});
    const auto in = [&](const char* where, const char* name) {
      const auto there = g.device(where);
      return g.variable(name, {2});
    };
    const value w = in("/job:moon", "w"), x = in("/job:ps", "x"), y = in("/job:ps/task:0", "y"), a = v + w;
    CHECK(device_of(v) == "/job:ps/task:0");
    CHECK(device_of(w) == "/job:moon");
    CHECK(device_of(initializer_of(w)) == "/job:moon");
    CHECK(device_of(x) == "/job:ps/task:1");  // an explicit /job:ps gets a task
    CHECK(device_of(y) == "/job:ps/task:0");  // one with a task keeps it, and takes a turn
    CHECK(device_of(g.variable("z", {})) == "/job:ps/task:1");
    CHECK(device_of(a) == "/job:worker");
  }
}

TEST_CASE("P12 ps_tasks = 1 with ps_device /cpu:0; merge_devices = false; other job names") {
  {
    graph g;
    const auto on = g.device(replica_device_setter({.ps_tasks = 1, .ps_device = "/cpu:0"}));
    const value v = g.variable("v", {2});
    const auto moon = [&] {
      const auto there = g.device("/job:moon");
      return g.variable("w", {2});
    };
    const value w = moon(), a = v + w;
    CHECK(device_of(v) == canonical("/cpu:0"));
    CHECK(device_of(w) == canonical("/job:moon/cpu:0"));
    CHECK(device_of(a) == "/job:worker");
  }
  {
    graph g;
    const auto on = g.device(replica_device_setter({.merge_devices = false, .cluster = two_ps}));
    const value v = g.variable("v", {2});
    const auto ps = [&] {
      const auto there = g.device("/job:ps");
      return g.variable("w", {2});
    };
    const value w = ps(), a = v + w;
    CHECK(device_of(v) == "/job:ps/task:0");
    CHECK(device_of(w) == "/job:ps");  // as it was asked for
    CHECK(device_of(a) == "/job:worker");
  }
  {
    graph g;
    const cluster_spec sky{{"sun", {"sun0:2222", "sun1:2222", "sun2:2222"}}, {"moon", {"moon0:2222", "moon1:2222"}}};
    const auto on =
        g.device(replica_device_setter({.ps_device = "/job:moon", .worker_device = "/job:sun", .cluster = sky}));
    const value v = g.variable("v", {2}), w = g.variable("w", {2}), a = v + w;
    CHECK(device_of(v) == "/job:moon/task:0");
    CHECK(device_of(w) == "/job:moon/task:1");
    CHECK(device_of(initializer_of(w)) == "/job:moon/task:1");
    CHECK(device_of(a) == "/job:sun");
  }
}

TEST_CASE("P13 greedy: to the least loaded, by bytes; of several to the first; equal loads are a round robin") {
  const cluster_spec three{{"ps", {"a:1", "b:1", "c:1"}}};
  {
    graph g;
    const auto on = g.device(
        replica_device_setter({.cluster = three, .ps_strategy = greedy_load_balancing_strategy(3, byte_size_load_fn)}));
    CHECK(device_of(g.variable("a", {10})) == "/job:ps/task:0");                                   // 40, 0, 0
    CHECK(device_of(g.variable("b", {3}, {.init = zeros, .type = float64})) == "/job:ps/task:1");  // 40, 24, 0
    CHECK(device_of(g.variable("c", {})) == "/job:ps/task:2");                                     // 40, 24, 4
    CHECK(device_of(g.variable("d", {2, 3})) == "/job:ps/task:2");                                 // 40, 24, 28
    CHECK(device_of(g.variable("e", {5})) == "/job:ps/task:1");                                    // 40, 44, 28
    CHECK(device_of(g.variable("f", {3})) == "/job:ps/task:2");                                    // 40, 44, 40
    CHECK(device_of(g.variable("g", {1})) == "/job:ps/task:0");                                    // the first of two
    CHECK(device_of(g.constant(1)) == "/job:worker");
  }
  {
    graph g;
    const auto on = g.device(replica_device_setter(
        {.cluster = three, .ps_strategy = greedy_load_balancing_strategy(3, [](const placed_op&) { return 1.0; })}));
    for (int i = 0; i < 7; ++i) CHECK(device_of(g.variable("v", {i + 1})) == text("/job:ps/task:", i % 3));
  }
  CHECK(byte_size_load_fn({.output = float64, .dims = {2, 5}}) == 80);
  CHECK(byte_size_load_fn({.output = uint8}) == 1);
  CHECK(refusal([] {
          byte_size_load_fn({.name = "x", .output = float32, .dims = {batch, 2}});
        }).find("the size of \"x\"") != std::string::npos);
  CHECK(refusal([] { byte_size_load_fn({.name = "x"}); }).find("is not known") != std::string::npos);
  CHECK(refusal([] { greedy_load_balancing_strategy(0, byte_size_load_fn); }).find("at least one task") !=
        std::string::npos);
  CHECK(refusal([] { greedy_load_balancing_strategy(1, nullptr); }).find("no function") != std::string::npos);
}

TEST_CASE("replica_device_setter: without parameter servers there is no function; strategies and ops of one's own") {
  CHECK(!replica_device_setter({}));
  CHECK(!replica_device_setter({.cluster = cluster_spec{{"worker", {"a:1"}}}}));
  CHECK(!replica_device_setter({.cluster = cluster_spec{{"ps", {}}, {"worker", {"a:1"}}}}));
  CHECK(!replica_device_setter({.ps_tasks = 5, .cluster = cluster_spec{{"worker", {"a:1"}}}}));
  CHECK(refusal([] { replica_device_setter({.ps_tasks = -1}); }).find("must be at least 0, got -1") !=
        std::string::npos);
  CHECK(refusal([] { replica_device_setter({.ps_tasks = 1, .worker_device = "worker 0"}); }).find("is no device") !=
        std::string::npos);
  const device_function setter = replica_device_setter({.ps_tasks = 3});
  graph g, h;
  {
    const auto on = g.device(setter);
    CHECK(device_of(g.variable("v", {})) == "/job:ps/task:0");
  }
  const auto on = h.device(setter);  // copies share the counter, as TensorFlow's function object does
  CHECK(device_of(h.variable("v", {})) == "/job:ps/task:1");
  graph own;
  const auto mine = own.device(replica_device_setter(
      {.ps_tasks = 9, .ps_ops = {"Const"}, .ps_strategy = [](const placed_op& op) { return 4 + op.dims.rank; }}));
  CHECK(device_of(own.constant({1, 2}, {2})) == "/job:ps/task:5");
  CHECK(device_of(own.variable("v", {})) == "/job:worker");
}

TEST_CASE("an optimizer's slots and updates stand where their variable does") {
  graph g;
  const auto on = g.device(replica_device_setter({.cluster = two_ps}));
  const value v = g.variable("v", {}), w = g.variable("w", {});
  optimizer opt{momentum{.rate = 0.1}};
  opt.minimize(v * w);
  int slots = 0;
  for (int i = 0; i < g.nodes.count; ++i) {
    const value n{&g, i};
    const std::string name = g.nodes[i].name < 0 ? std::string() : std::string(g.name_of(i));
    if (g.nodes[i].op != &variable_card || name == "v" || name == "w" || name.ends_with("/steps")) continue;
    CAPTURE(name);
    CHECK(device_of(n) == (name.starts_with("v") ? "/job:ps/task:0" : "/job:ps/task:1"));
    ++slots;
  }
  CHECK(slots == 2);
}
