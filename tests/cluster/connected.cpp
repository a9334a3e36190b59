// costs: 200
// Training runs as tasks of a cluster: with and without other tasks, by each staleness, resumed and resized, and what
// they refuse.
#include <gradus/cluster/all_reduce.hpp>
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/local_cluster.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/supervisor.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../message.hpp"
#include "../train/run_files.hpp"
#include "../whole/cluster_models.hpp"
#include "../whole/cluster_runs.hpp"

namespace {
using namespace gradus;

// A log sink that keeps lines.
struct kept_lines {
  using policy_for = kind::log_sink;
  std::vector<std::string>* lines;
  void line(std::string_view l) { lines->emplace_back(l); }
  void warning(std::string_view l) { lines->emplace_back(l); }
  void step(const progress_report&, bool) {}
};
using cluster_models::mlp;
using cluster_models::points;
using cluster_runs::config_of;
using cluster_runs::trained;
using testing::temp_dir;

constexpr int round_batch = 12;
const adam with_adam{.rate = 0.01};
const clip_by_global_norm with_clip{0.5};
const exponential_moving_average with_average{.decay = 0.9};

void alone(const std::string& dir, int parts, std::int64_t steps) {
  const points data;
  auto t = make_trainer<mlp>(with_adam, with_clip, with_average, microbatch{parts}, config_of(dir));
  t.train(data.batches(round_batch), {.max_steps = steps});
}
void by_task(const server& here, const std::string& dir, std::int64_t steps) {
  const points data;
  auto t = make_trainer<mlp>(connected{here}, sync_replicas{}, with_adam, with_clip, with_average, config_of(dir));
  t.train(data.batches(round_batch / here.workers()).shard(here.workers(), here.worker()), {.max_steps = steps});
}
void together(const std::string& dir, int ps, int workers, std::int64_t steps) {
  local_cluster{.ps = ps, .workers = workers}.run([&](server& here) {
    if (here.is_ps()) return here.join();
    by_task(here, dir, steps);
  });
}

}  // namespace

TEST_CASE("a server without other tasks trains alone, with the bits of a run without the policy") {
  const temp_dir place;
  alone(place / "a", 1, 30);
  by_task(server::create_local_server(), place / "b", 30);
  CHECK(run_files::difference(trained(place / "b"), trained(place / "a")) == "");
}

TEST_CASE("a run is resumed by another number of parameter servers, and by one process, with the same bits") {
  const temp_dir place;
  alone(place / "whole", 2, 60);
  for (const int ps : {1, 3, 2}) together(place / "split", ps, 2, ps == 1 ? 20 : ps == 3 ? 40 : 60);
  CHECK(run_files::difference(trained(place / "split"), trained(place / "whole")) == "");

  alone(place / "one", 1, 60);
  by_task(server::create_local_server(), place / "begun", 20);
  together(place / "begun", 2, 1, 40);
  by_task(server::create_local_server(), place / "begun", 60);
  CHECK(run_files::difference(trained(place / "begun"), trained(place / "one")) == "");
}

TEST_CASE("microbatch is shared by the workers") {
  const temp_dir place;
  alone(place / "a", 4, 30);
  local_cluster{.ps = 2, .workers = 2}.run([&](server& here) {
    if (here.is_ps()) return here.join();
    const points data;
    auto t = make_trainer<mlp>(connected{here}, sync_replicas{}, with_adam, with_clip, with_average, microbatch{4},
                               config_of(place / "b"));
    t.train(data.batches(round_batch / 2).shard(2, here.worker()), {.max_steps = 30});
  });
  CHECK(run_files::difference(trained(place / "b"), trained(place / "a")) == "");
}

TEST_CASE("a configuration says how the cluster trains") {
  const temp_dir place;
  alone(place / "a", 2, 30);
  run_config config = config_of(place / "b");
  config.train_distribute = sync_replicas{};
  local_cluster{.ps = 1, .workers = 2}.run([&](server& here) {
    if (here.is_ps()) return here.join();
    const points data;
    auto t = make_trainer<mlp>(connected{here}, with_adam, with_clip, with_average, config);
    t.train(data.batches(round_batch / 2).shard(2, here.worker()), {.max_steps = 30});
  });
  CHECK(run_files::difference(trained(place / "b"), trained(place / "a")) == "");
  const server here = server::create_local_server();
  CHECK(says(message_of(status::invalid_argument,
                        [&] { make_trainer<mlp>(connected{here}, asynchronous{}, with_adam, config); }),
             "train_distribute and a policy of the run both say how the cluster trains"));
}

// The default, without a policy not_finite: a loss of NaN ends the run, and so does a gradient of NaN, once its
// variable would be saved.
TEST_CASE("a gradient and a loss that are NaN: a cluster does by default what one process does") {
  constexpr auto roots = [](graph& g) {  // of x = 0: a loss of 0, whose gradient is 0 / 0
    const value x = g.placeholder("x", {batch}), w = g.variable("w", {}, {.init = ones});
    return model_spec{.loss = reduce_mean(sqrt(x * w)) + reduce_mean(square(g.variable("v", {3}, {.init = ones})))};
  };
  struct outcome {
    std::string error;
    run_files::content end;
  };
  const temp_dir place;
  for (const float hostile : {0.0F, std::numeric_limits<float>::quiet_NaN()})
    for (const int workers : {1, 2}) {
      CAPTURE(hostile);
      CAPTURE(workers);
      std::vector<float> x(16, 1.0F);
      x[15] = hostile;  // of the last round, and of the second worker where there are two
      const auto train = [&](const std::string& dir, int size, int shards, int shard, const auto&... policies) {
        run_config c = config_of(dir);
        c.save_checkpoints_steps = 1;
        make_trainer<roots>(policies..., gradient_descent{.rate = 0.1}, c)
            .train(from_spans("x", x, extents{}).repeat().batch(size).shard(shards, shard), {.max_steps = 4});
      };
      const auto run = [&](const std::string& dir, const auto& f) {
        outcome o;
        try {
          f(place / text(dir, workers, hostile));
        } catch (const error& e) {
          o.error = text(name_of(e.kind()), ": ", e.what());
          o.error.resize(o.error.find("in the data"));  // what is behind it is of checkpoints, which the chief has
        }
        o.end = trained(place / text(dir, workers, hostile));
        return o;
      };
      const outcome one = run("alone", [&](const std::string& dir) { train(dir, 4, 1, 0, microbatch{workers}); });
      const auto is_as_one = [&](const char* dir, const auto& when) {
        const outcome all = run(dir, [&](const std::string& to) {
          local_cluster{.ps = 2, .workers = workers}.run([&](server& here) {
            if (here.is_ps()) return here.join();
            train(to, 4 / workers, workers, here.worker(), connected{here}, when);
          });
        });
        // Of two workers the second one sees its loss, and the chief the variable that it would save: the first error
        // is the run's.
        const bool has_two = workers == 2 && hostile != 0;
        CHECK((all.error == one.error || (has_two && says(all.error, "the model diverged: \"w\" is NaN at step 4"))));
        CHECK(run_files::difference(all.end, one.end) == "");
      };
      CHECK(says(one.error, text("the model diverged: ", hostile == 0 ? "\"w\"" : "\"loss\"", " is NaN at step 4")));
      CHECK(one.end.step == 3);
      is_as_one("sync", sync_replicas{});
      if (workers == 1) is_as_one("async", asynchronous{});
    }
}

TEST_CASE("a supervisor's session is a task") {
  const temp_dir place;
  alone(place / "a", 2, 40);
  local_cluster{.ps = 2, .workers = 2}.run([&](server& here) {
    if (here.is_ps()) return here.join();
    const points data;
    auto batches = data.batches(round_batch / 2).shard(2, here.worker());
    auto sv = make_supervisor<mlp>({.logdir = place / "b", .is_chief = here.is_chief(), .tf_random_seed = 7},
                                   connected{here}, sync_replicas{}, with_adam, with_clip, with_average);
    auto sess = sv.managed_session(here.target(), batches);
    while (!sv.should_stop() && sess.global_step() < 40) sess.run();
  });
  CHECK(run_files::difference(trained(place / "b"), trained(place / "a")) == "");
}

TEST_CASE("asynchronous and bounded: every gradient is an update, and the model is trained") {
  for (const bool bounded : {false, true}) {
    CAPTURE(bounded);
    const temp_dir place;
    std::atomic<int> updates{0};
    const auto task = [&](server& here, const auto& when) {
      const points data;
      auto t = make_trainer<mlp>(connected{here}, when, with_adam, with_clip, with_average, config_of(place.path()));
      auto batches = data.batches(round_batch).shard(here.workers(), here.worker());
      std::int64_t before = -1;
      for (int i = 0; i < 40; ++i) {
        t.train(batches, {.steps = 1});
        CHECK(t.global_step() > before);
        before = t.global_step();
        ++updates;
      }
    };
    local_cluster{.ps = 2, .workers = 3}.run([&](server& here) {
      if (here.is_ps()) return here.join();
      bounded ? task(here, ssp{1}) : task(here, asynchronous{});
    });
    CHECK(updates == 120);
    const points data;
    const auto loss_of = [&](const std::string& dir) {
      auto t = make_trainer<mlp>(with_adam, with_clip, with_average, config_of(dir));
      auto batches = data.batches(round_batch);
      const double loss = t.evaluate(batches, {.steps = 8})["loss"];
      CHECK(t.global_step() >= 40);
      return loss;
    };
    alone(place / "alone", 1, 120);  // as many updates, none of them stale
    CHECK(loss_of(place.path()) == doctest::Approx(loss_of(place / "alone")).epsilon(0.1));
  }
}

TEST_CASE("the chief evaluates with averages that lie on the parameter servers") {
  const temp_dir place;
  const points data;
  double expected = 0, found = 0;
  {
    auto t = make_trainer<mlp>(with_adam, with_clip, with_average, microbatch{2}, config_of(place / "a"));
    t.train(data.batches(round_batch), {.max_steps = 30});
    expected = t.evaluate(data.batches(8), {.steps = 5, .use_averages = true})["loss"];
  }
  local_cluster{.ps = 2, .workers = 2}.run([&](server& here) {
    if (here.is_ps()) return here.join();
    auto t = make_trainer<mlp>(connected{here}, sync_replicas{}, with_adam, with_clip, with_average,
                               run_config{.tf_random_seed = 7, .save_summary_steps = 0});
    t.train(data.batches(round_batch / 2).shard(2, here.worker()), {.max_steps = 30});
    if (here.is_chief()) found = t.evaluate(data.batches(8), {.steps = 5, .use_averages = true})["loss"];
  });
  CHECK(found == expected);
}

TEST_CASE("where a worker's data end, the others of a synchronous run stop, and the chief saves what was made") {
  for (const bool chief_has_more : {true, false}) {
    CAPTURE(chief_has_more);
    const temp_dir place;
    std::atomic<int> warned{0};
    local_cluster{.ps = 2, .workers = 3}.run([&](server& here) {
      if (here.is_ps()) return here.join();
      const points data;
      const bool has_more = here.is_chief() ? chief_has_more : here.worker() == 1;
      std::vector<std::string> lines;
      auto t =
          make_trainer<mlp>(connected{here}, sync_replicas{}, with_adam, config_of(place.path()), kept_lines{&lines});
      t.train(from_spans("x", data.x, extents{13}, "y", data.y, extents{}).batch(4).take(has_more ? 9 : 5),
              {.max_steps = 100});
      CHECK(t.global_step() == 5);
      for (const auto& line : lines) warned += line.find("other workers have left") != std::string::npos;
    });
    CHECK(warned == (chief_has_more ? 2 : 1));
    CHECK(trained(place.path()).step == 5);
  }
}

TEST_CASE("a worker whose program ends without training, or swallows an error, is not waited for") {
  for (const bool joins : {false, true}) {
    CAPTURE(joins);
    std::int64_t made = -1;
    local_cluster{.ps = 1, .workers = 2}.run([&](server& here) {
      if (here.is_ps()) return here.join();
      const points data;
      if (!here.is_chief()) {
        if (!joins) return;
        try {
          auto t = make_trainer<mlp>(connected{here}, sync_replicas{}, with_adam);
          t.train(data.batches(4), {.max_steps = 3});
          throw std::runtime_error("given up");
        } catch (const std::runtime_error&) {
          return;
        }
      }
      std::vector<std::string> lines;
      auto t = make_trainer<mlp>(connected{here}, sync_replicas{}, with_adam, kept_lines{&lines});
      t.train(data.batches(4), {.max_steps = 50});
      made = t.global_step();
      CHECK(lines.size() == 1);
      CHECK(says(lines.at(0), "other workers have left"));
    });
    CHECK(made == (joins ? 3 : 0));
  }
}

TEST_CASE("tasks that differ are refused, with what differs") {
  const auto with = [](auto make) {
    std::string said;
    try {
      local_cluster{.ps = 1, .workers = 2}.run([&](server& here) {
        if (here.is_ps()) return here.join();
        const points data;
        auto t = make(here);
        t.train(data.batches(4), {.max_steps = 3});
      });
    } catch (const failed_precondition& e) {
      said = e.what();
    }
    return said;
  };
  const std::string rate = with([](server& here) {
    return make_trainer<mlp>(connected{here}, sync_replicas{}, adam{.rate = here.is_chief() ? 0.1 : 0.2});
  });
  CHECK(says(rate, "rate"));
  CHECK(says(rate, "worker 0"));
  CHECK(says(rate, "worker 1"));
  CHECK(says(rate, "0.1"));
  CHECK(says(rate, "0.2"));
  const std::string strategy = with([](server& here) {
    return make_trainer<mlp>(connected{here}, with_adam,
                             run_config{.train_distribute = here.is_chief() ? distribution_strategy(ssp{1}) : ssp{2}});
  });
  CHECK(says(strategy, "ssp"));
}

namespace {
// Without devices its four variables take turns: kernels of 208 and 80 numbers would be on ps 0, biases on ps 1.
template <bool Placed>
inline constexpr auto two_layers = [](graph& g) {
  const value x = g.placeholder("x", {batch, 13}), y = g.placeholder("y", {batch}, int32);
  const auto hidden = [&] {
    const auto on = g.device(Placed ? "/job:ps/task:1" : "");
    return tanh(dense(x, {.units = 16, .name = "hidden"}));
  };
  const value logits = dense(hidden(), {.units = 5, .name = "logits"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, y))};
};
template <bool Placed = false>
void train_placed(const std::string& dir, const device_function& by_config, const device_function& by_connection) {
  local_cluster{.ps = 2, .workers = 2}.run([&](server& here) {
    if (here.is_ps()) return here.join();
    const points data;
    run_config config = config_of(join_path(dir, "run"));
    if (by_config) config.device_fn = by_config;
    auto t = make_trainer<two_layers<Placed>>(connected{here, by_connection}, sync_replicas{}, with_adam, with_clip,
                                              with_average, recovery::log{.directory = join_path(dir, "logs")}, config);
    t.train(data.batches(6).shard(2, here.worker()), {.max_steps = 20});
  });
}
// Returns the sizes of both parameter servers' logs, which hold the gradients of their variables.
std::pair<std::uintmax_t, std::uintmax_t> logged(const std::string& dir) {
  const auto size = [&](const char* shard) {
    std::uintmax_t all = 0;
    for (const auto& e : std::filesystem::recursive_directory_iterator(join_path(dir, "logs")))
      if (e.is_regular_file() && e.path().string().find(shard) != std::string::npos) all += e.file_size();
    return all;
  };
  return {size("ps-0"), size("ps-1")};
}
}  // namespace

TEST_CASE("device strings decide on which parameter server a variable lies, and change no bit") {
  const temp_dir place;
  train_placed(place / "turns", nullptr, nullptr);
  const auto turns = logged(place / "turns");
  CHECK(turns.first > 3 * turns.second);
  const auto same_bits = [&](const char* dir) {
    CHECK(run_files::difference(trained(place / (std::string(dir) + "/run")), trained(place / "turns/run")) == "");
  };
  train_placed<true>(place / "strings", nullptr, nullptr);
  const auto strings = logged(place / "strings");
  CHECK(2 * strings.second > 3 * strings.first);
  same_bits("strings");

  const auto biases_apart = [](const placed_op& op) {
    return std::string(op.name.find("bias") != op.name.npos ? "/job:ps/task:0" : "/job:ps/task:1");
  };
  train_placed(place / "config", biases_apart, nullptr);
  train_placed(place / "connection", nullptr, biases_apart);
  CHECK(logged(place / "config").second > 3 * logged(place / "config").first);
  CHECK(logged(place / "connection").second > 3 * logged(place / "connection").first);
  same_bits("config"), same_bits("connection");

  // A log is of one placement.
  CHECK(says(message_of(status::failed_precondition, [&] { train_placed(place / "config", nullptr, nullptr); }),
             "is of another run: the setting \"the place of"));
}
TEST_CASE("devices that do not fit the cluster, or that tasks see differently, are refused") {
  const temp_dir place;
  const auto everywhere = [](std::string device) { return [device](const placed_op&) { return device; }; };
  CHECK(says(message_of(status::invalid_argument, [&] { train_placed(place / "a", everywhere("/job:ps/task:2"), {}); }),
             "\"/job:ps/task:2\", and the cluster has no such task; expected a task from 0 to 1"));
  CHECK(says(message_of(status::invalid_argument, [&] { train_placed(place / "b", {}, everywhere("/job:worker")); }),
             "Expected the job ps"));
  CHECK(says(message_of(status::invalid_argument,
                        [&] { train_placed(place / "c", everywhere("/job:ps"), everywhere("/job:ps")); }),
             "keep one"));
  // One function that both tasks call and that counts gives them different answers.
  std::atomic<int> calls = 0;
  const std::string differ = message_of(status::failed_precondition, [&] {
    train_placed(place / "d", [&](const placed_op&) { return text("/job:ps/task:", calls++ / 3 % 2); }, {});
  });
  CHECK(says(differ, "the place of"));
  // Where there is one task, devices say nothing.
  const server own = server::create_local_server();
  const points data;
  auto t = make_trainer<two_layers<true>>(connected{own, everywhere("/job:ps/task:7")}, with_adam);
  t.train(data.batches(6), {.max_steps = 2});
  CHECK(t.global_step() == 2);
  CHECK(says(message_of(status::invalid_argument,
                        [&] {
                          local_cluster{.ps = 0, .workers = 2}.run([&](server& here) {
                            auto all = make_trainer<two_layers<false>>(connected{here, everywhere("/job:ps")},
                                                                       all_reduce{}, with_adam);
                            all.train(data.batches(6), {.max_steps = 2});
                          });
                        }),
             "here every task has all variables; leave it out"));
}
