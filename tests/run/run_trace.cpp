#include <gradus/run/run_trace.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/ops/matmul.hpp>
#include <gradus/ops/reduce.hpp>
#include <gradus/run/session.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace gradus;

namespace {
template <class... Policies>
run_metadata traced(trace_level level, Policies... policies) {
  graph g;
  const value x = g.placeholder("x", {batch, 4}), w = g.variable("w", {4, 3});
  const value y = matmul(x, w), loss = reduce_sum(y);
  session s{g, policies...};
  s.initialize();
  const std::vector<float> data(8, 1.0f);
  run_metadata told;
  told.nodes.resize(7);  // of an earlier run
  const float without = s.run(loss, {{"x", data}}).template as<float>()[0];
  const float with = s.run(loss, {{"x", data}}, {.trace = level}, &told).template as<float>()[0];
  CHECK(with == without);
  return told;
}
}  // namespace

TEST_CASE("a traced run names its ops in their order, with times that do not run backwards") {
  for (const auto level : {trace_level::software_trace, trace_level::hardware_trace, trace_level::full_trace}) {
    const run_metadata m = traced(level);
    REQUIRE(!m.nodes.empty());
    CHECK(std::any_of(m.nodes.begin(), m.nodes.end(), [](const auto& n) { return n.op == "MatMul"; }));
    double last = 0;
    for (const auto& n : m.nodes) {
      CHECK(n.start_secs >= last);
      CHECK(n.end_secs >= n.start_secs);
      CHECK(n.thread == 0);
      last = n.start_secs;
    }
  }
  CHECK(traced(trace_level::full_trace).nodes.size() == traced(trace_level::full_trace, threads{2}).nodes.size());
}

TEST_CASE("a run that is not traced leaves the metadata as they are") {
  CHECK(traced(trace_level::no_trace).nodes.size() == 7);
}
