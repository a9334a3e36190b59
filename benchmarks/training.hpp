// What benchmarks of whole training steps share: batches kept outside the model, and the
// measured loop: feed a batch, gradients, update.
#pragma once
#include <benchmark/benchmark.h>

#include <gradus/cpu/device.hpp>
#include <gradus/run/stepper.hpp>

#include <cstring>
#include <string>
#include <vector>

namespace training {

using namespace gradus;

// Inputs in [0, 1), the same for every run.
struct stream {
  std::uint64_t state = 0x9E3779B97F4A7C15u;
  std::uint32_t next() {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return static_cast<std::uint32_t>(state >> 40);
  }
};

// 64 batches of what the model asks for, kept outside it: a step reads one in place, or a copy of it where it is small,
// as an input pipeline does.
struct batches {
  struct column {
    int node;
    std::byte* own;
    std::size_t bytes, apart;
    aligned_buffer all;
  };
  static constexpr std::size_t count = 64, small = 256;
  step_machine* to;
  std::vector<column> columns;
  std::size_t at = 0;

  template <class Stepper>
  batches(Stepper& s, step_machine& m, std::int64_t batch_size, std::uint32_t classes) : to(&m) {
    stream random;
    s.template placeholders<mode::train>([&](const placeholder_info& p) {
      const auto values = static_cast<std::size_t>(gradus::count(resolve(p.dims, batch_size)));
      column c{p.node, m.address(p.node), values * 4, align_up(values * 4), {}};
      c.all = aligned_buffer(c.apart * count);
      for (std::size_t i = 0; i < values * count; ++i) {
        const float real = static_cast<float>(random.next()) * 0x1p-24f;
        const auto label = static_cast<std::int32_t>(random.next() % classes);
        std::byte* const here = c.all.data() + i / values * c.apart + i % values * 4;
        if (p.type == int32)
          std::memcpy(here, &label, 4);
        else
          std::memcpy(here, &real, 4);
      }
      columns.push_back(std::move(c));
    });
  }
  void feed() {
    for (column& c : columns) {
      const std::byte* const next = c.all.data() + at * c.apart;
      if (c.bytes < small)
        std::memcpy(c.own, next, c.bytes);
      else
        to->lend(c.node, {next, c.bytes});
    }
    at = (at + 1) % count;
  }
};

// What a step does with subnormal numbers belongs to its name: `compare` runs the peers in the same way.
template <class Subnormals = subnormals::flush>
std::string named(const char* workload) {
  return std::string(workload) + (Subnormals::mode == subnormal_mode::flush ? "/subnormals:flush" : "/subnormals:keep");
}
template <class Subnormals = subnormals::flush, class F>
auto* add(const char* workload, F run) {
  return benchmark::RegisterBenchmark(named<Subnormals>(workload).c_str(), run);
}

template <class Subnormals = subnormals::flush, class Model, class Optimizer>
void steps(benchmark::State& state, Model model, Optimizer optimizer, std::int64_t batch_size, std::uint32_t classes) {
  const subnormal_scope here(Subnormals::mode);  // so that no step has to change it
  stepper<Model, decltype(composed{optimizer}), cpu<fast>, serial, Subnormals> s(std::move(model), composed{optimizer});
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
  state.SetLabel(std::to_string(machine.call_count()) + " calls");
}

template <auto Build>
using compiled = compiled_model<Build, cpu<fast>, gating::op, false, true>;
using interpreted = interpreted_model<cpu<fast>, ops<>, gating::op, false, true>;

}  // namespace training
