// costs: 300
// Variables that are cut over parameter servers: a cluster, on threads and in virtual time, ends with the bits of one
// process, its checkpoint opens with any other cut, and its logs bring the parts back.
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/local_cluster.hpp>
#include <gradus/cluster/simulated.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "../train/run_files.hpp"
#include "cluster_models.hpp"
#include "cluster_runs.hpp"

namespace {
using namespace gradus;
using cluster_models::points;
using cluster_runs::trained;
using testing::temp_dir;

// Blocks of 4096 values begin at every eighth row of "wide" and at every 4096th of "long". Two parts of "wide" begin at
// the rows 0 and 24 (in place of 20), three at 0, 16 and 24 (14 and 27); of "long" both make two. All else is too small
// for a cut.
constexpr auto model = [](graph& g) {
  const value x = g.placeholder("x", {batch, 13}), y = g.placeholder("y", {batch}, int32);
  const value h = dropout(tanh(dense(x, {.units = 40, .name = "hidden"})), 0.25);
  const value wide = tanh(matmul(h, g.variable("wide", {40, 512}, {.init = random_normal(0, 0.3F)})));
  const value longer = g.variable("long", {9001}, {.init = random_normal(0, 0.3F)});
  const value logits = dense(wide, {.units = 5, .name = "logits"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, y)) +
                            reduce_mean(square(longer * 3.0F)) * reduce_mean(square(h))};
};
constexpr int round_batch = 12, steps = 12;
run_config config_of(const std::string& dir) {
  run_config c = cluster_runs::config_of(dir);
  c.save_checkpoints_steps = 5;
  return c;
}
const adam with_adam{.rate = 0.01};
const clip_by_global_norm with_clip{0.5};
const exponential_moving_average with_average{.decay = 0.9};

void alone(const std::string& dir, int parts, std::int64_t to = steps) {
  const points data;
  auto t = make_trainer<model>(with_adam, with_clip, with_average, microbatch{parts}, config_of(dir));
  t.train(data.batches(round_batch), {.max_steps = to});
}
void by_task(const server& here, const std::string& dir, std::int64_t to = steps) {
  const points data;
  auto t = make_trainer<model>(connected{here, fixed_size_partitioner{.shards = here.shards()}}, sync_replicas{},
                               with_adam, with_clip, with_average, config_of(dir));
  t.train(data.batches(round_batch / here.workers()).shard(here.workers(), here.worker()), {.max_steps = to});
}
template <class Cluster>
void together(const Cluster& c, const std::string& dir, std::int64_t to = steps) {
  c.run([&](server& here) {
    if (here.is_ps()) return here.join();
    by_task(here, dir, to);
  });
}
}  // namespace

TEST_CASE("dense variables cut over two and three parameter servers end with the bits of one process") {
  const temp_dir place;
  for (const int workers : {1, 2}) {
    alone(place / text("alone-", workers), workers);
    for (const int ps : {2, 3}) {
      CAPTURE(workers);
      CAPTURE(ps);
      const std::string dir = place / text(workers, "-", ps);
      together(local_cluster{.ps = ps, .workers = workers}, dir);
      CHECK(trained(dir).step == steps);
      CHECK(run_files::difference(trained(dir), trained(place / text("alone-", workers))) == "");
    }
  }
}
