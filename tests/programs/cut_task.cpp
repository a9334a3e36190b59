// needs: grpc
// A task of a cluster whose variables are cut over its parameter servers, for tests that kill it or cut it off.
// TF_CONFIG says which; without it the program is one process, in which nothing is cut.
//
//   cut_task DIR STEPS [--logs] [--threads] [--quick]
//
//   --logs       parameter servers have logs in DIR/logs (otherwise the run goes back to the last checkpoint)
//   --threads    without TF_CONFIG: two workers and a parameter server as threads
//   --quick      silent tasks are taken for dead, and silent connections are given up, after about a second
//
// It says "trained" when it has made its steps, and leaves the cluster when DIR/gate and DIR/gate-JOB, if they are
// there (pipes), have a writer. Then it says "left", and waits for the others.
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/local_cluster.hpp>
#include <gradus/cluster/recovery.hpp>
#include <gradus/codecs.hpp>
#include <gradus/data.hpp>
#include <gradus/gradus.hpp>

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "rerouted.hpp"

namespace {
using namespace gradus;

// "long" is cut at multiples of 4096 values, into parts of 256 KiB and more: they are sent ahead in pieces, and kept
// where they came in. The rows of "letter" are cut as TensorFlow cuts them. All else is too small for a cut.
constexpr auto model = [](graph& g) {
  const value ids = g.placeholder("ids", {batch, 3}, int32), y = g.placeholder("y", {batch}, int32);
  const value h = tanh(dense(flatten(embedding(ids, {.input_dim = 50, .output_dim = 8, .name = "letter"})),
                             {.units = 16, .name = "hidden"}));
  const value longer = g.variable("long", {204'800}, {.init = random_normal(0, 0.3F)});
  const value logits = dense(dropout(h, 0.25), {.units = 5, .name = "logits"});
  return model_spec{.loss = reduce_mean(sparse_softmax_cross_entropy(logits, y)) +
                            reduce_mean(square(longer * 3.0F)) * reduce_mean(square(h))};
};
constexpr int round_batch = 12;
struct letters {
  std::vector<std::int32_t> ids, y;
  letters() {
    for (int i = 0; i < 96; ++i) {
      for (int k = 0; k < 3; ++k) ids.push_back((i * 37 + k * 11) % 50);
      y.push_back(i * 7 % 5);
    }
  }
  auto batches(int size) const { return from_spans("ids", ids, extents{3}, "y", y, extents{}).repeat().batch(size); }
};

struct words {
  std::string dir;
  std::int64_t steps = 0;
  bool has_logs = false, are_threads = false, is_quick = false;
};

void say(const char* what) {
  std::printf("%s\n", what);
  std::fflush(stdout);
}

template <class... Policies>
void train_by(const server& here, const connected& connection, const words& w, const run_config& config,
              const Policies&... policies) {
  const letters data;
  auto t = make_trainer<model>(connection, sync_replicas{}, adam{.rate = 0.01}, clip_by_global_norm{0.5},
                               exponential_moving_average{.decay = 0.9}, config, policies...);
  t.train(data.batches(round_batch / here.workers()).shard(here.workers(), here.worker()), {.max_steps = w.steps});
  say("trained");
  for (const std::string& gate : {std::string("gate"), text("gate-", here.def().job_name)})
    if (const int g = ::open(join_path(w.dir, gate).c_str(), O_RDONLY); g >= 0) ::close(g);
}
void train(const server& here, const connected& connection, const words& w, const run_config& config) {
  if (w.has_logs)
    train_by(here, connection, w, config, recovery::log{.directory = join_path(w.dir, "logs")});
  else
    train_by(here, connection, w, config);
}

void run(const words& w) {
  const auto config = run_config::from_environment({.model_dir = join_path(w.dir, "model"),
                                                    .tf_random_seed = 7,
                                                    .save_summary_steps = 0,
                                                    .save_checkpoints_steps = 5,
                                                    .checkpoint_save_graph_def = false});
  if (w.are_threads)
    return local_cluster{.ps = 1, .workers = 2}.run([&](server& here) {
      if (here.is_ps()) return here.join();
      train(here, connected{here}, w, config);
    });
  const auto here = rerouted::task_of(config, w.is_quick);
  if (here->is_ps()) return here->join();
  train(*here, connected{*here, fixed_size_partitioner{.shards = std::max(here->shards(), 1)}}, w, config);
  say("left");
  here->finish();
}

}  // namespace

int main(int count_of_words, char** all) {
  if (count_of_words < 3) return std::fprintf(stderr, "expected DIR STEPS\n"), 2;
  words w{.dir = all[1], .steps = std::atoll(all[2])};
  for (int i = 3; i < count_of_words; ++i) {
    const std::string_view word = all[i];
    w.has_logs = w.has_logs || word == "--logs";
    w.are_threads = w.are_threads || word == "--threads";
    w.is_quick = w.is_quick || word == "--quick";
  }
  try {
    run(w);
  } catch (const std::exception& e) {
    return std::fprintf(stderr, "%s\n", e.what()), 1;
  }
  return 0;
}
