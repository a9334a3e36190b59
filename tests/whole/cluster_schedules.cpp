// costs: 200
// A schedule that observes values (reduce_on_plateau) in a cluster: the bits of one process, whoever dies.
#include <gradus/cluster/all_reduce.hpp>
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/local_cluster.hpp>
#include <gradus/cluster/recovery.hpp>
#include <gradus/cluster/simulated.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/validation.hpp>
#include <gradus/update/schedules/plateau.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "../train/run_files.hpp"
#include "cluster_models.hpp"
#include "cluster_runs.hpp"

namespace {
using namespace gradus;
using cluster_models::mlp;
using cluster_models::points;
using testing::temp_dir;

// A loss has to fall by a tenth to be better, so the rate falls, and it falls again.
constexpr reduce_on_plateau plateau{.initial = 0.05, .factor = 0.5, .patience = 1, .threshold = 0.1};
constexpr int round_batch = 12, steps = 24, every = 3;

run_config config_of(const std::string& dir) {
  run_config c = cluster_runs::config_of(dir);
  c.save_checkpoints_steps = 5;
  return c;
}
// Whoever dies between an evaluation and a save forgets which evaluation was the best; the schedule does not.
run_files::content trained(const std::string& dir) {
  auto found = cluster_runs::trained(dir);
  std::erase_if(found.records, [](const auto& r) { return r.first.starts_with("validation/"); });
  return found;
}
double rate_of(const run_files::content& c) {
  for (const auto& [name, bytes] : c.records)
    if (name.starts_with("reduce_on_plateau/rate")) {
      double rate;
      REQUIRE(bytes.size() == sizeof rate);
      std::memcpy(&rate, bytes.data(), sizeof rate);
      return rate;
    }
  FAIL("the checkpoint has no rate");
  return 0;
}
template <class Trainer, class Data>
void validated(Trainer& t, Data data, int last = steps) {
  const points test;
  t.train(data, {.max_steps = last,
                 .validation = {.data = from_spans("x", test.x, extents{13}, "y", test.y, extents{}).batch(13),
                                .every_n_steps = every}});
}
run_files::content alone(const std::string& dir, int parts) {
  const points data;
  auto t = make_trainer<mlp>(adam{}, plateau, clip_by_global_norm{0.5}, microbatch{parts}, config_of(dir));
  validated(t, data.batches(round_batch));
  return trained(dir);
}
template <class... Policies>
void task(server& here, const std::string& dir, const Policies&... policies) {
  if (here.is_ps()) return here.join();
  const points data;
  auto t = make_trainer<mlp>(connected{here}, adam{}, plateau, clip_by_global_norm{0.5}, config_of(dir), policies...);
  validated(t, data.batches(round_batch / here.workers()).shard(here.workers(), here.worker()));
}
std::uint64_t seeds() { return std::getenv("GRADUS_LONG") != nullptr ? 500 : 24; }

}  // namespace

TEST_CASE("the rate follows the chief's validations, with the bits of one process") {
  const temp_dir place;
  for (const int workers : {1, 2, 3}) {
    const auto expected = alone(place / text("alone-", workers), workers);
    REQUIRE(expected.step == steps);
    REQUIRE(rate_of(expected) < 0.05 / 3);  // it fell more than once
    for (const int ps : {0, 1, 2, 3}) {
      CAPTURE(workers);
      CAPTURE(ps);
      const std::string dir = place / text(workers, "-", ps);
      local_cluster{.ps = ps, .workers = workers}.run([&](server& here) {
        ps == 0 ? task(here, dir, all_reduce{}) : task(here, dir, sync_replicas{});
      });
      CHECK(run_files::difference(trained(dir), expected) == "");
    }
  }
}

TEST_CASE("in simulated time any task may die, and the rate and all values have the bits of one process") {
  const temp_dir place;
  std::map<int, run_files::content> expected;
  for (int workers = 1; workers <= 4; ++workers) expected[workers] = alone(place / text("alone-", workers), workers);
  simulated_counts all;
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    CAPTURE(seed);
    constexpr int sizes[] = {1, 2, 3, 4};
    const auto check = [&](const std::string& name, int ps, const auto&... policies) {
      CAPTURE(name);
      const std::string dir = place / text(name, seed);
      simulated c{.seed = seed,
                  .ps = ps,
                  .workers = sizes[seed / 3 % 4],
                  .faults = simulated_faults::drawn(seed),
                  .most_secs = 3600};
      c.faults.crashes += 1;
      const simulated_report r = c.run([&](server& here) { task(here, dir, policies...); });
      CHECK(run_files::difference(trained(dir), expected[c.workers]) == "");
      all.crashes += r.counts.crashes, all.ps_crashes += r.counts.ps_crashes;
    };
    const int ps = static_cast<int>(1 + seed % 3);
    check("rolled-back-", ps, sync_replicas{}, recovery::roll_back{});
    check("logged-", ps, sync_replicas{}, recovery::log{.directory = place / text("logs-", seed)});
    check("ranks-", 0, all_reduce{.bucket_bytes = 1000});
  }
  CHECK(all.crashes > seeds());
  CHECK(all.ps_crashes > seeds() / 2);
}
