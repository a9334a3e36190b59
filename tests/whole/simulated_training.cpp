// costs: 300
// Unmodified training programs in virtual time, with everything that networks, machines and clocks do, under drawn
// seeds. A failure prints its seed: `simulated{.seed = it, .faults = simulated_faults::drawn(it)}` makes it again.
#include <gradus/cluster/all_reduce.hpp>
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/local_cluster.hpp>
#include <gradus/cluster/recovery.hpp>
#include <gradus/cluster/simulated.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "../train/run_files.hpp"
#include "cluster_models.hpp"
#include "cluster_runs.hpp"

namespace {
using namespace gradus;
using cluster_models::mlp;
using cluster_models::points;
using cluster_runs::trained;
using testing::temp_dir;

std::uint64_t seeds() { return std::getenv("GRADUS_LONG") != nullptr ? 2000 : 40; }

run_config config_of(const std::string& dir) {
  run_config c = cluster_runs::config_of(dir);
  c.save_checkpoints_steps = 5;
  return c;
}
constexpr int round_batch = 12, steps = 12, most_steps = 1000;

run_files::content alone(const std::string& dir, int parts) {
  const points data;
  auto t = make_trainer<mlp>(adam{.rate = 0.01}, clip_by_global_norm{0.5}, exponential_moving_average{.decay = 0.9},
                             microbatch{parts}, config_of(dir));
  t.train(data.batches(round_batch), {.max_steps = steps});
  return trained(dir);
}

struct history {
  simulated_report report;
  std::vector<std::string> log;
  run_files::content trained;
};
// A cluster whose size and faults are drawn.
simulated cluster_of(std::uint64_t seed) {
  constexpr int sizes[] = {1, 2, 3, 4};
  return {.seed = seed,
          .ps = static_cast<int>(1 + seed % 3),
          .workers = sizes[seed / 3 % 4],
          .faults = simulated_faults::drawn(seed),
          .most_secs = 600};  // else a task waits for what was lost
}

template <class Recovery>
history synchronous(std::uint64_t seed, const std::string& dir, const Recovery& lost) {
  history h;
  simulated c = cluster_of(seed);
  c.log = &h.log;
  h.report = c.run([&](server& here) {
    if (here.is_ps()) return here.join();
    const points data;
    auto t = make_trainer<mlp>(connected{here}, sync_replicas{}, lost, adam{.rate = 0.01}, clip_by_global_norm{0.5},
                               exponential_moving_average{.decay = 0.9}, config_of(dir));
    t.train(data.batches(round_batch / here.workers()).shard(here.workers(), here.worker()), {.max_steps = steps});
  });
  h.trained = trained(dir);
  return h;
}

// A table, whose gradient comes as rows, and a dense variable of three blocks: a partitioner cuts both.
inline constexpr auto cuttable = [](graph& g) {
  const value ids = g.placeholder("ids", {batch, 3}, int32), y = g.placeholder("y", {batch}, int32);
  const value h = flatten(embedding(ids, {.input_dim = 20, .output_dim = 4, .name = "letter"}));
  const value longer = g.variable("long", {9001}, {.init = random_normal(0, 0.3F)});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(dense(h, {.units = 5, .name = "logits"}), y)) +
                            reduce_mean(square(longer * 3.0F)) * reduce_mean(square(h))};
};
template <class Recovery>
void train_cuttable(server& here, const std::string& dir, const connected& by, const Recovery& lost) {
  if (here.is_ps()) return here.join();
  std::vector<std::int32_t> ids, y;
  for (int i = 0; i < 96; ++i) {
    for (int k = 0; k < 3; ++k) ids.push_back((i * 37 + k * 11) % 20);
    y.push_back(i * 7 % 5);
  }
  auto t = make_trainer<cuttable>(by, sync_replicas{}, lost, adam{.rate = 0.01}, clip_by_global_norm{0.5},
                                  exponential_moving_average{.decay = 0.9}, config_of(dir));
  const auto data = from_spans("ids", ids, extents{3}, "y", y, extents{});
  t.train(data.repeat().batch(round_batch / here.workers()).shard(here.workers(), here.worker()), {.max_steps = steps});
}
history cut(std::uint64_t seed, const std::string& dir) {
  history h;
  simulated c = cluster_of(seed);
  c.ps = static_cast<int>(2 + seed % 2), c.log = &h.log;
  c.faults.ps_crashes += 1;
  h.report = c.run([&](server& here) {
    train_cuttable(here, dir, connected{here, fixed_size_partitioner{.shards = here.shards()}},
                   recovery::log{.directory = dir + "-logs"});
  });
  h.trained = trained(dir);
  return h;
}

// Tasks end early only because a parameter server has lost what it held, and their errors say so: which one, which has
// begun again before, and what to do. So no other error hides behind such an end.
void check_ends(const std::vector<std::string>& log, const simulated_counts& happened) {
  CHECK((happened.ended == 0 || happened.ps_crashes != 0));
  CHECK((happened.lost_updates == 0 || happened.ps_crashes != 0));
  std::uint64_t ends = 0;
  std::vector<std::string> again;  // the parameter servers that have begun again
  for (const std::string& line : log) {
    if (const auto at = line.find(" is started again");
        at != std::string::npos && line.find(" ps ") != std::string::npos)
      again.push_back(line.substr(line.find("ps "), at - line.find("ps ")));
    if (line.find(" ends: ") == std::string::npos) continue;
    ++ends;
    CHECK_MESSAGE(line.find("start all tasks again") != std::string::npos, line);
    const auto names = [&](const std::string& ps) {
      return line.find(ps + " was started again and has lost") != std::string::npos;
    };
    CHECK_MESSAGE(std::ranges::any_of(again, names), line);
  }
  CHECK(ends == happened.ended);
}

// The same without parameter servers.
history by_all_reduce(std::uint64_t seed, const std::string& dir) {
  history h;
  simulated c = cluster_of(seed);
  c.ps = 0, c.log = &h.log, c.most_secs = 3600;
  h.report = c.run([&](server& here) {
    const points data;
    auto t = make_trainer<mlp>(connected{here}, all_reduce{.bucket_bytes = 1000}, adam{.rate = 0.01},
                               clip_by_global_norm{0.5}, exponential_moving_average{.decay = 0.9}, config_of(dir));
    t.train(data.batches(round_batch / here.workers()).shard(here.workers(), here.worker()), {.max_steps = steps});
  });
  h.trained = trained(dir);
  return h;
}

// Every update of worker w adds 1 to the w-th number, so numbers say whose updates were made, and how often.
constexpr int most_workers = 4;
inline constexpr auto counting = [](graph& g) {
  const value x = g.placeholder("x", {batch, most_workers});
  return model_spec{.loss = reduce_sum(x * g.variable("made", {most_workers}, {.init = zeros}))};
};
using numbers = std::vector<std::int64_t>;
numbers numbers_of(std::span<const std::byte> bytes) {
  float made[most_workers];
  REQUIRE(bytes.size() == sizeof made);
  std::memcpy(made, bytes.data(), sizeof made);
  return {made, made + most_workers};
}
std::int64_t sum_of(const numbers& n) { return std::accumulate(n.begin(), n.end(), std::int64_t{0}); }

struct counted {
  simulated_report report;
  std::vector<std::string> log;
  run_files::content trained;
  numbers calls = numbers(most_workers);  // of `train` for one step, by worker, that have returned
  std::int64_t most_lead = 0;             // of a worker that begins a step
};
template <class When, class Recovery>
counted count(simulated c, const std::string& dir, const When& when, const Recovery& lost) {
  counted h;
  c.log = &h.log;
  std::vector<bool> has_ended(static_cast<std::size_t>(c.workers));
  std::int64_t chiefs = 0;
  // The last update that a program knows of, behind the last line about lost ones; the same when the chief ended last.
  std::int64_t reached = 0, reached_by_chief = 0;
  int losses = 0;  // lines about lost updates
  std::size_t lines = 0;
  const auto count_losses = [&] {
    for (; lines < h.log.size(); ++lines)
      if (h.log[lines].ends_with(" are lost")) ++losses, reached = 0;
    return losses;
  };
  h.report = c.run([&](server& here) {
    if (here.is_ps()) return here.join();
    const auto me = static_cast<std::size_t>(here.worker());
    std::vector<float> x(most_workers);
    x[me] = -1;
    auto data = from_spans("x", x, extents{most_workers}).repeat().batch(1);
    auto t = make_trainer<counting>(connected{here}, when, lost, gradient_descent{.rate = 1}, config_of(dir));
    chiefs += here.is_chief(), has_ended[me] = false;
    // The chief is the last to end, so that its last checkpoint has all updates.
    const auto others_go_on = [&] { return std::ranges::count(has_ended, false) > 1; };
    std::int64_t made_before = -1;  // by this worker, when its program last looked
    int losses_before = -1;
    while (t.global_step() < steps || (here.is_chief() && others_go_on())) {
      if (t.global_step() >= steps) here.tasks().sleep(0.5);
      const std::int64_t before = t.global_step();
      t.train(data, {.steps = 1});
      CHECK(t.global_step() > before);
      ++h.calls[me];
      if (losses_before < 0) losses_before = count_losses();
      if (count_losses() == losses_before) reached = std::max(reached, t.global_step());
      auto& variables = t.steps().variables();
      const numbers now = numbers_of({variables.value(0), sizeof(float) * most_workers});
      CHECK(sum_of(now) >= t.global_step());
      // Whatever happened before: a call makes one update, and no update of this worker is lost while its program runs.
      // The chief's save brings later values, and with them a step at which it has nothing left to do.
      if (made_before >= 0) CHECK((now[me] == made_before + 1 || (here.is_chief() && now[me] == made_before)));
      made_before = now[me];
      for (std::size_t other = 0; other < has_ended.size(); ++other)
        if (!has_ended[other]) h.most_lead = std::max(h.most_lead, now[me] - now[other]);
    }
    has_ended[me] = true;
    count_losses();
    if (here.is_chief()) reached_by_chief = reached;
  });
  h.trained = trained(dir);
  const simulated_counts& happened = h.report.counts;
  // The program does not see the last update before a crash, or before its cluster is lost.
  const auto unseen = static_cast<std::int64_t>(happened.crashes + happened.ended);
  const auto lost_updates = static_cast<std::int64_t>(happened.lost_updates);
  // A chief that begins again behind a loss may end, and save, before others know of the loss and begin again.
  const std::int64_t unsaved = std::max<std::int64_t>(0, reached - h.trained.step);
  CHECK((unsaved == 0 || happened.ended != 0));
  for (const auto& [name, bytes] : h.trained.records)
    if (name.starts_with("made ")) {
      const numbers made = numbers_of(bytes);
      CHECK(sum_of(made) == h.trained.step);  // each update once, and no other
      for (std::size_t w = 0; w < made.size(); ++w) {
        CHECK(made[w] <= h.calls[w] + unseen);
        if (w != 0) CHECK(made[w] + lost_updates + unsaved >= h.calls[w]);
        if (w != 0 && unseen == 0) CHECK(made[w] == h.calls[w]);
      }
    }
  // Each update that was acknowledged is there, or is one of those that are said to be lost.
  CHECK(reached_by_chief <= h.trained.step);
  CHECK(h.trained.step + unsaved + lost_updates >= sum_of(h.calls) - chiefs);
  CHECK(h.trained.step + lost_updates <= sum_of(h.calls) + unseen);
  CHECK(h.trained.step >= steps);
  check_ends(h.log, happened);
  return h;
}
constexpr auto logged = [](const std::string& dir) { return recovery::log{.directory = dir + "-logs"}; };
constexpr auto rolls_back = [](const std::string&) { return recovery::roll_back{}; };
template <class When, class RecoveryIn>
simulated_counts counts(std::uint64_t seed, const temp_dir& place, const When& when, const RecoveryIn& policy_in,
                        std::int64_t bound = most_steps) {
  CAPTURE(seed);
  simulated c = cluster_of(seed);
  // Who is dead holds nobody up, so a bound is checked where nobody is silent for long enough.
  if (bound < most_steps) c.faults.most_outage = 1;
  const std::string a = place / text("a-", seed), b = place / text("b-", seed);
  const counted h = count(c, a, when, policy_in(a)), again = count(c, b, when, policy_in(b));
  CHECK(h.most_lead <= bound);
  CHECK(again.report.hash == h.report.hash);
  CHECK(again.log == h.log);
  CHECK(run_files::difference(again.trained, h.trained) == "");
  return h.report.counts;
}

}  // namespace

TEST_CASE("synchronous, whatever goes wrong: the bits of one process, and the same history again") {
  const temp_dir place;
  std::map<int, run_files::content> expected;
  for (int workers = 1; workers <= 4; ++workers) expected[workers] = alone(place / text("alone-", workers), workers);
  std::uint64_t rolled_back = 0, went_on = 0;
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    CAPTURE(seed);
    const auto check = [&](const std::string& name, const auto& policy_in) {
      const std::string a = place / text(name, "-a-", seed), b = place / text(name, "-b-", seed);
      const history h = synchronous(seed, a, policy_in(a)), again = synchronous(seed, b, policy_in(b));
      CHECK(run_files::difference(h.trained, expected[cluster_of(seed).workers]) == "");
      CHECK(again.report.hash == h.report.hash);
      CHECK(again.log == h.log);
      check_ends(h.log, h.report.counts);
      return h.report.counts;
    };
    rolled_back += check("rolled-back", rolls_back).ended;
    const simulated_counts c = check("logged", logged);
    CHECK((c.ended == 0 && c.lost_updates == 0));
    went_on += c.ps_crashes;
  }
  CHECK(rolled_back > seeds());
  CHECK(went_on > seeds() / 2);
}

TEST_CASE("cut variables with logs, whatever goes wrong: the bits of whole ones, and the same history again") {
  const temp_dir place;
  std::map<int, run_files::content> expected;
  for (int workers = 1; workers <= 4; ++workers) {
    const std::string dir = place / text("whole-", workers);
    local_cluster{.ps = 1, .workers = workers}.run(
        [&](server& here) { train_cuttable(here, dir, connected{here}, recovery::roll_back{}); });
    expected[workers] = trained(dir);
    CHECK(expected[workers].step == steps);
  }
  std::uint64_t crashes = 0, ps_crashes = 0;
  for (std::uint64_t seed = 1; seed <= seeds() / 2; ++seed) {
    CAPTURE(seed);
    const std::string a = place / text("a-", seed), b = place / text("b-", seed);
    const history h = cut(seed, a), again = cut(seed, b);
    CHECK(run_files::difference(h.trained, expected[cluster_of(seed).workers]) == "");
    CHECK(again.report.hash == h.report.hash);
    CHECK(again.log == h.log);
    const simulated_counts& c = h.report.counts;
    CHECK((c.ended == 0 && c.lost_updates == 0));
    crashes += c.crashes, ps_crashes += c.ps_crashes;
  }
  CHECK(crashes > seeds() / 8);
  CHECK(ps_crashes > seeds() / 2);
}

TEST_CASE("without parameter servers, whatever goes wrong: the bits of one process, and the same history again") {
  const temp_dir place;
  std::map<int, run_files::content> expected;
  for (int workers = 1; workers <= 4; ++workers) expected[workers] = alone(place / text("alone-", workers), workers);
  simulated_counts all;
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    CAPTURE(seed);
    const std::string a = place / text("a-", seed), b = place / text("b-", seed);
    const history h = by_all_reduce(seed, a), again = by_all_reduce(seed, b);
    CHECK(run_files::difference(h.trained, expected[cluster_of(seed).workers]) == "");
    CHECK(again.report.hash == h.report.hash);
    CHECK(again.log == h.log);
    const simulated_counts& c = h.report.counts;
    CHECK(c.restarts == c.crashes + c.ended);
    all.crashes += c.crashes, all.ended += c.ended;
  }
  CHECK(all.crashes > seeds() / 2);
  CHECK(all.ended > seeds() / 2);
}

TEST_CASE("asynchronous with logs, whatever goes wrong: each update is made once, and no acknowledged one is lost") {
  const temp_dir place;
  std::uint64_t crashes = 0;
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    const simulated_counts c = counts(seed, place, asynchronous{}, logged);
    CHECK((c.ended == 0 && c.lost_updates == 0));
    crashes += c.ps_crashes;
  }
  CHECK(crashes > seeds() / 2);
}

TEST_CASE("asynchronous without logs: each update is made once, and those since the checkpoint are lost and counted") {
  const temp_dir place;
  std::uint64_t lost = 0;
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed)
    lost += counts(seed, place, asynchronous{}, rolls_back).lost_updates;
  CHECK(lost > 0);
}

TEST_CASE("with a bound, whatever goes wrong: nobody leads by more, and each update is made once") {
  const temp_dir place;
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    const std::uint64_t bound = 1 + seed % 2;
    counts(seed, place, ssp{bound}, logged, static_cast<std::int64_t>(bound));
  }
}
