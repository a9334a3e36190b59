// Tasks of a cluster whose sessions have graphs of their own: how tests train by them, and what one process leaves
// behind from the same examples.
#pragma once
#include <gradus/cluster/all_reduce.hpp>
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/local_cluster.hpp>
#include <gradus/cluster/recovery.hpp>
#include <gradus/cpu/device.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/run/session.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/hooks/stop_at_step_hook.hpp>
#include <gradus/train/monitored_training_session.hpp>
#include <gradus/train/trainer.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "../train/run_files.hpp"
#include "cluster_models.hpp"
#include "cluster_runs.hpp"

namespace session_tasks {
using namespace gradus;
using cluster_models::points;
using cluster_runs::config_of;

inline constexpr int round_batch = 12;

// The examples that a dataset's batches of `size` examples have, fed by hand.
struct fed_points {
  points all;
  std::vector<float> x;
  std::vector<std::int32_t> y;
  void take(std::int64_t number, int size) {
    x.clear(), y.clear();
    for (int i = 0; i < size; ++i) {
      const auto at = static_cast<std::size_t>((number * size + i) % cluster_models::examples);
      x.insert(x.end(), all.x.begin() + static_cast<std::ptrdiff_t>(at * 13),
               all.x.begin() + static_cast<std::ptrdiff_t>(at * 13 + 13));
      y.push_back(all.y[at]);
    }
  }
};

// Numbers from which each update subtracts 1/8: no rounding, so they tell how many were made.
inline constexpr auto counter = [](graph& g) {
  const value w = g.variable("w", {2}, {.init = zeros});
  return model_spec{.loss = reduce_sum(w)};
};
inline const gradient_descent an_eighth{0.125};

// The graph of one task, and its session's policies.
template <class Model, class... Policies>
struct task_graph {
  graph g;
  value loss, step, train, init;
  optimizer<default_device, connected, Policies...> opt;
  task_graph(const Model& model, const connected& to, const Policies&... policies)
      : loss(model(g).loss), step(create_global_step(g)), opt(to, policies...) {
    train = opt.minimize(loss, {.global_step = step});
    init = global_variables_initializer(g, 7);
  }
};
template <class Model, class... Policies>
void by_session(const Model& model, const connected& to, const server& here, const std::string& dir, std::int64_t steps,
                const Policies&... policies) {
  task_graph<Model, Policies...> t(model, to, policies...);
  monitored_training_session sess(t.g, sessions_of(t.g, t.opt),
                                  {.is_chief = here.is_chief(),
                                   .checkpoint_dir = dir,
                                   .parts = {.init_op = t.init},
                                   .hooks = {stop_at_step_hook({.last_step = steps})},
                                   .save_checkpoint_steps = 5,
                                   .log_step_count_steps = 0,
                                   .tasks = here.tasks()});
  fed_points data;
  sess.within([&] {
    while (!sess.should_stop()) {
      data.take(gradus::global_step(*sess.raw_session(), t.step) * here.workers() + here.worker(),
                round_batch / here.workers());
      sess.run(t.train, {{"x", data.x}, {"y", data.y}});
    }
  });
}
template <class Model, class... Policies>
void together(const Model& model, int ps, int workers, const std::string& dir, std::int64_t steps,
              const Policies&... policies) {
  local_cluster{.ps = ps, .workers = workers}.run([&](server& here) {
    if (here.is_ps()) return here.join();
    by_session(model, connected{here}, here, dir, steps, policies...);
  });
}
// One process, which has the batch of a round in as many parts as there are workers.
template <auto Model, class... Policies>
run_files::content alone(const std::string& dir, int parts, std::int64_t steps, const Policies&... policies) {
  const points data;
  auto t = make_trainer(Model, policies..., microbatch{parts}, config_of(dir));
  t.train(data.batches(round_batch), {.max_steps = steps});
  return cluster_runs::trained(dir);
}
inline run_files::content of_sessions(const std::string& dir) {
  auto c = cluster_runs::trained(dir);
  std::erase_if(c.records, [](const auto& r) { return r.first.starts_with("session/"); });
  return c;
}
// Each example has letters, whose rows of a table get gradients of rows.
inline constexpr auto letters = [](graph& g) {
  const value x = g.placeholder("x", {batch, 13}), y = g.placeholder("y", {batch}, int32);
  const value ids = cast(x * 3.0 + 3.5, int32);
  const value words = flatten(embedding(ids, {.input_dim = 8, .output_dim = 6}));
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(dense(words, {.units = 5}), y))};
};

// Calls f with the policy of a synchronous training: without parameter servers workers sum their gradients.
template <class F>
void with_sums(int ps, F f) {
  if (ps == 0)
    f(all_reduce{});
  else
    f(sync_replicas{});
}
// Synchronous sessions end with the bits of one process.
template <auto Model, class... Policies>
void same_bits(int ps, int workers, const Policies&... policies) {
  CAPTURE(ps);
  CAPTURE(workers);
  CAPTURE(detail::name_of_type<std::tuple<Policies...>>());
  const testing::temp_dir place;
  with_sums(ps, [&](auto how) { together(Model, ps, workers, place / "many", 23, how, policies...); });
  const auto many = of_sessions(place / "many");
  CHECK(many.step == 23);
  CHECK(run_files::difference(many, alone<Model>(place / "one", workers, 23, policies...)) == "");
}
// Where gradients come as rows, microbatches add them otherwise: the trainers of a cluster are what has the same bits.
template <auto Model, class... Policies>
void bits_of_trainers(int ps, int workers, const Policies&... policies) {
  CAPTURE(ps);
  CAPTURE(workers);
  const testing::temp_dir place;
  with_sums(ps, [&](auto how) {
    together(Model, ps, workers, place / "many", 23, how, policies...);
    local_cluster{.ps = ps, .workers = workers}.run([&](server& here) {
      if (here.is_ps()) return here.join();
      auto t = make_trainer(Model, connected{here}, how, policies..., config_of(place / "trainers"));
      t.train(points().batches(round_batch / workers).shard(workers, here.worker()), {.max_steps = 23});
    });
  });
  CHECK(run_files::difference(of_sessions(place / "many"), cluster_runs::trained(place / "trainers")) == "");
}

}  // namespace session_tasks
