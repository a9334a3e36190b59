// costs: 100
// Training without parameter servers, on threads: the bits of one process, resumed in both directions, how it ends, and
// what it refuses.
#include <gradus/cluster/all_reduce.hpp>
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/local_cluster.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "../message.hpp"
#include "../train/run_files.hpp"
#include "../whole/cluster_models.hpp"

namespace {
using namespace gradus;
using cluster_models::mlp;
using cluster_models::points;
using testing::temp_dir;

constexpr int round_batch = 12;
run_config config_of(const std::string& dir) {
  return {.model_dir = dir, .tf_random_seed = 7, .save_summary_steps = 0, .checkpoint_save_graph_def = false};
}
run_files::content trained(const std::string& dir) {
  auto found = run_files::newest_checkpoint(posix{}, dir);
  std::erase_if(found.records, [](const auto& r) { return r.first.starts_with("input "); });
  return found;
}
// The optimizer of these runs, as policies, behind others.
template <class... More>
auto make(const std::string& dir, const More&... more) {
  return make_trainer<mlp>(more..., adam{.rate = 0.01}, clip_by_global_norm{0.5},
                           exponential_moving_average{.decay = 0.9}, config_of(dir));
}
void alone(const std::string& dir, int parts, std::int64_t steps) {
  auto t = make(dir, microbatch{parts});
  const points data;
  t.train(data.batches(round_batch), {.max_steps = steps});
}
void together(const std::string& dir, int workers, std::int64_t steps, const all_reduce& how = {}) {
  local_cluster{.ps = 0, .workers = workers}.run([&](server& here) {
    auto t = make(dir, connected{here}, how);
    const points data;
    t.train(data.batches(round_batch / workers).shard(workers, here.worker()), {.max_steps = steps});
  });
}

}  // namespace

TEST_CASE("n workers end with the bits of one process with microbatch{n}, whatever the buckets") {
  const temp_dir place;
  for (const int workers : {1, 2, 3, 4}) {
    CAPTURE(workers);
    alone(place / text("alone", workers), workers, 30);
    together(place / text("together", workers), workers, 30);
    CHECK(run_files::difference(trained(place / text("together", workers)), trained(place / text("alone", workers))) ==
          "");
  }
  together(place / "pieces", 4, 30, {.bucket_bytes = 100});
  CHECK(run_files::difference(trained(place / "pieces"), trained(place / "alone4")) == "");
}
