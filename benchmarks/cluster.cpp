// A cluster of threads: two workers on W3d beside two trainers that know nothing of each other, and what it takes until
// 4 MB of gradients are 4 MB of new values, beside the update alone. And what a log of the parameter server costs.
//
//   bench_cluster --benchmark_repetitions=5 --benchmark_enable_random_interleaving=true
//
// Both need two processors that nobody else works on.
#include <benchmark/benchmark.h>

#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/local_cluster.hpp>
#include <gradus/cluster/recovery.hpp>
#include <gradus/gradus.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "training.hpp"

namespace {

using namespace gradus;

constexpr auto w3d = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 784}), y = g.placeholder("y", {batch}, int32);
  auto h = relu(dense(x, {.units = 512, .name = "first"}));
  h = relu(dense(h, {.units = 256, .name = "second"}));
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(dense(h, {.units = 10, .name = "out"}), y))};
};
constexpr std::int64_t batch_size = 128, steps = 100;

struct examples {
  std::vector<float> x;
  std::vector<std::int32_t> y;
  examples() {
    training::stream random;
    for (int i = 0; i < 10 * batch_size; ++i) {
      for (int k = 0; k < 784; ++k) x.push_back(static_cast<float>(random.next()) * 0x1p-24F);
      y.push_back(static_cast<std::int32_t>(random.next() % 10));
    }
  }
  auto batches() const { return from_spans("x", x, extents{784}, "y", y, extents{}).repeat().batch(batch_size); }
};

void w3d_two_apart(benchmark::State& state) {
  const examples data;
  for (auto _ : state) {
    const auto train = [&] {
      auto t = make_trainer<w3d>(adam{});
      t.train(data.batches(), {.max_steps = steps});
    };
    std::thread other(train);
    train();
    other.join();
  }
  state.SetItemsProcessed(state.iterations() * 2 * steps * batch_size);
}
BENCHMARK(w3d_two_apart)->UseRealTime()->Unit(benchmark::kMillisecond);

template <class Staleness>
void w3d_two_workers(benchmark::State& state) {
  const examples data;
  for (auto _ : state)
    local_cluster{.ps = static_cast<int>(state.range(0)), .workers = 2}.run([&](server& here) {
      if (here.is_ps()) return here.join();
      auto t = make_trainer<w3d>(connected{here}, Staleness{}, adam{});
      t.train(data.batches().shard(here.workers(), here.worker()),
              {.max_steps = std::is_same_v<Staleness, asynchronous> ? 2 * steps : steps});
    });
  state.SetItemsProcessed(state.iterations() * 2 * steps * batch_size);
}
BENCHMARK(w3d_two_workers<sync_replicas>)->ArgName("ps")->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(w3d_two_workers<asynchronous>)->ArgName("ps")->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

// ---- 1 MB of parameters: what it takes to write down what is acknowledged
constexpr auto one_megabyte = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 784}), y = g.placeholder("y", {batch}, int32);
  const auto h = relu(dense(x, {.units = 330, .name = "hidden"}));
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(dense(h, {.units = 10, .name = "out"}), y))};
};
void megabyte_without_log(benchmark::State& state) {
  const examples data;
  for (auto _ : state)
    local_cluster{.ps = 1, .workers = 2}.run([&](server& here) {
      if (here.is_ps()) return here.join();
      auto t = make_trainer<one_megabyte>(connected{here}, sync_replicas{}, adam{});
      t.train(data.batches().shard(here.workers(), here.worker()), {.max_steps = steps});
    });
  state.SetItemsProcessed(state.iterations() * steps);
}
BENCHMARK(megabyte_without_log)->UseRealTime()->Unit(benchmark::kMillisecond);
// A folder of its own each time: one that has been there goes on where it was.
void megabyte_with_log(benchmark::State& state) {
  const examples data;
  for (auto _ : state) {
    state.PauseTiming();
    std::optional<testing::temp_dir> place(std::in_place);
    state.ResumeTiming();
    local_cluster{.ps = 1, .workers = 2}.run([&](server& here) {
      if (here.is_ps()) return here.join();
      auto t = make_trainer<one_megabyte>(connected{here}, sync_replicas{},
                                          recovery::log{.directory = *place / "logs", .durable = state.range(0) != 0},
                                          adam{});
      t.train(data.batches().shard(here.workers(), here.worker()), {.max_steps = steps});
    });
    state.PauseTiming();
    place.reset();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * steps);
}
BENCHMARK(megabyte_with_log)->ArgName("durable")->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);

// ---- 4 MB
constexpr std::size_t values_of_4_MB = std::size_t{1} << 20;

template <class Rule>
void update_of_4_MB_alone(benchmark::State& state) {
  std::vector<float> w(values_of_4_MB, 1), g(values_of_4_MB, 0.5F);
  updater u{Rule{.rate = 1e-6}};
  u.track("w", w);
  for (auto _ : state) u.apply({{"w", g}});
  state.SetBytesProcessed(state.iterations() * 4 * static_cast<std::int64_t>(values_of_4_MB));
}
BENCHMARK(update_of_4_MB_alone<gradient_descent>)->UseRealTime();
BENCHMARK(update_of_4_MB_alone<adam>)->UseRealTime();

struct copied_values final : detail::worker_told {
  std::vector<float> w = std::vector<float>(values_of_4_MB, 1);
  std::vector<std::vector<detail::wire_slice>> begins{{{"w", float32, 0, std::as_bytes(std::span(w))}}};
  void values(std::span<const detail::wire_slice> parts) override {
    for (const auto& s : parts)
      if (s.name == "w") std::memcpy(w.data(), s.bytes.data(), s.bytes.size());
  }
  std::span<const std::vector<detail::wire_slice>> state(std::uint64_t& order) override {
    order = 0;
    return begins;
  }
};

// A worker pushes, the shard stages and updates, the values come back: one thread each.
template <class Rule>
void update_of_4_MB_pushed(benchmark::State& state) {
  using namespace detail;
  using update_type = update_among<Rule>;
  using store_type = update_store<update_type, cpu<fast>>;
  const cluster_shape shape{1, 1};
  const task_system tasks;
  local_network network(shape, tasks);
  std::vector<store_variable> all{
      {.name = "w", .type = float32, .dims = {static_cast<std::int64_t>(values_of_4_MB)}, .shard = 0}};
  store_type store({.shard = 0, .variables = all, .divide_by = 1}, compose_update(Rule{.rate = 1e-6}));
  auto ps = tasks.start("a shard", "none", [&] {
    server_node<store_type>(network, {.number = 0, .shape = shape, .needs_begin = true},
                            decides_by(sync_replicas{}, shape), store)
        .run();
  });
  copied_values told;
  std::vector<float> g(values_of_4_MB, 0.5F);
  const std::vector<std::vector<wire_slice>> parts{{{"w", float32, 0, std::as_bytes(std::span(g))}}};
  {
    worker_node node(network, {.number = 0, .shape = shape, .begins = true}, told);
    node.start();
    node.wait_for_step();
    for (auto _ : state) {
      node.push(parts);
      node.wait_for_push();
      node.wait_for_step();
    }
    node.leave();
  }
  ps.join();
  state.SetBytesProcessed(state.iterations() * 4 * static_cast<std::int64_t>(values_of_4_MB));
}
BENCHMARK(update_of_4_MB_pushed<gradient_descent>)->UseRealTime();
BENCHMARK(update_of_4_MB_pushed<adam>)->UseRealTime();

// What the bytes alone cost: copied into the shard's memory, and the values into the message and out of it.
void copies_of_4_MB(benchmark::State& state) {
  std::vector<float> a(values_of_4_MB, 1), b(values_of_4_MB), c(values_of_4_MB), d(values_of_4_MB);
  for (auto _ : state) {
    std::memcpy(b.data(), a.data(), 4 * values_of_4_MB);
    std::memcpy(c.data(), b.data(), 4 * values_of_4_MB);
    std::memcpy(d.data(), c.data(), 4 * values_of_4_MB);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * 4 * static_cast<std::int64_t>(values_of_4_MB));
}
BENCHMARK(copies_of_4_MB)->UseRealTime();

}  // namespace
