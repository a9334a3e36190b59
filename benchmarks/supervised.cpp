// What a run costs beside its steps: the step of W3a by itself, and the same step in a managed session of a supervisor
// with all services of a chief (restored or initialized, checkpoints, summaries, steps per second, the look for NaN),
// on the same feeds. --benchmark_repetitions=N --benchmark_enable_random_interleaving=true, and the difference of the
// medians, or of the least where the machine is busy.
#include "training.hpp"

#include <gradus/codecs.hpp>
#include <gradus/gradus.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/supervisor.hpp>

#include <algorithm>
#include <vector>

namespace {

using namespace training;

constexpr auto a = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 8}), y = g.placeholder("y", {batch, 1});
  const auto h = relu(dense(x, {.units = 16, .name = "hidden"}));
  return model_spec{.loss = reduce_mean(square(dense(h, {.units = 1, .name = "out"}) - y))};
};
const gradient_descent slow{.rate = 1e-3};
const std::vector<float> xs = [] {
  stream random;
  std::vector<float> all(8);
  for (float& v : all) v = static_cast<float>(random.next()) * 0x1p-24F;
  return all;
}();
const std::vector<float> ys{0.5F};

double least(const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()); }

// The step by itself: feeds are looked up by name once and copied, as a supervised step does.
void bare_step(benchmark::State& state) {
  const subnormal_scope here(subnormal_mode::flush);
  stepper<compiled<a>, decltype(composed{slow}), cpu<fast>, serial, subnormals::flush> s(compiled<a>{}, composed{slow});
  s.allocate();
  s.initialize(1);
  auto& machine = s.bound<mode::train>(1);
  std::byte *x = nullptr, *y = nullptr;
  s.placeholders<mode::train>([&](const placeholder_info& p) { (p.name == "x" ? x : y) = machine.address(p.node); });
  for (auto _ : state) {
    std::memcpy(x, xs.data(), 32), std::memcpy(y, ys.data(), 4);
    s.train_step();
  }
}
BENCHMARK(bare_step)->ComputeStatistics("least", least);

// The input is a dataset, as `sess.run()` takes it.
void supervised_step(benchmark::State& state) {
  const testing::temp_dir place;
  auto sv = make_supervisor<a>({.logdir = place / "run"}, slow);
  auto data = from_spans("x", xs, extents{8}, "y", ys, extents{1}).repeat().batch(1);
  auto sess = sv.managed_session("", data);
  for (int i = 0; i < 1000; ++i) sess.run();
  for (auto _ : state) sess.run();
}
BENCHMARK(supervised_step)->ComputeStatistics("least", least);

// The same, the feeds given by name.
void supervised_step_by_name(benchmark::State& state) {
  const testing::temp_dir place;
  auto sv = make_supervisor<a>({.logdir = place / "run"}, slow);
  auto sess = sv.managed_session();
  for (auto _ : state) sess.run({{"x", xs}, {"y", ys}});
}
BENCHMARK(supervised_step_by_name)->ComputeStatistics("least", least);

// The bare step on the dataset: what remains is the run loop.
void step_on_a_dataset(benchmark::State& state) {
  const subnormal_scope here(subnormal_mode::flush);
  stepper<compiled<a>, decltype(composed{slow}), cpu<fast>, serial, subnormals::flush> s(compiled<a>{}, composed{slow});
  s.allocate();
  s.initialize(1);
  auto data = from_spans("x", xs, extents{8}, "y", ys, extents{1}).repeat().batch(1);
  auto feeds = detail::match_feeds<mode::train>(s, data);
  for (auto _ : state) {
    detail::fill_feeds<mode::train>(s, data, feeds);
    s.train_step();
  }
}
BENCHMARK(step_on_a_dataset)->ComputeStatistics("least", least);

}  // namespace
