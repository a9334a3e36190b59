// costs: 300
// Variables that are cut over parameter servers: a cluster, on threads and in virtual time, ends with the bits of one
// process, its checkpoint opens with any other cut, and its logs bring the parts back.
#include <gradus/cluster/all_reduce.hpp>
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/local_cluster.hpp>
#include <gradus/cluster/simulated.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "../message.hpp"
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
  t.train(data.batches(round_batch).shard(1, 0), {.max_steps = to});
}
void by_task(const server& here, const std::string& dir, std::int64_t to = steps) {
  const points data;
  auto t = make_trainer<model>(connected{here, fixed_size_partitioner{.shards = here.shards()}}, sync_replicas{},
                               with_adam, with_clip, with_average, config_of(dir));
  t.train(data.batches(round_batch / here.workers()).shard(here.workers(), here.worker()), {.max_steps = to});
}
template <class Cluster>
auto together(const Cluster& c, const std::string& dir, std::int64_t to = steps) {
  return c.run([&](server& here) {
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

TEST_CASE("an asynchronous update of parts is that of one process, where one worker makes all") {
  const temp_dir place;
  alone(place / "alone", 1);
  local_cluster{.ps = 3, .workers = 1}.run([&](server& here) {
    if (here.is_ps()) return here.join();
    const points data;
    auto t = make_trainer<model>(
        connected{here, min_max_variable_partitioner{.max_partitions = 4, .min_slice_bytes = 16 << 10}}, asynchronous{},
        with_adam, with_clip, with_average, config_of(place / "parts"));
    t.train(data.batches(round_batch).shard(1, 0), {.max_steps = steps});
  });
  CHECK(run_files::difference(trained(place / "parts"), trained(place / "alone")) == "");
}

TEST_CASE(
    "in virtual time, with lost messages, and workers and parameter servers that crash, they end with the same bits") {
  const temp_dir place;
  alone(place / "1", 1), alone(place / "2", 2);
  std::uint64_t crashes = 0, ps_crashes = 0;
  for (const std::uint64_t seed : {1, 2, 3}) {
    CAPTURE(seed);
    simulated c{.seed = seed,
                .ps = static_cast<int>(2 + seed % 2),
                .workers = static_cast<int>(1 + seed / 2 % 2),
                .faults = simulated_faults::drawn(seed),
                .most_secs = 600};
    c.faults.crashes += 2, c.faults.ps_crashes += 2;
    const std::string dir = place / text("seed-", seed);
    const simulated_counts counts = together(c, dir).counts;
    crashes += counts.crashes, ps_crashes += counts.ps_crashes;
    CHECK(trained(dir).step == steps);
    CHECK(run_files::difference(trained(dir), trained(place / text(c.workers))) == "");
  }
  CHECK(crashes != 0);
  CHECK(ps_crashes != 0);
}

TEST_CASE("a checkpoint has whole variables: it opens with any number of parameter servers, and in one process") {
  const temp_dir place;
  alone(place / "whole", 2, 16);
  const std::string dir = place / "moved";
  together(local_cluster{.ps = 3, .workers = 2}, dir, 4);
  together(local_cluster{.ps = 1, .workers = 2}, dir, 8);
  together(local_cluster{.ps = 2, .workers = 2}, dir, 12);
  local_cluster{.ps = 2, .workers = 2}.run([&](server& here) {  // whole variables
    if (here.is_ps()) return here.join();
    const points data;
    auto t = make_trainer<model>(connected{here}, sync_replicas{}, with_adam, with_clip, with_average, config_of(dir));
    t.train(data.batches(round_batch / 2).shard(2, here.worker()), {.max_steps = 14});
  });
  together(local_cluster{.ps = 3, .workers = 2}, dir, 16);
  CHECK(run_files::difference(trained(dir), trained(place / "whole")) == "");

  alone(place / "one", 1, 12);
  by_task(server::create_local_server(), place / "begun", 4);
  together(local_cluster{.ps = 3, .workers = 1}, place / "begun", 8);
  alone(place / "begun", 1, 12);
  CHECK(run_files::difference(trained(place / "begun"), trained(place / "one")) == "");
}

namespace {
void logged(const std::string& dir, const std::string& logs, std::int64_t to, int parts, std::int64_t stops_at = -1) {
  local_cluster{.ps = 2, .workers = 2}.run([&](server& here) {
    if (here.is_ps()) return here.join();
    const points data;
    auto t = make_trainer<model>(connected{here, fixed_size_partitioner{.shards = parts}}, sync_replicas{},
                                 recovery::log{.directory = logs}, with_adam, with_clip, with_average, config_of(dir));
    auto batches = data.batches(round_batch / 2).shard(2, here.worker());
    if (stops_at >= 0) {
      t.train(batches, {.max_steps = stops_at});
      throw std::runtime_error("this task fails");
    }
    t.train(batches, {.max_steps = to});
  });
}
}  // namespace

TEST_CASE("parameter servers that begin again have their parts, from their logs or from the checkpoint") {
  const temp_dir place;
  alone(place / "whole", 2);
  const std::string logs = place / "logs";
  CHECK_THROWS(logged(place / "a", logs, steps, 2, 7));  // the chief saved at 5 and at the end of its call
  std::filesystem::remove_all(place / "a");              // without a checkpoint the logs are all that there is
  logged(place / "a", logs, steps, 2);
  CHECK(run_files::difference(trained(place / "a"), trained(place / "whole")) == "");

  const std::string other = message_of(status::failed_precondition, [&] { logged(place / "a", logs, steps + 4, 1); });
  CHECK_MESSAGE(says(other, "the parts of \"long\""), other);

  CHECK_THROWS(local_cluster{.ps = 3, .workers = 2}.run([&](server& here) {
    if (here.is_ps()) return here.join();
    by_task(here, place / "b", 7);
    throw std::runtime_error("this task fails");
  }));
  together(local_cluster{.ps = 3, .workers = 2}, place / "b");
  CHECK(run_files::difference(trained(place / "b"), trained(place / "whole")) == "");
}

namespace {
constexpr auto with_table = [](graph& g) {
  const value ids = g.placeholder("ids", {batch, 3}, int32), y = g.placeholder("y", {batch}, int32);
  const value h = flatten(embedding(ids, {.input_dim = 50, .output_dim = 8, .name = "letter"}));
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(dense(h, {.units = 5, .name = "logits"}), y))};
};
struct words {
  std::vector<std::int32_t> x, y;
  words() {
    for (int i = 0; i < 96; ++i) {
      for (int k = 0; k < 3; ++k) x.push_back((i * 37 + k * 11) % 50);
      y.push_back(i * 7 % 5);
    }
  }
  auto batches(int size) const { return from_spans("ids", x, extents{3}, "y", y, extents{}).repeat().batch(size); }
};
template <class... Policies>
void table(const std::string& dir, int ps, int workers, const Policies&... policies) {
  local_cluster{.ps = ps, .workers = workers}.run([&](server& here) {
    if (here.is_ps()) return here.join();
    const words data;
    auto t = make_trainer<with_table>(connected{here, fixed_size_partitioner{.shards = here.shards()}}, sync_replicas{},
                                      policies..., config_of(dir));
    t.train(data.batches(8).shard(here.workers(), here.worker()), {.max_steps = 12});
  });
}
}  // namespace

TEST_CASE("a table whose gradient comes as rows is cut by rows, also under a clip by the global norm") {
  const temp_dir place;
  const words data;
  make_trainer<with_table>(with_adam, with_clip, with_average, config_of(place / "alone"))
      .train(data.batches(8).shard(1, 0), {.max_steps = 12});
  for (int ps = 1; ps <= 3; ++ps) {
    CAPTURE(ps);
    table(place / text("1-", ps), ps, 1, with_adam, with_clip, with_average);
    CHECK(run_files::difference(trained(place / text("1-", ps)), trained(place / "alone")) == "");
    table(place / text("2-", ps), ps, 2, with_adam, with_clip, with_average);
    CHECK(run_files::difference(trained(place / text("2-", ps)), trained(place / "2-1")) == "");
  }
  const std::string whole =
      message_of(status::invalid_argument, [&] { table(place / "lamb", 2, 1, lamb{.rate = 0.1}); });
  CHECK_MESSAGE(says(whole, "the partitioner cuts \"letter/embeddings\" [50, 8], and its rule"), whole);
}

TEST_CASE("tasks that cut in different ways are refused, and so is a cut where every task has all variables") {
  const temp_dir place;
  const std::string other = message_of(status::failed_precondition, [&] {
    local_cluster{.ps = 2, .workers = 2}.run([&](server& here) {
      if (here.is_ps()) return here.join();
      const points data;
      auto t = make_trainer<model>(connected{here, fixed_size_partitioner{.shards = 2 + here.worker()}},
                                   sync_replicas{}, with_adam, config_of(place / "a"));
      t.train(data.batches(6).shard(2, here.worker()), {.max_steps = 4});
    });
  });
  CHECK_MESSAGE(says(other, "the parts of \"wide\""), other);
  CHECK_MESSAGE(says(other, "from rows 0, 16, 24"), other);
  const std::string nowhere = message_of(status::invalid_argument, [&] {
    local_cluster{.ps = 0, .workers = 2}.run([&](server& here) {
      make_trainer<model>(connected{here, fixed_size_partitioner{.shards = 2}}, all_reduce{}, with_adam,
                          config_of(place / "b"));
    });
  });
  CHECK_MESSAGE(says(nowhere, "all_reduce: a device function or a partitioner gives variables to parameter servers"),
                nowhere);
}

namespace {
constexpr auto with_namesake = [](graph& g) {
  const value x = g.placeholder("x", {batch, 13}), y = g.placeholder("y", {batch}, int32);
  const value wide = matmul(x, g.variable("wide", {13, 8192}, {.init = random_normal(0, 0.3F)}));
  const value own = g.variable("wide/part_1", {5}, {.init = ones});
  return model_spec{.loss = reduce_mean(square(wide)) * reduce_mean(square(own)) +
                            reduce_mean(sparse_softmax_cross_entropy(dense(x, {.units = 5, .name = "logits"}), y))};
};
}  // namespace

TEST_CASE("a model whose own variable has the name of a part is refused before it is trained, or trains uncut") {
  const temp_dir place;
  const points data;
  const auto run = [&](const std::string& dir, const variable_partitioner& cut) {
    try {
      local_cluster{.ps = 2, .workers = 1}.run([&](server& here) {
        if (here.is_ps()) return here.join();
        auto t =
            make_trainer<with_namesake>(connected{here, cut}, sync_replicas{}, with_adam, with_average, config_of(dir));
        t.train(data.batches(6), {.max_steps = 4});
      });
    } catch (const error& e) {
      return text(name_of(e.kind()), ": ", e.what());
    }
    return std::string();
  };
  CHECK(run(place / "cut",
            [](std::string_view, dtype, const extents& dims) {
              return cut_along{0, dims[0] > 5 ? 2 : 1};
            }) ==
        "invalid_argument: the partitioner cuts \"wide\" [13, 8192], and the model has a variable \"wide/part_1\", as "
        "one "
        "of its parts would be named; rename that variable, or give a partitioner that returns 1 part for \"wide\"");
  CHECK(run(place / "whole", [](std::string_view name, dtype, const extents&) {
          return cut_along{0, name == "wide" ? 1 : 2};
        }) == "");
  make_trainer<with_namesake>(with_adam, with_average, config_of(place / "alone"))
      .train(data.batches(6), {.max_steps = 4});
  CHECK(run_files::difference(trained(place / "whole"), trained(place / "alone")) == "");
}

namespace {
// Of an example whose `grows` is 0, the gradient of element 7000 of "long" is 0 / 0, or that of the rows of "letter"
// which it lists, though the loss is finite. "long" is cut at 4096, the rows of its hostile example are those of the
// last part.
constexpr auto roots = [](graph& g) {
  const value ids = g.placeholder("ids", {batch, 3}, int32), z = g.placeholder("z", {batch, 9001}),
              s = g.placeholder("s", {batch, 1});
  const value rows = reshape(embedding(ids, {.input_dim = 50, .output_dim = 8, .name = "letter"}), {-1, 24});
  const value longer = g.variable("long", {9001}, {.init = ones});
  return model_spec{.loss = reduce_mean(sqrt(z * longer)) + reduce_mean(sqrt(s * (square(rows) + 1.0F))) +
                            reduce_mean(square(dense(rows, {.units = 5, .name = "logits"})))};
};
enum hostile { none, in_long, in_letter, in_both };
struct numbers {
  static constexpr int all = 24,
                       at = 18;  // the example of the hostile numbers, in the fourth batch of 6, or of 3 and 3
  std::vector<std::int32_t> ids;
  std::vector<float> z = std::vector<float>(all * 9001, 1.0F), s = std::vector<float>(all, 1.0F);
  explicit numbers(hostile h) {
    for (int i = 0; i < all; ++i)
      for (int k = 0; k < 3; ++k) ids.push_back(i == at ? 47 + k : (i * 37 + k * 11) % 50);
    if (h == in_long || h == in_both) z[at * 9001 + 7000] = 0;
    if (h == in_letter || h == in_both) s[at] = 0;
  }
  auto batches(int size) const {
    return from_spans("ids", ids, extents{3}, "z", z, extents{9001}, "s", s, extents{1}).repeat().batch(size);
  }
};
struct outcome {
  std::string error;
  run_files::content end;
};
outcome outcome_of(const std::string& dir, const std::function<void()>& program) {
  outcome o;
  try {
    program();
  } catch (const error& e) {
    o.error = text(name_of(e.kind()), ": ", e.what());
    // Where the variable lies on another shard than the one that raises, its value is not known there.
    if (const auto first = o.error.find("\" is "), there = o.error.find("\", on shard "); there != std::string::npos)
      o.error.resize(there);
    else if (first != std::string::npos)
      o.error.resize(first);
    CHECK(says(e.what(), " in the step after step 3; nothing was updated"));
  }
  o.end = trained(dir);
  return o;
}
// One process, or two workers without a cut, beside clusters with one.
template <class Policy>
void as_without_a_cut(const Policy& policy) {
  const temp_dir place;
  for (const hostile h : {none, in_long, in_letter, in_both}) {
    CAPTURE(h);
    const numbers data(h);
    const auto train = [&](const std::string& dir, const server& here, const connected& connection) {
      run_config config = config_of(dir);
      config.save_checkpoints_steps = 1;
      make_trainer<roots>(connection, sync_replicas{}, policy, with_adam, with_average, config)
          .train(data.batches(6 / here.workers()).shard(here.workers(), here.worker()), {.max_steps = 6});
    };
    const auto cluster = [&](const std::string& dir, int ps, int workers, std::int64_t parts) {
      return outcome_of(place / dir, [&] {
        local_cluster{.ps = ps, .workers = workers}.run([&](server& here) {
          if (here.is_ps()) return here.join();
          train(place / dir, here, connected{here, fixed_size_partitioner{.shards = parts}});
        });
      });
    };
    for (const int workers : {1, 2}) {
      CAPTURE(workers);
      const std::string name = text(static_cast<int>(h), '-', workers);
      const server alone = server::create_local_server();
      const outcome one = workers == 2
                              ? cluster(name, 1, 2, 1)
                              : outcome_of(place / name, [&] { train(place / name, alone, connected{alone}); });
      const bool raises = Policy::raises && h != none;
      CHECK((one.error != "") == raises);
      CHECK(one.end.step == (raises ? 3 : 6));
      for (const int ps : {2, 3}) {
        CAPTURE(ps);
        const outcome cut = cluster(text(name, "-on-", ps), ps, workers, ps);
        CHECK(cut.error == one.error);
        CHECK(run_files::difference(cut.end, one.end) == "");
      }
    }
  }
}
}  // namespace

TEST_CASE("a gradient that is not finite in a part of a variable: not_finite::skip does what it does without a cut") {
  as_without_a_cut(not_finite::skip{});
}
TEST_CASE("the same with not_finite::raise, which names the whole variable") { as_without_a_cut(not_finite::raise{}); }
