// compiled with: -O1 -march=native
// A network whose convolutions are computed by Winograd's algorithm: trained in several ways with equal bits, and
// beside direct sums.
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/local_cluster.hpp>
#include <gradus/cpu/winograd.hpp>
#include <gradus/data.hpp>
#include <gradus/gradus.hpp>
#include <gradus/run/microbatch.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "../message.hpp"
#include "cluster_runs.hpp"

namespace {
using namespace gradus;
using testing::temp_dir;

constexpr int side = 12, filters = 40, steps = 4, examples = 16;

constexpr auto net = [](graph& g) {
  const value x = g.placeholder("x", {batch, side, side, 3}), y = g.placeholder("y", {batch}, int32);
  value h = relu(conv2d(x, {.filters = filters, .kernel_size = 3, .padding = padding::same, .name = "first"}));
  h = tanh(conv2d(h, {.filters = filters, .kernel_size = 3, .padding = padding::same, .name = "second"}));
  h = relu(conv2d(h, {.filters = 33, .kernel_size = 3, .padding = padding::valid, .name = "third"}));
  const value logits = dense(flatten(max_pool(h, {.pool_size = 2, .strides = 2})), {.units = 4, .name = "logits"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, y)), .predictions = {{"logits", logits}}};
};
constexpr auto interpreted = [](graph& g) { return net(g); };

struct images {
  std::vector<float> x;
  std::vector<std::int32_t> y;
  images() {
    random_stream r{7, 0};
    for (int i = 0; i < examples; ++i) {
      y.push_back(i % 4);
      for (int p = 0; p < side * side * 3; ++p)
        x.push_back(static_cast<float>(2 * r.uniform() - 1) + (p % 4 == i % 4 ? 0.5f : 0.0f));
    }
  }
  auto batches(int n) const { return from_spans("x", x, extents{side, side, 3}, "y", y, extents{}).repeat().batch(n); }
};
const images data;

template <class Trainer>
run_files::content after(Trainer trainer, const temp_dir& dir, std::int64_t last = steps) {
  trainer.train(data.batches(examples), {.max_steps = last});
  return cluster_runs::trained(dir.path());
}
template <class... Policies>
run_files::content trained(Policies... policies) {
  const temp_dir dir;
  return after(
      make_trainer<net>(momentum{.rate = 0.05, .decay = 0.9}, policies..., cluster_runs::config_of(dir.path())), dir);
}
double farthest(const run_files::content& a, const run_files::content& b) {
  double most = 0;
  for (const auto& [name, bytes] : a.records) {
    if (name.find("float32") == std::string::npos) continue;
    const auto& other = b.records.at(name);
    for (std::size_t i = 0; i < bytes.size(); i += sizeof(float)) {
      float p = 0, q = 0;
      std::memcpy(&p, bytes.data() + i, sizeof p), std::memcpy(&q, other.data() + i, sizeof q);
      most = std::max(most, static_cast<double>(std::fabs(p - q)));
    }
  }
  return most;
}
}  // namespace

TEST_CASE("compiled, interpreted, in threads, resumed and handed over: the same bits") {
  const auto whole = trained(winograd<4>{});
  CHECK(whole.step == steps);
  CHECK(run_files::difference(trained(winograd<4>{}, threads{3}), whole).empty());
  const temp_dir dir;
  const auto policies = [&](auto&& make) {
    return make(momentum{.rate = 0.05, .decay = 0.9}, winograd<4>{}, cluster_runs::config_of(dir.path()));
  };
  after(policies([](auto... p) { return make_trainer(interpreted, p..., threads{2}); }), dir, 2);
  CHECK(run_files::difference(after(policies([](auto... p) { return make_trainer<net>(p...); }), dir), whole).empty());
}

TEST_CASE("the numbers are those of direct sums but for rounding, and not the same") {
  const auto direct = trained();
  for (const auto& by_tiles : {trained(winograd<2>{}), trained(winograd<4>{})}) {
    CHECK_FALSE(run_files::difference(by_tiles, direct).empty());
    CHECK(farthest(by_tiles, direct) < 2e-5);
  }
}

TEST_CASE("workers of a cluster have the bits of one process with their parts; another arithmetic is refused") {
  const auto alone = trained(winograd<4>{}, microbatch{2});
  const temp_dir dir;
  const auto work = [&](const server& here, auto... arithmetic) {
    make_trainer<net>(momentum{.rate = 0.05, .decay = 0.9}, arithmetic..., connected{here}, sync_replicas{},
                      cluster_runs::config_of(dir.path()))
        .train(data.batches(examples / 2).shard(here.workers(), here.worker()), {.max_steps = steps});
  };
  const auto run = [&](auto of_chief, auto of_worker) {
    local_cluster{.ps = 1, .workers = 2}.run([&](server& here) {
      if (here.is_ps()) return here.join();
      here.is_chief() ? work(here, of_chief) : work(here, of_worker);
      here.finish();
    });
  };
  run(winograd<4>{}, winograd<4>{});
  CHECK(run_files::difference(cluster_runs::trained(dir.path()), alone).empty());
  CHECK(says(message_of(status::failed_precondition, [&] { run(winograd<4>{}, approximate{}); }), "the arithmetic of"));
}
