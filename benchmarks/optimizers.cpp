// One step of every rule over one variable: nanoseconds per parameter and what it reads and writes. The names of peers'
// workloads where they have the rule ("W2/adam/1000000"). And the rules on matrices, in GFLOP/s.
#include <benchmark/benchmark.h>

#include <gradus/cpu/device.hpp>
#include <gradus/run/updater.hpp>
#include <gradus/update/loss_scale.hpp>
#include <gradus/update/rules.hpp>
#include <gradus/update/weight_decay.hpp>
#include <string>
#include <vector>

namespace {

std::vector<float> numbers(std::size_t n, float scale) {
  std::vector<float> x(n);
  std::uint32_t s = 1;
  for (float& v : x) s = s * 1664525u + 1013904223u, v = (static_cast<float>(s >> 8) * 0x1p-24f - 0.5f) * scale;
  return x;
}

// `arrays`: of n floats that a step reads or writes, each access counted.
template <class Updater>
void run(benchmark::State& state, Updater& u, std::size_t n, int arrays) {
  auto w = numbers(n, 1);
  const auto g = numbers(n, 0.01f);
  u.track("w", w);
  for (auto _ : state) {
    u.apply({{"w", g}});
    benchmark::ClobberMemory();
  }
  const double steps = static_cast<double>(state.iterations()), per_step = static_cast<double>(n);
  state.counters["ns_per_param"] =
      benchmark::Counter(steps * per_step * 1e-9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["effective_bandwidth"] =
      benchmark::Counter(steps * per_step * 4e-9 * arrays, benchmark::Counter::kIsRate);
}
template <class... Policies>
void step(benchmark::State& state, std::size_t n, int arrays, Policies... policies) {
  gradus::updater u{policies...};
  run(state, u, n, arrays);
}

template <class... Policies>
void add(const std::string& name, int arrays, Policies... policies) {
  for (const std::size_t n : {std::size_t{10'000}, std::size_t{1'000'000}, std::size_t{100'000'000}})
    benchmark::RegisterBenchmark(("W2/" + name + "/" + std::to_string(n)).c_str(), [=](benchmark::State& s) {
      step(s, n, arrays, policies...);
    })->Unit(benchmark::kMicrosecond);
}

// The same in 16 variables of n / 16 through one updater: "/tensors:16" after the name.
template <class Rule>
void add_small_tensors(const std::string& name, Rule rule) {
  for (const std::size_t n : {std::size_t{10'000}, std::size_t{1'000'000}, std::size_t{100'000'000}})
    benchmark::RegisterBenchmark(("W2/" + name + "/" + std::to_string(n) + "/tensors:16").c_str(), [=](benchmark::State&
                                                                                                           state) {
      constexpr std::size_t tensors = 16;
      gradus::updater u{rule};
      std::vector<std::vector<float>> w(tensors, numbers(n / tensors, 1)), g(tensors, numbers(n / tensors, 0.01f));
      std::vector<std::string> names;
      for (std::size_t i = 0; i < tensors; ++i) names.push_back("layer_" + std::to_string(i) + "/kernel");
      std::vector<gradus::named_gradient> gradients;
      for (std::size_t i = 0; i < tensors; ++i) {
        u.track(names[i], w[i]);
        gradients.emplace_back(names[i], g[i]);
      }
      for (auto _ : state) {
        u.apply(gradients);
        benchmark::ClobberMemory();
      }
      state.counters["ns_per_param"] =
          benchmark::Counter(static_cast<double>(state.iterations()) * static_cast<double>(n) * 1e-9,
                             benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
    })->Unit(benchmark::kMicrosecond);
}

// `flops`: of one step on an n x n matrix.
template <class Rule>
void add_matrix(const std::string& name, Rule rule, double (*flops)(double n)) {
  for (const std::int64_t n : {256, 1024, 4096})
    benchmark::RegisterBenchmark(("matrix/" + name + "/" + std::to_string(n)).c_str(), [=](benchmark::State& state) {
      gradus::updater u{rule};
      const auto count = static_cast<std::size_t>(n * n);
      auto w = numbers(count, 1);
      const auto g = numbers(count, 0.01f);
      u.track("w", gradus::tensor_view{gradus::float32, {n, n}, reinterpret_cast<std::byte*>(w.data())});
      u.apply({{"w", g}});  // the first step may be another (soap finds its bases)
      for (auto _ : state) {
        u.apply({{"w", g}});
        benchmark::ClobberMemory();
      }
      const double steps = static_cast<double>(state.iterations());
      state.counters["gflops"] =
          benchmark::Counter(steps * flops(static_cast<double>(n)) * 1e-9, benchmark::Counter::kIsRate);
      state.counters["ns_per_param"] = benchmark::Counter(steps * static_cast<double>(n * n) * 1e-9,
                                                          benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
    })->Unit(benchmark::kMillisecond);
}

const bool registered = [] {
  using namespace gradus;
  add("sgd", 3, gradient_descent{.rate = 1e-3});
  add("momentum", 5, momentum{.rate = 1e-3});
  add("adagrad", 5, adagrad{.rate = 1e-3});
  add("adam", 7, adam{.rate = 1e-3});
  add_small_tensors("adam", adam{.rate = 1e-3});
  benchmark::RegisterBenchmark("approximate/W2/adam/10000", [](benchmark::State& state) {
    updater<cpu<approximate>, adam> u{adam{.rate = 1e-3}};
    run(state, u, 10'000, 7);
  })->Unit(benchmark::kMicrosecond);
  add("adamw", 7, adamw{.rate = 1e-3});
  add("rmsprop", 7, rmsprop{.rate = 1e-3});
  add("adagrad_da", 6, adagrad_da{.rate = 1e-3});
  add("adadelta", 7, adadelta{.rate = 1e-3});
  add("ftrl", 7, ftrl{.rate = 1e-3});
  add("proximal_gradient_descent", 3, proximal_gradient_descent{.rate = 1e-3});
  add("proximal_adagrad", 5, proximal_adagrad{.rate = 1e-3});
  add("nadam", 7, nadam{.rate = 1e-3});
  add("adamax", 7, adamax{.rate = 1e-3});
  add("amsgrad", 9, amsgrad{.rate = 1e-3});
  add("add_sign", 5, add_sign{.rate = 1e-3});
  add("power_sign", 5, power_sign{.rate = 1e-3});
  add("lion", 5, lion{.rate = 1e-4});
  add("sophia", 6, sophia{.rate = 1e-4});
  add("schedule_free_adamw", 9, schedule_free_adamw{.rate = 1e-3});
  add("lars", 7, lars{.rate = 1e-3});
  add("lamb", 11, lamb{.rate = 1e-3});
  // Adam with what often stands beside it: two reads of g (the norm, the step), one sweep of all else
  add("adam_clip", 8, adam{.rate = 1e-3}, clip_by_global_norm{1.0});
  add("adam_clip_ema", 10, adam{.rate = 1e-3}, clip_by_global_norm{1.0}, exponential_moving_average{.decay = 0.999});
  add("adam_decay_clip_ema_chain", 10, chain{clip_by_global_norm{1.0}, weight_decay{0.01}, adam{.rate = 1e-3}},
      exponential_moving_average{.decay = 0.999});
  add_matrix("adafactor", adafactor{.rate = 1e-3}, [](double n) { return 12 * n * n; });
  add_matrix("muon", muon{.rate = 1e-3}, [](double n) { return 5 * 6 * n * n * n; });  // three products an iteration
  // a step in the basis: four products, two more for the statistics; every tenth step two products and two QR
  add_matrix("soap", soap{.rate = 1e-3}, [](double n) { return (6 + (2 + 2 * 4.0 / 3 + 2) / 10) * 2 * n * n * n; });
  return true;
}();

}  // namespace
