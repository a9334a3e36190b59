// costs: 200
// Estimators with a model function as tasks of a synchronous cluster in virtual time, under drawn faults: a task that
// is started again skips the batches that it has contributed, so the run ends with the bits of one that nobody
// disturbed. A failure prints its seed.
#include <gradus/cluster/any_strategy.hpp>
#include <gradus/cluster/simulated.hpp>
#include <gradus/estimator/checkpoint_values.hpp>
#include <gradus/estimator/estimator_input_hook.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/update/rules/adam.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "../estimator/linear_model.hpp"
#include "../message.hpp"

namespace {
using namespace gradus;
using testing::temp_dir;

std::uint64_t seeds() { return std::getenv("GRADUS_LONG") != nullptr ? 500 : 12; }
constexpr int steps = 14, examples = 44;

struct points {
  std::vector<float> x, y;
  points() {
    for (int i = 0; i < examples; ++i) {
      x.push_back(0.1f * static_cast<float>(i * 7 % 31) - 1.5f);
      y.push_back(2 * x.back() + 1 + 0.3f * static_cast<float>(i % 5));
    }
  }
};
const points all_points;
// Batches of two, in an order of their own in each pass.
auto data() { return from_spans("x", all_points.x, extents{}, "y", all_points.y).shuffle(10, 5).batch(2); }

struct line_now {
  float w = 0, b = 0;
  bool operator==(const line_now&) const = default;
};
line_now line_in(const std::string& dir) {
  estimator e([](const named_tensors& f, value y, mode m) { return line::model(f, y, m); }, {.model_dir = dir});
  CHECK(e.get_variable_value("global_step").as<std::int64_t>()[0] == steps);
  return {e.get_variable_value("w").as<float>()[0], e.get_variable_value("b").as<float>()[0]};
}

run_config config_of(const server& here, const std::string& dir) {
  const auto tasks_of = [](std::string_view job, int n) {
    std::string s;
    for (int i = 0; i < n; ++i) s += text(i == 0 ? "" : ", ", '"', job, i, '"');
    return s;
  };
  return run_config::from_tf_config(
      text(R"({"cluster": {"chief": ["c"])",
           here.shards() != 0 ? text(R"(, "ps": [)", tasks_of("p", here.shards()), "]") : "",
           here.workers() > 1 ? text(R"(, "worker": [)", tasks_of("w", here.workers() - 1), "]") : "",
           R"(}, "task": {"type": ")", here.is_chief() ? "chief" : "worker", R"(", "index": )",
           here.is_chief() ? 0 : here.worker() - 1, "}}"),
      {.model_dir = dir, .save_summary_steps = none, .save_checkpoints_steps = 4, .log_step_count_steps = none});
}
// Trains as a task: `calls` calls of train, with the hook if there are several.
template <class... Policies>
void work(const server& here, const std::string& dir, int calls, const Policies&... policies) {
  estimator e(
      [&](const named_tensors& features, value labels, mode m) {
        estimator_spec spec = line::model(features, labels, m);
        optimizer opt(policies..., adam{.rate = 0.05});
        if (m == mode::train)
          spec.train_op = opt.minimize(spec.loss, {.global_step = get_global_step(features.of())}),
          spec.optimizers = opt;
        return spec;
      },
      {.config = config_of(here, dir), .tasks = here.tasks()});
  const auto input = [&] { return labelled(data().repeat().shard(here.workers(), here.worker()), {"y"}); };
  for (int k = 1; k <= calls; ++k) {
    estimator_train_options o{.max_steps = k == calls ? steps : 2 * k};  // faults are drawn for all of the run
    if (calls > 1) o.hooks.push_back(estimator_input_hook(e));
    e.train(input, o);
  }
}
// One way to train: with how many parameter servers, how the updates are ordered, and what a lost server means.
template <class Program>
simulated_counts same_bits(int ps, const Program& program) {
  const temp_dir place;
  constexpr int sizes[] = {1, 2, 3};
  std::vector<line_now> undisturbed;
  for (const int workers : sizes) {
    const std::string dir = place / text("one-", workers);
    simulated{.seed = 1, .ps = ps, .workers = workers}.run([&](server& here) { program(here, dir); });
    undisturbed.push_back(line_in(dir));
  }
  CHECK_FALSE(undisturbed[1] == undisturbed[2]);
  simulated_counts sum;
  for (std::uint64_t seed = 0; seed < seeds(); ++seed) {
    CAPTURE(seed);
    const std::string dir = place / text("run-", seed);
    simulated c{
        .seed = seed, .ps = ps, .workers = sizes[seed % 3], .faults = simulated_faults::drawn(seed), .most_secs = 600};
    c.faults.crashes += 2, c.faults.within = 3;
    const auto counts = c.run([&](server& here) { program(here, dir); }).counts;
    CHECK(line_in(dir) == undisturbed[seed % 3]);
    sum.crashes += counts.crashes, sum.ps_crashes += counts.ps_crashes;
  }
  return sum;
}
}  // namespace

TEST_CASE("parameter servers with a log: the bits of a run that nobody disturbed") {
  const auto counts = same_bits(2, [](server& here, const std::string& dir) {
    if (here.is_ps()) return here.join();
    work(here, dir, 1, connected{here}, sync_replicas{}, recovery::log{.directory = dir + "-logs"});
  });
  CHECK(counts.crashes > seeds());
  CHECK(counts.ps_crashes > 0);
}
TEST_CASE("two gradients of each worker in an update, and servers that roll back: the same bits") {
  const auto counts = same_bits(1, [](server& here, const std::string& dir) {
    if (here.is_ps()) return here.join();
    work(here, dir, 1, connected{here}, sync_replicas{.replicas_to_aggregate = 2 * here.workers()});
  });
  CHECK(counts.crashes > seeds());
}
TEST_CASE("without parameter servers: the same bits") {
  const auto counts =
      same_bits(0, [](server& here, const std::string& dir) { work(here, dir, 1, connected{here}, all_reduce{}); });
  CHECK(counts.crashes > seeds());
}
TEST_CASE("several calls of train with estimator_input_hook: the same bits") {
  const auto counts =
      same_bits(0, [](server& here, const std::string& dir) { work(here, dir, 2, connected{here}, all_reduce{}); });
  CHECK(counts.crashes > seeds());
}
TEST_CASE("a strategy that is chosen when the program runs: the bits of the policy that it names") {
  for (const int ps : {0, 1}) {
    CAPTURE(ps);
    same_bits(ps, [](server& here, const std::string& dir) {
      if (here.is_ps()) return here.join();
      const bool has_ps = here.shards() != 0;
      if (dir.find("/run-") != std::string::npos)
        work(here, dir, 1, connected{here}, has_ps ? any_strategy{sync_replicas{}} : any_strategy{all_reduce{}});
      else if (has_ps)
        work(here, dir, 1, connected{here}, sync_replicas{});
      else
        work(here, dir, 1, connected{here}, all_reduce{});
    });
  }
}
TEST_CASE("an input that ends before what was contributed does says so; from its beginning it trains again") {
  const temp_dir place;
  const std::string dir = place / "run";
  const auto train = [&](saved_input how) {
    std::string said;
    simulated{.seed = 1, .ps = 1, .workers = 1}.run([&](server& here) {
      if (here.is_ps()) return here.join();
      run_config c = config_of(here, dir);
      c.restore_input = how;
      estimator e(
          [&](const named_tensors& features, value labels, mode m) {
            estimator_spec spec = line::model(features, labels, m);
            optimizer opt(connected{here}, sync_replicas{}, adam{.rate = 0.05});
            if (m == mode::train)
              spec.train_op = opt.minimize(spec.loss, {.global_step = get_global_step(features.of())}),
              spec.optimizers = opt;
            return spec;
          },
          {.config = c, .log = [&](const std::string& line) { said += line + '\n'; }, .tasks = here.tasks()});
      e.train([] { return labelled(data(), {"y"}); });
    });
    return said;
  };
  constexpr int epoch = examples / 2;
  CHECK_FALSE(says(train(saved_input::required), "no steps"));
  CHECK(detail::step_in_directory(dir) == epoch);
  const std::string again = train(saved_input::required);
  CHECK(says(again, text("made no steps: this task skipped the ", epoch, " batches that it has contributed already")));
  CHECK(says(again, "saved_input::ignored"));
  CHECK(detail::step_in_directory(dir) == epoch);
  CHECK_FALSE(says(train(saved_input::ignored), "no steps"));
  CHECK(detail::step_in_directory(dir) == 2 * epoch);
}
