// A large graph built by the program: builder, differentiation, passes and plan, and one interpreted step of it.
// Counters: nodes after the passes, calls of a step.
#include <benchmark/benchmark.h>

#include <gradus/cpu/device.hpp>
#include <gradus/ops/layer.hpp>
#include <gradus/run/stepper.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

namespace {

using namespace gradus;

// A residual MLP: 20 nodes a block after the passes.
model_spec residual(graph& g, int blocks) {
  const auto x = g.placeholder("x", {batch, 32}), y = g.placeholder("y", {batch, 1});
  auto h = dense(x, {.units = 32, .name = "in"});
  for (int i = 0; i < blocks; ++i) {
    const auto block = g.name_scope("block");
    h = h + dense(relu(dense(h, {.units = 32, .name = "a"})), {.units = 32, .name = "b"});
  }
  return {.loss = reduce_mean(square(dense(h, {.units = 1, .name = "out"}) - y)), .metrics = {}, .predictions = {}};
}

void build(benchmark::State& state) {
  const auto blocks = static_cast<int>(state.range(0));
  int nodes = 0, calls = 0;
  for (auto _ : state) {
    const graph built = build_model([&](graph& g) { return residual(g, blocks); }, mode::train);
    const graph ready = run_passes(built, {});
    const detail::program p = detail::plan(parts_of(ready), true);
    nodes = ready.nodes.count, calls = p.calls.count;
    benchmark::DoNotOptimize(p.slots.first);
  }
  state.counters["nodes"] = nodes, state.counters["calls"] = calls;
}
BENCHMARK(build)->Arg(49)->Arg(500)->Arg(5000)->Unit(benchmark::kMillisecond);

void step(benchmark::State& state) {
  const auto blocks = static_cast<int>(state.range(0));
  using model = interpreted_model<cpu<fast>, ops<>, gating::op, false, true>;
  const composed update{gradient_descent{.rate = 1e-6}};
  stepper<model, std::remove_const_t<decltype(update)>, cpu<fast>> s(
      model{[=](graph& g) { return residual(g, blocks); }}, update);
  s.allocate();
  s.initialize(1);
  const auto& machine = s.template bound<mode::train>(1);
  for (auto _ : state) s.train_step();
  state.counters["nodes"] = machine.what().graph.view.size;
}
BENCHMARK(step)->Arg(49)->Arg(500)->Unit(benchmark::kMillisecond);

}  // namespace
