// costs: 900
// A cluster on threads ends with the bits of one process: equal parameters, slots, averages, powers and step.
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/local_cluster.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include "../sanitized.hpp"
#include "../train/run_files.hpp"
#include "cluster_models.hpp"
#include "cluster_runs.hpp"

namespace {
using namespace gradus;
using cluster_models::points;
using cluster_runs::trained;
using testing::temp_dir;

run_config config_of(const std::string& dir) {
  run_config c = cluster_runs::config_of(dir);
  c.save_checkpoints_steps = 70;
  return c;
}
constexpr int round_batch = 24, steps = 200;

template <auto Model>
run_files::content alone(const std::string& dir, int parts) {
  const points data;
  auto t = make_trainer<Model>(adam{.rate = 0.01}, clip_by_global_norm{0.5}, exponential_moving_average{.decay = 0.9},
                               microbatch{parts}, config_of(dir));
  t.train(data.batches(round_batch), {.max_steps = steps});
  return trained(dir);
}
template <auto Model>
run_files::content together(const std::string& dir, int ps, int workers) {
  local_cluster{.ps = ps, .workers = workers}.run([&](server& here) {
    if (here.is_ps()) return here.join();
    const points data;
    auto t = make_trainer<Model>(connected{here}, sync_replicas{}, adam{.rate = 0.01}, clip_by_global_norm{0.5},
                                 exponential_moving_average{.decay = 0.9}, config_of(dir));
    t.train(data.batches(round_batch / workers).shard(here.workers(), here.worker()), {.max_steps = steps});
  });
  return trained(dir);
}

template <auto Model>
void same_bits() {
  const temp_dir place;
  for (const int workers : {1, 2, 4}) {
    const auto expected = alone<Model>(place / text("alone-", workers), workers);
    CHECK(expected.step == steps);
    for (const int ps : {1, 2, 3}) {
      CAPTURE(workers);
      CAPTURE(ps);
      const auto found = together<Model>(place / text(workers, "-", ps), ps, workers);
      CHECK(run_files::difference(found, expected) == "");
    }
  }
}

}  // namespace

TEST_CASE("a synchronous cluster has the bits of one process: a perceptron with dropout") {
  same_bits<cluster_models::mlp>();
}
// Under a sanitizer these two take more than ten minutes, and run the same code of the cluster.
TEST_CASE("a synchronous cluster has the bits of one process: convolutions" * doctest::skip(is_sanitized)) {
  same_bits<cluster_models::lenet>();
}
TEST_CASE("a synchronous cluster has the bits of one process: attention" * doctest::skip(is_sanitized)) {
  same_bits<cluster_models::gpt>();
}
