// costs: 1800
// draws at compile time: which sizes of clusters a default run takes
// A synchronous cluster ends with the bits of one process, whatever carries its messages: in virtual time, with all
// faults that are drawn at once, and as tasks with networks of their own, over calls and over local_messages.
// (tests/whole/cluster_training.cpp has threads.) GRADUS_LONG takes every size, every model and 200 steps.
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/local_messages.hpp>
#include <gradus/cluster/remote_network.hpp>
#include <gradus/cluster/simulated.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <map>

#include "../cluster/loop_transport.hpp"
#include "../sanitized.hpp"
#include "../train/run_files.hpp"
#include "cluster_models.hpp"
#include "cluster_runs.hpp"

#ifndef GRADUS_DRAW
#define GRADUS_DRAW 1
#endif

namespace {
using namespace gradus;
using cluster_models::points;
using cluster_runs::trained;
using testing::temp_dir;

constexpr int round_batch = 24;
bool is_long() { return std::getenv("GRADUS_LONG") != nullptr; }
int steps() { return is_long() ? 200 : 20; }

run_config config_of(const std::string& dir) {
  run_config c = cluster_runs::config_of(dir);
  c.save_checkpoints_steps = is_long() ? 70 : 7;
  return c;
}
template <auto Model, class... Policies>
auto trainer(const std::string& dir, const Policies&... policies) {
  return make_trainer<Model>(policies..., adam{.rate = 0.01}, clip_by_global_norm{0.5},
                             exponential_moving_average{.decay = 0.9}, config_of(dir));
}
template <auto Model>
run_files::content alone(const std::string& dir, int parts) {
  const points data;
  trainer<Model>(dir, microbatch{parts}).train(data.batches(round_batch), {.max_steps = steps()});
  return trained(dir);
}
// The program of every task. `when` is sync_replicas or ssp.
template <auto Model, class When>
void task(server& here, const std::string& dir, const When& when) {
  if (here.is_ps()) return here.join();
  const points data;
  trainer<Model>(dir, connected{here}, when)
      .train(data.batches(round_batch / here.workers()).shard(here.workers(), here.worker()), {.max_steps = steps()});
  here.finish();
}

struct size {
  int workers = 0, ps = 0;
};
template <auto Model, class When>
run_files::content in_virtual_time(const std::string& dir, size n, const When& when) {
  const auto seed = static_cast<std::uint64_t>(100 * n.workers + n.ps);
  simulated{.seed = seed, .ps = n.ps, .workers = n.workers, .faults = simulated_faults::drawn(seed), .most_secs = 3600}
      .run([&](server& here) { task<Model>(here, dir, when); });
  return trained(dir);
}
template <auto Model, class When, class PolicyOf>
run_files::content over(const PolicyOf& policy_of, const std::string& dir, size n, const When& when) {
  std::vector<std::string> ps, workers;
  for (int i = 0; i < n.ps; ++i) ps.push_back(text("p", i, ":1"));
  for (int i = 0; i < n.workers; ++i) workers.push_back(text("w", i, ":1"));
  const cluster_spec all(std::map<std::string, std::vector<std::string>>{{"ps", ps}, {"worker", workers}});
  const auto said = loop::run_tasks_by(all, policy_of, [&](server& here) { task<Model>(here, dir, when); });
  for (const auto& [name, what] : said) CHECK_MESSAGE(what == "", name);
  return trained(dir);
}

// All sizes, or one with more than one worker.
std::vector<size> sizes(unsigned draw) {
  std::vector<size> all;
  for (const int workers : {1, 2, 4})
    for (const int ps : {1, 2, 3}) all.push_back({workers, ps});
  if (!is_long()) all = {all[3 + draw % 6]};
  return all;
}
template <auto Model, class When>
void same_bits(unsigned draw, const When& when) {
  const temp_dir place;
  std::map<int, run_files::content> expected;
  int runs = 0;
  for (const size n : sizes(draw)) {
    CAPTURE(n.workers);
    CAPTURE(n.ps);
    if (!expected.contains(n.workers)) expected[n.workers] = alone<Model>(place / text("alone-", n.workers), n.workers);
    const auto& one = expected[n.workers];
    CHECK(one.step == steps());
    const std::string dir = text(n.workers, "-", n.ps);
    CHECK(run_files::difference(in_virtual_time<Model>(place / ("v-" + dir), n, when), one) == "");
    loop::hub h;
    const auto by_calls = [&](const std::string& name) { return loop::looped{&h, name}; };
    const auto by_messages = [](const std::string&) { return local_messages{}; };
    CHECK(run_files::difference(over<Model>(by_calls, place / ("c-" + dir), n, when), one) == "");
    CHECK(run_files::difference(over<Model>(by_messages, place / ("m-" + dir), n, when), one) == "");
    runs += 3;
  }
  MESSAGE(runs << " clusters, " << steps() << " steps each");
}
}  // namespace

TEST_CASE("in virtual time and over calls a synchronous cluster has the bits of one process: a perceptron") {
  same_bits<cluster_models::mlp>(GRADUS_DRAW, sync_replicas{});
}
TEST_CASE("ssp{0} has the bits of the synchronous round") { same_bits<cluster_models::mlp>(GRADUS_DRAW / 6, ssp{0}); }
// Under a sanitizer these two take long, and run the same code of the cluster.
TEST_CASE("in virtual time and over calls: convolutions" * doctest::skip(is_sanitized)) {
  same_bits<cluster_models::lenet>(GRADUS_DRAW / 36, sync_replicas{});
}
TEST_CASE("in virtual time and over calls: attention" * doctest::skip(is_sanitized)) {
  same_bits<cluster_models::gpt>(GRADUS_DRAW / 216, sync_replicas{});
}
