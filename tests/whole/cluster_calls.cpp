// costs: 900
// What a program does around one call of train, in a cluster as in one process: several calls, an evaluation before or
// after them, a start again in the middle, another input, several gradients of one worker in a round.
#include <gradus/cluster/all_reduce.hpp>
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/local_cluster.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/supervisor.hpp>
#include <gradus/train/validation.hpp>
#include <gradus/train/warm_start.hpp>

#include <doctest/doctest.h>

#include <atomic>

#include "../train/run_files.hpp"
#include "cluster_models.hpp"
#include "cluster_runs.hpp"

namespace {
using namespace gradus;
using cluster_models::points;
using cluster_runs::trained;
using testing::temp_dir;

constexpr auto net = [](graph& g) {
  const value x = g.placeholder("x", {batch, 13}), y = g.placeholder("y", {batch}, int32);
  const value h = dropout(tanh(dense(x, {.units = 16, .name = "hidden"})), 0.25);
  const value logits = dense(h, {.units = 5, .name = "logits"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, y)),
                    .metrics = {{"accuracy", accuracy(logits, y)}}};
};
run_config config_of(const std::string& dir) {
  run_config c = cluster_runs::config_of(dir);
  c.save_checkpoints_steps = 5, c.keep_checkpoint_max = 0;
  if (dir.empty()) c.model_dir = none;
  return c;
}
auto tests_of(const points& all) { return from_spans("x", all.x, extents{13}, "y", all.y, extents{}).batch(13); }

// A cluster of two workers, each with half of the batches of 24 examples.
template <class How, class F, class... More>
void in_cluster(int ps, const How& how, const run_config& c, F f, const More&... more) {
  local_cluster{.ps = ps, .workers = 2}.run([&](server& here) {
    if (here.is_ps()) return here.join();
    const points all;
    auto t = make_trainer<net>(connected{here}, how, adam{.rate = 0.05}, c, more...);
    f(here, t, all.batches(12).shard(2, here.worker()));
  });
}

template <class How>
void runs_of_several_calls(int ps, const How& how) {
  CAPTURE(ps);
  const temp_dir place;
  const points all;
  make_trainer<net>(adam{.rate = 0.05}, microbatch{2}, config_of(place / "alone"))
      .train(all.batches(24), {.max_steps = 20});
  const auto expected = trained(place / "alone");
  REQUIRE(expected.step == 20);

  // Two calls are complete when the cluster ends; it is started again, and passes over them.
  for (const bool again : {false, true})
    in_cluster(ps, how, config_of(place / "calls"), [&](server&, auto& t, auto data) {
      for (const int last : {5, 10, 15, 20}) {
        t.train(data, {.max_steps = last});
        if (!again && last == 10) return;
      }
    });
  CHECK(run_files::difference(trained(place / "calls"), expected) == "");

  // A warm start is for a run that begins: what a task has of its cluster stays.
  const warm_start_from old{place / "alone"};
  make_trainer<net>(adam{.rate = 0.05}, microbatch{2}, config_of(place / "warm alone"), old)
      .train(all.batches(24), {.max_steps = 20});
  for (const bool again : {false, true})
    in_cluster(
        ps, how, config_of(place / "warm"),
        [&](server&, auto& t, auto data) {
          for (const int last : {5, 20}) {
            t.train(data, {.max_steps = again ? last : 10});
            if (!again) return;
          }
        },
        old);
  CHECK(run_files::difference(trained(place / "warm"), trained(place / "warm alone")) == "");

  // The chief evaluates what it finds, then it trains on; later it evaluates an older checkpoint beside the cluster.
  const auto loss_of = [&](std::int64_t step) {
    auto test = tests_of(all);
    return make_trainer<net>(adam{.rate = 0.05}, config_of(place / "alone"))
        .evaluate(test, {.checkpoint_path = place / text("alone/model-", step, ".ckpt")})["loss"];
  };
  double before = 0, older = 0;
  for (const int last : {10, 20})
    in_cluster(ps, how, config_of(place / "looks"), [&](server& here, auto& t, auto data) {
      auto test = tests_of(all);
      if (last == 20 && here.is_chief()) before = t.evaluate(test)["loss"];
      t.train(data, {.max_steps = last});
      if (last == 10 || !here.is_chief()) return;
      auto same = tests_of(all);
      older = make_trainer<net>(connected{here}, how, adam{.rate = 0.05}, config_of(place / "looks"))
                  .evaluate(same, {.checkpoint_path = place / "looks/model-5.ckpt"})["loss"];
    });
  CHECK(before == loss_of(10));
  CHECK(older == loss_of(5));
  CHECK(run_files::difference(trained(place / "looks"), expected) == "");

  // The best values of one task would not be those of the others.
  in_cluster(ps, how, config_of(place / "best"), [&](server&, auto& t, auto data) {
    CHECK_THROWS_WITH_AS(
        t.train(data,
                {.max_steps = 4, .validation = {.data = tests_of(all), .every_n_steps = 2, .restore_best = true}}),
        doctest::Contains("keep_checkpoint_best"), unimplemented);
  });

  // Another input: each task reads it from its beginning.
  run_config other = config_of(place / "calls");
  std::atomic<int> refused = 0;
  other.restore_input = saved_input::if_it_fits;
  const auto one_epoch = [&](server& here) { return tests_of(all).shard(2, here.worker()); };
  try {
    in_cluster(ps, how, other, [&](server& here, auto& t, auto) {
      try {
        t.train(one_epoch(here), {.max_steps = 23});
      } catch (const failed_precondition& e) {
        CHECK(std::string(e.what()).find("saved_input::ignored") != std::string::npos);
        ++refused;
        throw;
      }
    });
    CHECK(false);
  } catch (const error&) {
  }
  CHECK(refused == 1);  // the chief has the checkpoint, and knows
  other.restore_input = saved_input::ignored;
  in_cluster(ps, how, other, [&](server& here, auto& t, auto) {
    t.train(one_epoch(here), {.max_steps = 23});
    CHECK(t.global_step() == 23);
  });
}

TEST_CASE("calls of train and evaluate, started again, with parameter servers") {
  runs_of_several_calls(1, sync_replicas{});
}
TEST_CASE("calls of train and evaluate, started again, with all_reduce") { runs_of_several_calls(0, all_reduce{}); }

TEST_CASE("a call after the other workers have left makes no step") {
  for (const int calls : {1, 2})
    in_cluster(1, sync_replicas{}, config_of(""), [&](server& here, auto& t, auto data) {
      t.train(data, {.max_steps = 4});
      if (!here.is_chief()) return;
      for (int k = 1; k <= calls; ++k) t.train(data, {.max_steps = 4 + 4 * k});
      CHECK(t.global_step() == 4);
    });
}

TEST_CASE("several gradients of one worker are those of as many parts of one process") {
  const temp_dir place;
  const points all;
  const auto alone = [&](const std::string& dir, auto... policies) {
    make_trainer<net>(adam{.rate = 0.05}, microbatch{4}, config_of(dir), policies...)
        .train(all.batches(24), {.max_steps = 5});
    return trained(dir);
  };
  const auto together = [&](const std::string& dir, auto... policies) {
    local_cluster{.ps = 1, .workers = 2}.run([&](server& here) {
      if (here.is_ps()) return here.join();
      auto t = make_trainer<net>(connected{here}, sync_replicas{.replicas_to_aggregate = 4}, adam{.rate = 0.05},
                                 config_of(dir), policies...);
      // Parts 0 and 1 of the four are the first worker's, 2 and 3 the second's.
      std::vector<float> x;
      std::vector<std::int32_t> y;
      for (int step = 0; step < 5; ++step)
        for (int k = 0; k < 12; ++k) {
          const auto i = static_cast<std::size_t>((24 * step + 12 * here.worker() + k) % cluster_models::examples);
          x.insert(x.end(), all.x.begin() + static_cast<std::ptrdiff_t>(13 * i),
                   all.x.begin() + static_cast<std::ptrdiff_t>(13 * i + 13));
          y.push_back(all.y[i]);
        }
      t.train(from_spans("x", x, extents{13}, "y", y, extents{}).batch(6), {.max_steps = 5});
    });
    return trained(dir);
  };
  CHECK(run_files::difference(together(place / "b"), alone(place / "a")) == "");
}

// Gradients of 1e-39, whose squares' first moments are below the smallest normal number.
constexpr auto faint = [](graph& g) {
  const value x = g.placeholder("x", {batch, 13}), y = g.placeholder("y", {batch}, int32);
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(dense(x, {.units = 5}), y)) * 1e-20F};
};
TEST_CASE("parameter servers treat subnormal numbers as the policy of their workers says") {
  const points all;
  const auto compared = [&](auto... policies) {
    const temp_dir place;
    make_trainer<faint>(adam{.rate = 0.05}, microbatch{2}, config_of(place / "a"), policies...)
        .train(all.batches(24), {.max_steps = 5});
    local_cluster{.ps = 1, .workers = 2}.run([&](server& here) {
      if (here.is_ps()) return here.join();
      auto t = make_trainer<faint>(connected{here}, sync_replicas{}, adam{.rate = 0.05}, config_of(place / "b"),
                                   policies...);
      t.train(all.batches(12).shard(2, here.worker()), {.max_steps = 5});
    });
    return run_files::difference(trained(place / "b"), trained(place / "a"));
  };
  CHECK(compared() == "");
  CHECK(compared(subnormals::keep{}) == "");
  CHECK(compared(portable{}, subnormals::flush{}) == "");
}

}  // namespace

// The first call may be complete at once (13), be behind what the log holds (12: the state of 13 is saved, at the
// position of its data), or go on (15). Other workers have the chief's folder or none.
TEST_CASE("several calls of train where the cluster's log is ahead of the chief's checkpoint") {
  const temp_dir place;
  const points all;
  make_trainer<net>(adam{.rate = 0.05}, microbatch{2}, config_of(place / "alone"))
      .train(all.batches(24), {.max_steps = 20});
  const auto expected = trained(place / "alone");
  const auto train_to = [&](const std::string& dir, const std::string& others, const std::vector<int>& steps) {
    local_cluster{.ps = 1, .workers = 2}.run([&](server& here) {
      if (here.is_ps()) return here.join();
      auto t = make_trainer<net>(connected{here}, sync_replicas{}, adam{.rate = 0.05},
                                 config_of(here.is_chief() ? dir : others), recovery::log{.directory = dir + "-log"});
      const auto data = all.batches(12).shard(2, here.worker());
      auto own = data;
      for (const int last : steps) t.train(own, {.max_steps = last});
    });
  };
  int runs = 0;
  for (const bool alone : {false, true})
    for (const std::vector<int>& calls :
         {std::vector{20}, {10, 20}, {12, 20}, {13, 20}, {15, 20}, {5, 10, 12, 13, 14, 20}}) {
      CAPTURE(alone);
      CAPTURE(calls.front());
      const std::string dir = place / text("run-", ++runs);
      train_to(dir, dir, {13});
      publish(posix{}, dir + "/checkpoint", "model_checkpoint_path: \"model-10.ckpt\"\n");
      REQUIRE(trained(dir).step == 10);
      train_to(dir, alone ? "" : dir, calls);
      CHECK(run_files::difference(trained(dir), expected) == "");
    }
}

TEST_CASE("a chief without its files takes up the cluster's values, and hides no curve of before") {
  for (const bool supervised : {false, true}) {
    CAPTURE(supervised);
    const temp_dir place;
    const points all;
    const std::string dir = place / "run";
    run_config c = config_of(dir);
    c.save_summary_steps = 1;
    const auto train_to = [&](int last) {
      local_cluster{.ps = 1, .workers = 1}.run([&](server& here) {
        if (here.is_ps()) return here.join();
        auto data = all.batches(24);
        const recovery::log logs{.directory = place / "log"};
        if (!supervised)
          return make_trainer<net>(connected{here}, sync_replicas{}, adam{.rate = 0.05}, c, logs)
              .train(data, {.max_steps = last});
        auto sv = make_supervisor<net>({.logdir = dir, .save_summaries_secs = 1e-9}, connected{here}, sync_replicas{},
                                       adam{.rate = 0.05}, logs);
        auto sess = sv.managed_session("", data);
        while (sess.global_step() < last) sess.run();
      });
    };
    train_to(5);
    std::vector<std::string> names;
    posix{}.list(dir, names);
    for (const auto& n : names)
      if (!n.starts_with(event_file_prefix)) posix{}.remove(join_path(dir, n));
    train_to(8);
    CHECK(trained(dir).step == 8);
    CHECK(run_files::steps_of(run_files::read_curves(posix{}, dir), "loss") ==
          std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8});
  }
}
