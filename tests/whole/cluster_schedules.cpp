// costs: 200
// A schedule that observes values (reduce_on_plateau) in a cluster: the bits of one process, whoever dies.
#include <gradus/cluster/all_reduce.hpp>
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/local_cluster.hpp>
#include <gradus/cluster/local_messages.hpp>
#include <gradus/cluster/recovery.hpp>
#include <gradus/cluster/simulated.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/supervisor.hpp>
#include <gradus/train/validation.hpp>
#include <gradus/update/schedules/plateau.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../cluster/loop_transport.hpp"
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
void validated(Trainer& t, Data&& data, int last = steps) {
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
      local_cluster{.ps = ps, .workers = workers}.run(
          [&](server& here) { ps == 0 ? task(here, dir, all_reduce{}) : task(here, dir, sync_replicas{}); });
      CHECK(run_files::difference(trained(dir), expected) == "");
    }
  }
}

TEST_CASE("over frames, where a parameter server has the schedule from bytes: the same") {
  const temp_dir place;
  const auto expected = alone(place / "alone", 2);
  const auto tasks = [](const cluster_spec& all, const auto& program) {
    const auto said = loop::run_tasks_by(
        all, [](const std::string&) { return local_messages{}; },
        [&](server& here) {
          program(here);
          here.finish();
        });
    for (const auto& [name, what] : said) CHECK_MESSAGE(what == "", name);
  };
  tasks(cluster_spec{{"ps", {"p0:1", "p1:1"}}, {"worker", {"w0:1", "w1:1"}}},
        [&](server& here) { task(here, place / "ps", sync_replicas{}); });
  CHECK(run_files::difference(trained(place / "ps"), expected) == "");
  tasks(cluster_spec{{"worker", {"w0:1", "w1:1"}}}, [&](server& here) { task(here, place / "ranks", all_reduce{}); });
  CHECK(run_files::difference(trained(place / "ranks"), expected) == "");
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

TEST_CASE("a run goes on from its checkpoint as one process, with parameter servers, without, with others") {
  const temp_dir place;
  const std::string dir = place / "together";
  // Twelve examples, so that every batch is the same, whoever reads it.
  const points all;
  const auto data = [&](int size) {
    return from_spans("x", std::span(all.x).first(12 * 13), extents{13}, "y", std::span(all.y).first(12), extents{})
        .repeat()
        .batch(size);
  };
  const auto config_in = [](const std::string& where) {
    run_config c = config_of(where);
    c.restore_input = saved_input::ignored;
    return c;
  };
  const auto in_one_process = [&](const std::string& where, int last) {
    auto t = make_trainer<mlp>(adam{}, plateau, microbatch{2}, config_in(where));
    validated(t, data(12), last);
  };
  const auto in_a_cluster = [&](int ps, int last, const auto& how) {
    local_cluster{.ps = ps, .workers = 2}.run([&](server& here) {
      if (here.is_ps()) return here.join();
      auto t = make_trainer<mlp>(connected{here}, how, adam{}, plateau, config_in(dir));
      validated(t, data(6).shard(2, here.worker()), last);
    });
  };
  in_one_process(place / "alone", steps);
  in_one_process(dir, 6);
  in_a_cluster(2, 12, sync_replicas{});
  in_a_cluster(0, 18, all_reduce{});
  in_a_cluster(3, steps, sync_replicas{});
  const auto expected = trained(place / "alone");
  CHECK(rate_of(expected) < 0.05 / 3);
  CHECK(run_files::difference(trained(dir), expected) == "");
}

TEST_CASE("a chief that dies after a save and before its next gradient does not lose what it observed") {
  const temp_dir place;
  const auto expected = alone(place / "alone", 2);
  int in_between = 0;
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    CAPTURE(seed);
    const std::string dir = place / text("run-", seed);
    bool waits = false;
    simulated c{.seed = seed, .ps = 2, .workers = 2, .faults = {.crashes = 3, .within = 1.2}, .most_secs = 3600};
    c.run([&](server& here) {
      if (here.is_ps()) return here.join();
      const points data;
      auto t = make_trainer<mlp>(connected{here}, sync_replicas{}, adam{}, plateau, clip_by_global_norm{0.5},
                                 config_of(dir));
      auto input = data.batches(round_batch / 2).shard(2, here.worker());
      const bool again = here.is_chief() && waits;
      validated(t, input, steps / 2);
      in_between += again && t.global_step() == steps / 2;
      if (here.is_chief()) waits = true, here.tasks().sleep(0.5);
      validated(t, input, steps);
    });
    CHECK(run_files::difference(trained(dir), expected) == "");
  }
  CHECK(in_between != 0);
}

namespace {
constexpr reduce_on_plateau impatient{.initial = 0.01, .factor = 0.5, .patience = 2};
// The chief observes 1, 2, 3, ...; another task's values would be better than all.
template <class When>
void chiefs_values_count(const std::string& dir, int workers, int ps, const When& when) {
  constexpr int values = 5, most = 500;
  std::atomic<int> lower = 0;
  local_cluster{.ps = ps, .workers = workers}.run([&](server& here) {
    if (here.is_ps()) return here.join();
    const points all;
    auto data = all.batches(4).shard(here.workers(), here.worker());
    auto t = make_trainer<mlp>(connected{here}, when, adam{}, impatient,
                               here.is_chief() ? config_of(dir) : run_config{.tf_random_seed = 7});
    for (int i = 1; i <= values; ++i) {
      t.train(data, {.steps = 1});
      t.watch(here.is_chief() ? i : -i);
    }
    // The rate of every task becomes that of the updates. A round with backups may leave the chief's gradients out.
    bool is_lower = false;
    for (int made = 0; lower < workers && made < most; ++made) {
      t.train(data, {.steps = 20});  // a chief that saved after every step would be the slowest
      if (t.steps().rate() == impatient.initial / 2 && !std::exchange(is_lower, true)) ++lower;
    }
  });
  CHECK(lower == workers);
  reduce_on_plateau expected = impatient;
  for (int i = 1; i <= values; ++i) expected.observe(i);
  const auto found = trained(dir);
  state_list list;
  expected.remembers(list);
  for (const state_entry& e : list.entries()) {
    CAPTURE(e.name);
    std::size_t here = 0;
    for (const auto& [name, bytes] : found.records)
      if (name.starts_with(e.name)) {
        CHECK(std::equal(bytes.begin(), bytes.end(), e.bytes.begin(), e.bytes.end()));
        ++here;
      }
    CHECK(here == 1);
  }
}
}  // namespace

TEST_CASE("the chief's values count, however stale gradients may be") {
  const temp_dir place;
  chiefs_values_count(place / "asynchronous", 2, 2, asynchronous{});
  chiefs_values_count(place / "ssp", 2, 2, ssp{2});
  chiefs_values_count(place / "backups", 3, 2, sync_replicas{.replicas_to_aggregate = 2, .total_num_replicas = 3});
  chiefs_values_count(place / "several", 2, 1, sync_replicas{.replicas_to_aggregate = 4});
  chiefs_values_count(place / "synchronous", 2, 3, sync_replicas{});
  chiefs_values_count(place / "ranks", 2, 0, all_reduce{});
}

TEST_CASE("a round with backups that leaves the chief's gradient out does not take back what it observed") {
  std::uint64_t left_out = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    CAPTURE(seed);
    simulated c{.seed = seed, .ps = 2, .workers = 3, .faults = {.slowness = 3}, .most_secs = 3600};
    c.run([&](server& here) {
      if (here.is_ps()) return here.join();
      const points all;
      auto data = all.batches(4).shard(3, here.worker());
      auto t = make_trainer<mlp>(connected{here}, sync_replicas{.replicas_to_aggregate = 2, .total_num_replicas = 3},
                                 adam{}, impatient, run_config{.model_dir = none, .tf_random_seed = 7});
      reduce_on_plateau expected = impatient;
      for (int i = 1; i <= 8; ++i) {
        t.train(data, {.steps = 1});
        if (!here.is_chief()) continue;
        t.watch(i), expected.observe(i);
        CHECK(t.steps().rate() == expected.rate);
        left_out += t.global_step() > i;
      }
    });
  }
  CHECK(left_out != 0);
}

namespace {
struct listener {
  using policy_for = kind::log_sink;
  std::string* heard;
  double* rate;
  void line(std::string_view s) { *heard += s; }
  void step(const progress_report& r, bool) { *rate = r.rate; }
};
}  // namespace

TEST_CASE("a supervisor watches for its cluster; a chief that was given no value is warned, and it alone") {
  const temp_dir place;
  const auto warned = [&](const auto& how, int ps, bool watches) {
    std::string heard[2];
    double rates[2] = {};
    local_cluster{.ps = ps, .workers = 2}.run([&](server& here) {
      if (here.is_ps()) return here.join();
      const points data;
      auto sv =
          make_supervisor<mlp>({.logdir = place / text(ps, watches), .is_chief = here.is_chief()}, connected{here}, how,
                               adam{}, impatient, listener{&heard[here.worker()], &rates[here.worker()]});
      auto input = data.batches(6).shard(2, here.worker());
      auto session = sv.managed_session("", input);
      for (int i = 0; i < 7; ++i) {
        session.run();
        if (watches && i < 5) sv.watch(here.is_chief() ? i : -i);
      }
    });
    for (const double rate : rates) CHECK(rate == impatient.initial / (watches ? 2 : 1));
    const auto has = [](const std::string& s) { return s.find("the learning rate did not change") != s.npos; };
    return text(has(heard[0]), has(heard[1]));
  };
  CHECK(warned(sync_replicas{}, 2, true) == "falsefalse");
  CHECK(warned(sync_replicas{}, 2, false) == "truefalse");
  CHECK(warned(all_reduce{}, 0, true) == "falsefalse");
  CHECK(warned(all_reduce{}, 0, false) == "truefalse");
}
