// needs: grpc
// A task of a cluster over gRPC with logs, for tests/whole/cluster_counts.cpp, which kills it: TF_CONFIG says which.
//
//   counting_task DIR [--quick]
//
// The program of tests/programs/cluster_log.cpp as processes. Every update of worker w takes 1 from element w of each
// variable, so values count updates. A worker appends letters to DIR/worker-W: b when it begins, t before each push, a
// once that is acknowledged, and e at its end. It ends behind the step at which it finds the file DIR/end-W. With
// --quick silent tasks are taken for dead after about a second.
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/recovery.hpp>
#include <gradus/codecs.hpp>
#include <gradus/data.hpp>
#include <gradus/gradus.hpp>

#include <fcntl.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "rerouted.hpp"

namespace {
using namespace gradus;

constexpr int workers = 2;
// The gradient of a and of b is x; each is on a parameter server of its own.
constexpr auto counters = [](graph& g) {
  const value x = g.placeholder("x", {batch, workers});
  const value a = g.variable("a", {workers, 1}, {.init = zeros}), b = g.variable("b", {workers, 1}, {.init = zeros});
  return model_spec{.loss = reduce_mean(matmul(x, a) + matmul(x, b))};
};

class diary {
public:
  using policy_for = kind::hook;
  diary(const std::string& dir, int worker)
      : file_(::open(join_path(dir, text("worker-", worker)).c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666)),
        end_(join_path(dir, text("end-", worker))) {
    say('b');
  }
  void before_run(const run_context&) const { say('t'); }
  void after_run(run_context& c, const run_values&) const {
    say('a');
    if (::access(end_.c_str(), F_OK) == 0) c.request_stop();
  }
  void end(hooked_session&) const { say('e'); }

private:
  int file_;
  std::string end_;
  void say(char c) const {
    if (::write(file_, &c, 1) != 1) std::abort();
  }
};

void count(const std::string& dir, bool is_quick) {
  const auto config = run_config::from_environment({.model_dir = join_path(dir, "model"),
                                                    .tf_random_seed = 7,
                                                    .save_summary_steps = 0,
                                                    .save_checkpoints_steps = 400,
                                                    .checkpoint_save_graph_def = false});
  const auto task = rerouted::task_of(config, is_quick);
  const server& here = *task;
  if (here.is_ps()) return here.join();
  std::vector<float> x(workers, 0.0F);
  x[static_cast<std::size_t>(here.worker())] = 1;
  auto t = make_trainer<counters>(connected{here}, recovery::log{.directory = join_path(dir, "logs")},
                                  gradient_descent{.rate = 1}, diary(dir, here.worker()), config);
  t.train(from_spans("x", x, extents{workers}).repeat().batch(1), {.max_steps = 1'000'000'000});
  here.finish();
}

}  // namespace

int main(int count_of_words, char** words) {
  if (count_of_words < 2) return std::fprintf(stderr, "expected DIR\n"), 2;
  try {
    count(words[1], count_of_words > 2 && words[2] == std::string_view("--quick"));
  } catch (const std::exception& e) {
    return std::fprintf(stderr, "%s\n", e.what()), 1;
  }
  return 0;
}
