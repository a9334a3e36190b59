// Runs of a session: by one thread, by two threads of one session with the same fetches, and by two threads of a
// session each, which is what the processors give together. The argument is the width of the product.
#include <benchmark/benchmark.h>

#include <gradus/cpu/device.hpp>
#include <gradus/ops/matmul.hpp>
#include <gradus/run/session.hpp>

#include <array>
#include <memory>
#include <vector>

namespace {

using namespace gradus;

struct product {
  graph g;
  value y;
  std::vector<float> data = std::vector<float>(16 * 8, 0.5F);
  std::unique_ptr<session<>> runs;
  explicit product(int width) {
    const value x = g.placeholder("x", {batch, 8}), w = g.variable("w", {8, width});
    y = matmul(x, w);
    runs = std::make_unique<session<>>(g);
    runs->initialize(1);
  }
  void run() { benchmark::DoNotOptimize(runs->run(y, {{"x", data}}).data); }
};

std::array<std::unique_ptr<product>, 2> made;

void make(const benchmark::State& state) {
  for (auto& p : made) p = std::make_unique<product>(static_cast<int>(state.range(0)));
}
void drop(const benchmark::State&) {
  for (auto& p : made) p.reset();
}

void one_session(benchmark::State& state) {
  for (auto _ : state) made[0]->run();
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(one_session)->Arg(16)->Arg(128)->Setup(make)->Teardown(drop)->Threads(1)->Threads(2)->UseRealTime();

void a_session_each(benchmark::State& state) {
  for (auto _ : state) made[static_cast<std::size_t>(state.thread_index())]->run();
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(a_session_each)->Arg(16)->Arg(128)->Setup(make)->Teardown(drop)->Threads(2)->UseRealTime();

}  // namespace
