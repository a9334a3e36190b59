// A cluster of threads whose parameter servers have logs, for tests/whole/cluster_log.cpp, which kills it:
//
//   cluster_log asynchronous|synchronous DIR STEPS      from DIR/model and DIR/logs on, up to STEPS updates
//
// Asynchronous: every update of worker w takes 1 from element w of each variable, so values count updates. Before it
// pushes, a worker writes a line of one letter to DIR/worker-W: t (it tries), and a once that is acknowledged; b when
// it begins.
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/local_cluster.hpp>
#include <gradus/cluster/recovery.hpp>

#include <fcntl.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "../whole/cluster_models.hpp"

namespace {
using namespace gradus;

constexpr int workers = 3;
// The gradient of a and of b is x.
constexpr auto counters = [](graph& g) {
  const value x = g.placeholder("x", {batch, workers});
  const value a = g.variable("a", {workers, 1}, {.init = zeros}), b = g.variable("b", {workers, 1}, {.init = zeros});
  return model_spec{.loss = reduce_mean(matmul(x, a) + matmul(x, b))};
};

// What a worker says as it goes.
class diary {
public:
  using policy_for = kind::hook;
  diary(const std::string& path) : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666)) { say('b'); }
  void before_run(const run_context&) const { say('t'); }
  void after_run(const run_context&, const run_values&) const { say('a'); }

private:
  int file_;
  void say(char c) const {
    if (::write(file_, &c, 1) != 1) std::abort();
  }
};

run_config config_of(const std::string& dir) {
  return {.model_dir = join_path(dir, "model"),
          .tf_random_seed = 7,
          .save_summary_steps = 0,
          .save_checkpoints_steps = 40,
          .checkpoint_save_graph_def = false};
}

void count(const server& here, const std::string& dir, std::int64_t steps) {
  const std::string logs = join_path(dir, "logs");
  std::vector<float> x(workers, 0.0F);
  x[static_cast<std::size_t>(here.worker())] = 1;
  auto t = make_trainer<counters>(connected{here}, recovery::log{.directory = logs}, gradient_descent{.rate = 1},
                                  diary(join_path(dir, text("worker-", here.worker()))), config_of(dir));
  t.train(from_spans("x", x, extents{workers}).repeat().batch(1), {.max_steps = steps});
}
void learn(const server& here, const std::string& dir, std::int64_t steps) {
  const cluster_models::points data;
  auto t = make_trainer<cluster_models::mlp>(
      connected{here}, sync_replicas{}, recovery::log{.directory = join_path(dir, "logs")}, adam{.rate = 0.01},
      clip_by_global_norm{0.5}, diary(join_path(dir, text("worker-", here.worker()))), config_of(dir));
  t.train(data.batches(4).shard(here.workers(), here.worker()), {.max_steps = steps});
}

}  // namespace

int main(int count_of_words, char** words) {
  if (count_of_words != 4) return std::fprintf(stderr, "expected MODE DIR STEPS\n"), 2;
  const std::string mode = words[1], dir = words[2];
  const long steps = std::atol(words[3]);
  try {
    local_cluster{.ps = 2, .workers = workers}.run([&](server& here) {
      if (here.is_ps()) return here.join();
      if (mode == "synchronous")
        learn(here, dir, steps);
      else
        count(here, dir, steps);
    });
  } catch (const std::exception& e) {
    return std::fprintf(stderr, "%s\n", e.what()), 1;
  }
  return 0;
}
