// costs: 100
// Training without parameter servers, on threads: the bits of one process, resumed in both directions, how it ends, and
// what it refuses.
#include <gradus/cluster/all_reduce.hpp>
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/local_cluster.hpp>
#include <gradus/pass/optimize.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "../message.hpp"
#include "../train/run_files.hpp"
#include "../whole/cluster_models.hpp"
#include "../whole/cluster_runs.hpp"

namespace {
using namespace gradus;
using cluster_models::mlp;
using cluster_models::points;
using cluster_runs::trained;
using testing::temp_dir;

constexpr int round_batch = 12;
run_config config_of(const std::string& dir) {
  run_config c{.tf_random_seed = 7, .save_summary_steps = 0, .checkpoint_save_graph_def = false};
  if (!dir.empty()) c.model_dir = dir;
  return c;
}
// The optimizer of these runs, as policies, behind others.
template <class... More>
auto make(const std::string& dir, const More&... more) {
  return make_trainer<mlp>(more..., adam{}, exponential_decay{.initial = 0.01, .decay_steps = 10, .decay_rate = 0.9},
                           clip_by_global_norm{0.5}, exponential_moving_average{.decay = 0.9},
                           dynamic_loss_scale{.initial = 64, .growth_interval = 7}, config_of(dir));
}
double loss_of(auto& trainer) {
  return static_cast<double>(trainer.steps().template output_of<mode::train>(output::loss).template as<float>()[0]);
}
// Gives the last step's loss.
double alone(const std::string& dir, int parts, std::int64_t steps) {
  auto t = make(dir, microbatch{parts});
  const points data;
  t.train(data.batches(round_batch), {.max_steps = steps});
  return loss_of(t);
}
// What each worker does with its trainer, when that has trained.
template <class Then>
void together(const std::string& dir, int workers, std::int64_t steps, Then then, const all_reduce& how = {}) {
  local_cluster{.ps = 0, .workers = workers}.run([&](server& here) {
    auto t = make(dir, connected{here}, how);
    const points data;
    t.train(data.batches(round_batch / workers).shard(workers, here.worker()), {.max_steps = steps});
    then(here, t);
  });
}
void together(const std::string& dir, int workers, std::int64_t steps, const all_reduce& how = {}) {
  together(
      dir, workers, steps, [](const server&, auto&) {}, how);
}
// What a state holds, bit for bit.
std::vector<std::byte> bits_of(const state_list& list) {
  std::vector<std::byte> all;
  for (const state_entry& e : list.entries()) all.insert(all.end(), e.bytes.begin(), e.bytes.end());
  return all;
}

}  // namespace

TEST_CASE("n workers end with the bits of one process with microbatch{n}, and each has all of them") {
  const temp_dir place;
  for (const int workers : {1, 2, 4}) {
    CAPTURE(workers);
    const double loss = alone(place / text("alone", workers), workers, 30);
    std::vector<std::vector<std::byte>> bits(static_cast<std::size_t>(workers));
    std::vector<double> losses(bits.size());
    together(place / text("together", workers), workers, 30, [&](const server& here, auto& t) {
      bits[static_cast<std::size_t>(here.worker())] = bits_of(t.state());
      losses[static_cast<std::size_t>(here.worker())] = loss_of(t);
    });
    CHECK(run_files::difference(trained(place / text("together", workers)), trained(place / text("alone", workers))) ==
          "");
    for (std::size_t k = 0; k < bits.size(); ++k) {
      CHECK(bits[k] == bits[0]);
      CHECK(losses[k] == loss);  // the mean over all workers
    }
  }
  together(place / "pieces", 4, 30, {.bucket_bytes = 100});
  CHECK(run_files::difference(trained(place / "pieces"), trained(place / "alone4")) == "");
}

TEST_CASE("a run is resumed by workers and by one process, with the same bits; the chief's files are enough") {
  const temp_dir place;
  alone(place / "whole", 2, 60);
  for (const int steps : {20, 40, 60}) together(place / "split", 2, steps);
  CHECK(run_files::difference(trained(place / "split"), trained(place / "whole")) == "");

  alone(place / "one", 1, 60);  // the same input in all parts, so that its position is good for each
  const server by_itself = server::create_local_server();
  const auto one = [&](const server& here, std::int64_t steps) {
    auto t = make(place / "begun", connected{here}, all_reduce{});
    const points data;
    t.train(data.batches(round_batch).shard(here.workers(), here.worker()), {.max_steps = steps});
  };
  one(by_itself, 20);
  together(place / "begun", 1, 40);
  one(by_itself, 60);
  CHECK(run_files::difference(trained(place / "begun"), trained(place / "one")) == "");
}

TEST_CASE("the chief evaluates, with the averages that are where the values are") {
  const temp_dir place;
  alone(place / "a", 2, 30);
  const points data;
  const double expected =
      make(place / "a", microbatch{2}).evaluate(data.batches(8), {.steps = 5, .use_averages = true})["loss"];
  together(place / "b", 2, 30, [&](const server&, auto& t) {
    CHECK(t.evaluate(points().batches(8), {.steps = 5, .use_averages = true})["loss"] == expected);
  });
}

// Nothing looks at all gradients here, so a step shows each as its update would be made.
TEST_CASE("without a norm, and with parts of microbatch that the workers share: the same bits") {
  const temp_dir place;
  const auto train = [&](const server& here, const std::string& dir, const auto&... more) {
    auto t = make_trainer<mlp>(connected{here}, all_reduce{.bucket_bytes = 300}, more..., momentum{.rate = 0.1},
                               config_of(dir));
    const points data;
    t.train(data.batches(round_batch / here.workers()).shard(here.workers(), here.worker()), {.max_steps = 30});
  };
  train(server::create_local_server(), place / "one", microbatch{4});
  local_cluster{.ps = 0, .workers = 4}.run([&](server& here) { train(here, place / "four"); });
  local_cluster{.ps = 0, .workers = 2}.run([&](server& here) { train(here, place / "two", microbatch{4}); });
  CHECK(run_files::difference(trained(place / "four"), trained(place / "one")) == "");
  CHECK(run_files::difference(trained(place / "two"), trained(place / "one")) == "");
  CHECK_THROWS_WITH_AS(
      local_cluster({.ps = 0, .workers = 2}).run([&](server& here) { train(here, "", microbatch{3}); }),
      doctest::Contains("3 parts cannot be shared evenly by the 2 workers of all_reduce; expected a multiple of 2"),
      invalid_argument);
}

TEST_CASE("where a worker's data end, or its program, the others stop, and the chief saves what was made") {
  for (const bool chief_has_more : {true, false}) {
    CAPTURE(chief_has_more);
    const temp_dir place;
    local_cluster{.ps = 0, .workers = 3}.run([&](server& here) {
      const points data;
      const bool has_more = here.is_chief() ? chief_has_more : here.worker() == 1;
      auto t = make(place.path(), connected{here}, all_reduce{});
      t.train(data.batches(4).take(has_more ? 9 : 5), {.max_steps = 100});
      CHECK(t.global_step() == 5);
    });
    CHECK(trained(place.path()).step == 5);
  }
  const temp_dir place;
  std::atomic<std::int64_t> made = -1;
  local_cluster{.ps = 0, .workers = 2}.run([&](server& here) {
    if (!here.is_chief()) return;
    const points data;
    auto t = make(place.path(), connected{here}, all_reduce{});
    t.train(data.batches(4), {.max_steps = 50});
    made = t.global_step();
  });
  CHECK(made == 0);
}

TEST_CASE("a worker that throws ends the others, with its name") {
  const temp_dir place;
  std::vector<std::string> said(3);
  const auto run = [&] {
    local_cluster{.ps = 0, .workers = 3}.run([&](server& here) {
      const points data;
      auto t = make(place.path(), connected{here}, all_reduce{});
      try {
        t.train(data.batches(4), {.max_steps = 3});
        if (here.worker() == 1) throw std::runtime_error("the disk is gone");
        t.train(data.batches(4), {.max_steps = 9});
      } catch (const error& e) {
        said[static_cast<std::size_t>(here.worker())] = e.what();
        throw;
      }
    });
  };
  CHECK_THROWS_WITH_AS(run(), "the disk is gone", std::runtime_error);
  for (const std::size_t k : {0U, 2U}) {
    CAPTURE(said[k]);
    CHECK(says(said[k], "the cluster has ended"));
    CHECK(says(said[k], "worker 1 has failed: the disk is gone"));
  }
}

TEST_CASE("what cannot be trained so is refused, with the remedy") {
  const auto said = [](status expected, const local_cluster& c, auto make_one) {
    return message_of(expected, [&] {
      c.run([&](server& here) {
        if (here.is_ps()) return here.join();
        const points data;
        auto t = make_one(here);
        t.train(data.batches(4), {.max_steps = 2});
      });
    });
  };
  const local_cluster two{.ps = 0, .workers = 2};
  const auto how = [&](const local_cluster& c, const all_reduce& a) {
    return said(status::invalid_argument, c, [&](server& here) { return make("", connected{here}, a); });
  };
  CHECK(says(how(two, {.bucket_bytes = 0}), "expected bucket_bytes of 1 or more, found 0"));
  CHECK(says(how(two, {.sum = library_sum}), "library_sum is MPI's, and these workers are not under MPI"));
  two.run([](server& here) {
    CHECK(says(message_of(status::invalid_argument, [&] { detail::check_all_reduce({}, here, true, false); }),
               "recovery::log is kept by parameter servers, and there are none; leave it out"));
  });
  CHECK(says(how({.ps = 1, .workers = 2}, {}), "the workers of this cluster have 1 parameter servers"));
  CHECK(says(how({.ps = 1, .workers = 2}, {}), "local_cluster{.ps = 0, .workers = 2}"));
  const auto twice = [](graph& g) {
    const value x = g.placeholder("x", {batch, 13}), y = cast(g.placeholder("y", {batch}, int32), float32);
    const value w = g.variable("w", {13, 1}), loss = reduce_mean(square(reshape(matmul(x, w), {-1}) - y));
    const auto list = compute_gradients(loss);
    return model_spec{.loss = loss,
                      .train_op = apply_gradients({{list[0].gradient, w}, {list[0].gradient.dense * 3.0, w}})};
  };
  const auto by = [&](const local_cluster& c, auto how) {
    return said(status::unimplemented, c, [&](server& here) {
      return make_trainer(twice, connected{here}, how, gradient_descent{.rate = 0.1}, config_of(""));
    });
  };
  CHECK(says(by(two, all_reduce{}), "all_reduce: the train op updates \"w\" twice in one step"));
  CHECK(says(by({.ps = 1, .workers = 1}, asynchronous{}), "servers: the train op updates \"w\" twice in one step"));
  const std::string differs = said(status::failed_precondition, two, [](server& here) {
    return make("", connected{here}, all_reduce{.bucket_bytes = 100 + here.worker()});
  });
  for (const char* word : {"worker 0", "worker 1", "100", "101", "cannot train one model"}) CHECK(says(differs, word));
  CHECK(says(message_of(status::failed_precondition,
                        [&] {
                          two.run([&](server& here) {
                            const points data;
                            auto t = make("", connected{here}, all_reduce{});
                            t.train(data.batches(4), {.max_steps = 2});
                            t.steps().enter();
                          });
                        }),
             "start the cluster again"));
}

// Worker 1 fails in a step, and lets its error go only when worker 0, which waited for it, has gone with its own.
TEST_CASE("the first error of a cluster is the cause, also where an error that follows from it is quicker") {
  std::atomic<bool> is_gone = false;
  struct going {
    std::atomic<bool>& is_gone;
    bool waits;
    ~going() {
      if (!waits) is_gone = true, is_gone.notify_all();
      if (waits) is_gone.wait(false);
      for (int i = 0; waits && i < 10000; ++i) std::this_thread::yield();
    }
  };
  const std::string said = message_of(status::failed_precondition, [&] {
    local_cluster{.ps = 0, .workers = 2}.run([&](server& here) {
      const going last{is_gone, here.worker() == 1};
      const points data;
      auto t = make("", connected{here}, all_reduce{.bucket_bytes = 100 + here.worker()});
      t.train(data.batches(4), {.max_steps = 2});
    });
  });
  CHECK(says(said, "cannot train one model"));
}
