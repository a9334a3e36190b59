// costs: 200
// Models whose gradients come as rows, or that change variables while they compute, in a cluster: with one worker the
// bits are those of one process, with two they do not depend on the number of parameter servers, also where there is
// none.
#include <gradus/cluster/all_reduce.hpp>
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/local_cluster.hpp>
#include <gradus/codecs.hpp>
#include <gradus/gradus.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "../train/run_files.hpp"
#include "cluster_runs.hpp"

namespace {
using namespace gradus;
using cluster_runs::config_of;
using cluster_runs::trained;
using testing::temp_dir;

constexpr auto rows_and_norm = [](graph& g) {
  const auto ids = g.placeholder("ids", {batch, 3}, int32), y = g.placeholder("y", {batch}, int32);
  const auto x = flatten(embedding(ids, {.input_dim = 50, .output_dim = 8, .name = "letter"}));
  const auto h = batch_norm(dense(x, {.units = 12, .name = "hidden"}));
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(dense(h, {.units = 5, .name = "logits"}), y))};
};
struct points {
  std::vector<std::int32_t> x, y;
  points() {
    for (int i = 0; i < 96; ++i) {
      for (int k = 0; k < 3; ++k) x.push_back((i * 37 + k * 11) % 50);
      y.push_back(i * 7 % 5);
    }
  }
  auto batches() const { return from_spans("ids", x, extents{3}, "y", y, extents{}).repeat().batch(8); }
};
template <class How = sync_replicas>
void together(const std::string& dir, int ps, int workers, const How& how = {}) {
  local_cluster{.ps = ps, .workers = workers}.run([&](server& here) {
    if (here.is_ps()) return here.join();
    const points data;
    auto t =
        make_trainer<rows_and_norm>(connected{here}, how, adam{.rate = 0.01}, clip_by_global_norm{0.5}, config_of(dir));
    t.train(data.batches().shard(here.workers(), here.worker()), {.max_steps = 40});
  });
}

}  // namespace

TEST_CASE("one worker: rows and moving averages end with the bits of one process") {
  const temp_dir place;
  const points data;
  auto t = make_trainer<rows_and_norm>(adam{.rate = 0.01}, clip_by_global_norm{0.5}, config_of(place / "alone"));
  t.train(data.batches(), {.max_steps = 40});
  for (int ps = 1; ps <= 3; ++ps) {
    CAPTURE(ps);
    together(place / text(ps), ps, 1);
    CHECK(run_files::difference(trained(place / text(ps)), trained(place / "alone")) == "");
  }
}

TEST_CASE("two workers: rows end with the same bits on one, two and three parameter servers") {
  const temp_dir place;
  for (int ps = 1; ps <= 3; ++ps) together(place / text(ps), ps, 2);
  CHECK(trained(place / "1").step == 40);
  CHECK(run_files::difference(trained(place / "2"), trained(place / "1")) == "");
  CHECK(run_files::difference(trained(place / "3"), trained(place / "1")) == "");
  together(place / "0", 0, 2, all_reduce{});
  CHECK(run_files::difference(trained(place / "0"), trained(place / "1")) == "");
}
