// Steps of an estimator, of a trainer, and of a bare stepper on the same model and input: W3c (784-128-10, batch 32,
// SGD). An estimator of a model_fn is interpreted, one of make_estimator<model> is compiled; estimators and trainers
// call the hooks that a chief has by default, a stepper calls none. Seconds a step, by the processor's clock of the
// thread that trains, between the 100th step and the last.
#include "training.hpp"

#include <gradus/data.hpp>
#include <gradus/estimator.hpp>
#include <gradus/estimator/compiled_estimator.hpp>
#include <gradus/gradus.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <time.h>
#include <algorithm>
#include <vector>

namespace {

using namespace training;

constexpr int rows = 64 * 32, steps_before = 100, steps_timed = 2000;

constexpr value loss_of(value x, value y) {
  const auto h = relu(dense(x, {.units = 128, .name = "hidden"}));
  return reduce_mean(sparse_softmax_cross_entropy(dense(h, {.units = 10, .name = "out"}), y));
}
constexpr auto c = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 784}), y = g.placeholder("y", {batch}, int32);
  return model_spec{.loss = loss_of(x, y)};
};
const auto by_program = [](graph& g) { return c(g); };
const gradient_descent descent{.rate = 1e-2};

struct digits {
  std::vector<float> x;
  std::vector<std::int32_t> y;
  digits() {
    stream random;
    for (int i = 0; i < rows * 784; ++i) x.push_back(static_cast<float>(random.next()) * 0x1p-24F);
    for (int i = 0; i < rows; ++i) y.push_back(static_cast<std::int32_t>(random.next() % 10));
  }
  auto batches() const { return from_spans("x", x, extents{784}, "y", y).repeat().batch(32); }
};
const digits& drawn() {
  static const digits once;
  return once;
}

double processor_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
// Reads the clock behind two steps of a run.
struct watch {
  using policy_for = kind::hook;
  double* began;
  double* ended;
  int steps = 0;
  void after_run(run_context&, const run_values&) { step_done(); }
  void step_done() {
    if (++steps == steps_before) *began = processor_seconds();
    if (steps == steps_before + steps_timed) *ended = processor_seconds();
  }
};
double least(const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()); }

template <class Train>
void measure(benchmark::State& state, Train train) {
  for (auto _ : state) {
    const testing::temp_dir place;
    double began = 0, ended = 0;
    train(place / "run", watch{&began, &ended});
    state.SetIterationTime((ended - began) / steps_timed);
  }
}
void settle(benchmark::internal::Benchmark* b) {
  b->UseManualTime()->Iterations(1)->Unit(benchmark::kMicrosecond)->ComputeStatistics("least", least);
}

// The step by itself on the same dataset, which is what a trainer and an estimator begin with.
template <class Model, class... Build>
void step_on_the_dataset(benchmark::State& state, const Build&... build) {
  measure(state, [&](const std::string&, watch w) {
    const subnormal_scope here(subnormal_mode::flush);
    stepper<Model, decltype(composed{descent}), cpu<fast>, serial, subnormals::flush> s(Model{build...},
                                                                                        composed{descent});
    s.allocate();
    s.initialize(1);
    auto batches = drawn().batches();
    auto feeds = detail::match_feeds<mode::train>(s, batches);
    for (int i = 0; i < steps_before + steps_timed; ++i) {
      detail::fill_feeds<mode::train>(s, batches, feeds);
      s.train_step();
      w.step_done();
    }
  });
}
void stepper_compiled(benchmark::State& state) { step_on_the_dataset<compiled<c>>(state); }
BENCHMARK(stepper_compiled)->Apply(settle);
void stepper_interpreted(benchmark::State& state) { step_on_the_dataset<interpreted>(state, by_program); }
BENCHMARK(stepper_interpreted)->Apply(settle);

void trainer_compiled(benchmark::State& state) {
  measure(state, [](const std::string& dir, const watch& w) {
    auto batches = drawn().batches();
    make_trainer<c>(descent, run_config{.model_dir = dir}, w).train(batches, {.max_steps = steps_before + steps_timed});
  });
}
BENCHMARK(trainer_compiled)->Apply(settle);

void trainer_interpreted(benchmark::State& state) {
  measure(state, [](const std::string& dir, const watch& w) {
    auto batches = drawn().batches();
    make_trainer(by_program, descent, run_config{.model_dir = dir}, w)
        .train(batches, {.max_steps = steps_before + steps_timed});
  });
}
BENCHMARK(trainer_interpreted)->Apply(settle);

void estimator_compiled(benchmark::State& state) {
  measure(state, [](const std::string& dir, const watch& w) {
    make_estimator<c>(descent, run_config{.model_dir = dir})
        .train([] { return drawn().batches(); }, {.max_steps = steps_before + steps_timed, .hooks = {w}});
  });
}
BENCHMARK(estimator_compiled)->Apply(settle);

void estimator_interpreted(benchmark::State& state) {
  measure(state, [](const std::string& dir, const watch& w) {
    estimator model(
        [](const named_tensors& features, value y, gradus::mode m) -> estimator_spec {
          const value loss = loss_of(features["x"], y);
          optimizer opt{descent};
          return {.mode = m,
                  .loss = loss,
                  .train_op = opt.minimize(loss, {.global_step = get_global_step(*loss.g)}),
                  .optimizers = {opt}};
        },
        {.model_dir = dir});
    model.train([] { return labelled(drawn().batches(), {"y"}); },
                {.max_steps = steps_before + steps_timed, .hooks = {w}});
  });
}
BENCHMARK(estimator_interpreted)->Apply(settle);

}  // namespace
