// How soon a cluster of processes goes on when a task of it was killed and started again: a parameter server with
// 100 MB of state and a log, a chief and a worker, over gRPC on this machine.
//
//   bench_recovery [kills of each]
//
// The program starts itself as every task. A time is that from the start of the new process to the next batch that a
// worker asks for, which is behind a whole step; for the parameter server that of the slower of the two workers.
//
// needs: grpc
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/grpc.hpp>
#include <gradus/codecs.hpp>
#include <gradus/data.hpp>
#include <gradus/gradus.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/run_environment.hpp>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace {
using namespace gradus;

constexpr auto model = [](graph& g) {  // 25 million parameters
  const auto x = g.placeholder("x", {batch, 1000}), y = g.placeholder("y", {batch, 1});
  const auto h = tanh(dense(tanh(dense(x, {.units = 12'500})), {.units = 1000}));
  return model_spec{.loss = reduce_mean(square(dense(h, {.units = 1}) - y))};
};

// A task: appends a byte to the file of its name for each batch.
void run_task(const std::string& folder) {
  const auto config = run_config::from_environment({.model_dir = folder + "/run"});
  const server here(gradus::grpc{}, config);
  if (here.is_ps()) return here.join();
  std::FILE* const seen = std::fopen(text(folder, "/", here.def().job_name).c_str(), "a");
  std::vector<float> x(100'000), y(100);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 17) / 170;
  auto input = from_spans("x", x, extents{1000}, "y", y, extents{1}).repeat().batch(2).map([seen](auto b) {
    std::fputc('.', seen);
    std::fflush(seen);
    return b;
  });
  auto t = make_trainer<model>(connected{here}, gradient_descent{.rate = 1e-3F}, silent{}, config,
                               recovery::log{.directory = folder + "/logs"});
  t.train(input.shard(here.workers(), here.worker()), {.max_steps = 1'000'000});
}

double seconds() { return system_clock{}.elapsed(); }

struct cluster {
  std::string program, folder;
  std::map<std::string, pid_t> tasks = {};

  void start(const std::string& job) {
    const pid_t child = ::fork();
    if (child == 0) {
      const std::string config = text(
          R"({"cluster": {"ps": ["localhost:4790"], "chief": ["localhost:1"], "worker": ["localhost:2"]}, "task": )",
          R"({"type": ")", job, R"(", "index": 0}})");
      ::setenv("TF_CONFIG", config.c_str(), 1);
      ::execl(program.c_str(), program.c_str(), folder.c_str(), nullptr);
      ::_exit(127);
    }
    tasks[job] = child;
  }
  void kill(const std::string& job) {
    ::kill(tasks[job], SIGKILL);
    ::waitpid(tasks[job], nullptr, 0);
  }
  long batches(const std::string& job) const {
    std::FILE* const f = std::fopen((folder + "/" + job).c_str(), "r");
    if (f == nullptr) return 0;
    std::fseek(f, 0, SEEK_END);
    const long n = std::ftell(f);
    std::fclose(f);
    return n;
  }
  // Until each of these has asked for so many batches more.
  double wait_for(const std::vector<std::string>& jobs, long more) const {
    const double since = seconds();
    std::vector<long> had;
    for (const auto& j : jobs) had.push_back(batches(j));
    for (;;) {
      bool all = true;
      for (std::size_t i = 0; i < jobs.size(); ++i) all = all && batches(jobs[i]) >= had[i] + more;
      if (all) return seconds() - since;
      ::usleep(2000);
    }
  }
  double kill_and_start(const std::string& job, const std::vector<std::string>& go_on) {
    kill(job);
    start(job);
    const double secs = wait_for(go_on, 1);
    wait_for({"chief", "worker"}, 4);
    return secs;
  }
};
}  // namespace

int main(int argc, char** argv) {
  if (std::getenv("TF_CONFIG") != nullptr) return run_task(argv[1]), 0;
  const int kills = argc > 1 ? std::atoi(argv[1]) : 7;
  const testing::temp_dir place;
  cluster c{argv[0], place.path()};
  for (const char* job : {"ps", "chief", "worker"}) c.start(job);
  c.wait_for({"chief", "worker"}, 4);
  for (const std::string job : {"worker", "chief", "ps"}) {
    std::vector<double> all;
    for (int i = 0; i < kills; ++i)
      all.push_back(c.kill_and_start(
          job, job == "ps" ? std::vector<std::string>{"chief", "worker"} : std::vector<std::string>{job}));
    std::sort(all.begin(), all.end());
    std::printf("%s: median %.2f s, %.2f to %.2f s\n", job.c_str(), all[all.size() / 2], all.front(), all.back());
  }
  for (const auto& [job, pid] : c.tasks) ::kill(pid, SIGKILL);
  while (::wait(nullptr) > 0) {
  }
}
