// A training step on one thread, on two, and interpreted: names end in "serial", "threads:1", "threads:2". The smallest
// models show what it costs that threads are there and not needed; the large ones what they gain. A machine with other
// work on it shows neither: look at its load first.
#include "models.hpp"

#include <gradus/update/rules/adam.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

namespace {

using namespace training;

template <class Executor, class Model, class Optimizer>
void steps_on(benchmark::State& state, const Executor& executor, Model model, Optimizer optimizer,
              std::int64_t batch_size, std::uint32_t classes) {
  const subnormal_scope here(subnormal_mode::flush);
  stepper<Model, decltype(composed{optimizer}), cpu<fast>, Executor> s(std::move(model), composed{optimizer}, executor);
  s.allocate();
  s.initialize(1);
  auto& machine = s.template bound<mode::train>(batch_size);
  batches data(s, machine, batch_size, classes);
  const tensor_view loss = s.template output_of<mode::train>(output::loss);
  for (auto _ : state) {
    data.feed();
    s.train_step();
    benchmark::DoNotOptimize(*reinterpret_cast<const float*>(loss.data));
  }
  state.SetLabel(s.executor().in_order() ? "in order" : "divided");
}

template <auto Build, class Optimizer>
void add(const std::string& name, Optimizer optimizer, std::int64_t batch_size, std::uint32_t classes) {
  const auto entry = [&](const std::string& how, auto run) {
    benchmark::RegisterBenchmark(training::named(("W3/" + name + "/" + how).c_str()).c_str(), run)->UseRealTime();
  };
  entry("serial", [=](auto& s) {
    steps_on(s, serial{}, compiled_model<Build, cpu<fast>, gating::op, false, true>{}, optimizer, batch_size, classes);
  });
  for (int n : {1, 2})
    entry("threads:" + std::to_string(n), [=](auto& s) {
      steps_on(s, threads{n}, compiled_model<Build, cpu<fast>, gating::op, false, false>{}, optimizer, batch_size,
               classes);
    });
  entry("interpreted", [=](auto& s) {
    steps_on(s, serial{}, interpreted_model<cpu<fast>, ops<>, gating::op, false, true>{Build}, optimizer, batch_size,
             classes);
  });
}

const bool registered = [] {
  add<regression>("a_mlp_8-16-1_b1_sgd", gradient_descent{.rate = 1e-3}, 1, 1);
  add<mlp<32, 64, 64, 4>>("b_mlp_32-64-64-4_b16_adam", adam{.rate = 1e-3}, 16, 4);
  add<mlp<784, 128, 0, 10>>("c_mlp_784-128-10_b32_sgd", gradient_descent{.rate = 1e-2}, 32, 10);
  add<mlp<784, 512, 256, 10>>("d_mlp_784-512-256-10_b128_adam", adam{.rate = 1e-3}, 128, 10);
  return true;
}();

}  // namespace
