// What a cluster of processes needs, and what its healthy worker notices of others, over gRPC on this machine:
//
//   bench_cluster_limits memory     the most memory of a worker and of a parameter server, 100 MB of parameters, Adam
//   bench_cluster_limits saved      the same where the chief saves after every fifth step
//   bench_cluster_limits logged     the same with a log of the parameter server, over 30 steps, in which it saves its
//                                   state twice
//   bench_cluster_limits flood      times of the steps of a worker beside a hostile one that sends tiny messages as
//                                   fast as it can, and beside connections that send noise, over those without either
//
// The program starts itself as every task. Hostile ones take only what the others leave of the processors, since they
// would have machines of their own: what the steps lose is what the parameter server does for them.
//
// needs: grpc
#include <gradus/cluster/connected.hpp>
#include <gradus/cluster/grpc.hpp>
#include <gradus/cluster/recovery.hpp>
#include <gradus/codecs.hpp>
#include <gradus/data.hpp>
#include <gradus/gradus.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/run_environment.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {
using namespace gradus;

constexpr int port = 4791, wide = 12'500, narrow = 64, rows = 2;

template <int Units>
constexpr auto model = [](graph& g) {
  const auto x = g.placeholder("x", {batch, 1000}), y = g.placeholder("y", {batch, 1});
  const auto h = tanh(dense(tanh(dense(x, {.units = Units})), {.units = 1000}));
  return model_spec{.loss = reduce_mean(square(dense(h, {.units = 1}) - y))};
};

// The calling thread, and what it starts, runs only where a processor has nothing else to do.
void take_what_is_left() {
  const sched_param none = {};
  ::sched_setscheduler(0, SCHED_IDLE, &none);
}

double seconds() { return system_clock{}.elapsed(); }

// Writes the time of each step into a file.
struct step_times {
  using policy_for = kind::hook;
  std::FILE* to;
  void after_run(run_context&, const run_values&) const {
    std::fprintf(to, "%.9f\n", seconds());
    std::fflush(to);
  }
};

// The transport of the hostile worker: it keeps the one that gRPC has made.
struct open_grpc {
  static constexpr std::string_view protocol = "grpc";
  detail::transport** kept;
  std::unique_ptr<detail::transport> make(const task_system& tasks) const {
    auto made = gradus::grpc{}.make(tasks);
    *kept = made.get();
    return made;
  }
};

template <int Units, class Recovery = recovery::roll_back>
void run_task(const std::string& folder, const Recovery& of_lost = {}, bool saves = false) {
  const auto config = saves
                          ? run_config::from_environment({.model_dir = folder + "/run", .save_checkpoints_steps = 5})
                          : run_config::from_environment({.model_dir = folder + "/run", .save_checkpoints_secs = none});
  detail::transport* carrier = nullptr;
  const server here(open_grpc{&carrier}, config);
  if (here.is_ps()) return here.join();
  const bool is_hostile = Units == narrow && !here.is_chief();
  std::vector<float> x(100'000), y(100);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 17) / 170;
  auto input = from_spans("x", x, extents{1000}, "y", y, extents{1}).repeat().batch(rows);
  std::FILE* const times = std::fopen(text(folder, "/", here.def().job_name).c_str(), "a");
  auto t =
      make_trainer<model<Units>>(connected{here}, adam{.rate = 1e-5F}, silent{}, config, of_lost, step_times{times});
  t.train(input.shard(here.workers(), here.worker()), {.steps = is_hostile ? 5 : 1'000'000});
  // Requests of the permission for a step that it does not take, each of which is answered.
  detail::message_frames frames;
  for (std::uint64_t i = 0; is_hostile; ++i) {
    carrier->send(0, frames.encode({detail::message_kind::heartbeat, 2, 0, 1, i, 0, {}, {}}));
    if (i % 64 == 63) std::this_thread::yield();
  }
}

struct cluster {
  std::string program, what, folder;
  std::map<std::string, pid_t> tasks = {};

  void start(const std::string& job) {
    const pid_t child = ::fork();
    if (child == 0) {
      if (what == "flood" && job == "worker") take_what_is_left();
      const std::string config =
          text(R"({"cluster": {"ps": ["localhost:)", port, R"("], "chief": ["localhost:1"], "worker": )",
               R"(["localhost:2"]}, "task": {"type": ")", job, R"(", "index": 0}})");
      ::setenv("TF_CONFIG", config.c_str(), 1);
      ::execl(program.c_str(), program.c_str(), what.c_str(), folder.c_str(), nullptr);
      ::_exit(127);
    }
    tasks[job] = child;
  }
  ~cluster() {
    for (const auto& [job, pid] : tasks) ::kill(pid, SIGKILL), ::waitpid(pid, nullptr, 0);
  }
  std::vector<double> times(const std::string& job) const {
    std::ifstream file(folder + "/" + job);
    std::vector<double> all;
    for (double t; file >> t;) all.push_back(t);
    return all;
  }
  void wait_for(const std::string& job, std::size_t steps) const {
    while (times(job).size() < steps) ::usleep(20'000);
  }
  // The most that the process has had, in MB.
  double most_memory(const std::string& job) const {
    std::ifstream file(text("/proc/", tasks.at(job), "/status"));
    for (std::string line; std::getline(file, line);)
      if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) * 1024e-6;
    return 0;
  }
  // Quantiles of the times between the next steps of the chief, in microseconds.
  std::array<double, 2> steps_of_chief(double secs) const {
    const std::size_t before = times("chief").size();
    ::usleep(static_cast<useconds_t>(secs * 1e6));
    std::vector<double> all = times("chief"), steps;
    for (std::size_t i = before + 1; i < all.size(); ++i) steps.push_back((all[i] - all[i - 1]) * 1e6);
    if (steps.size() < 100) std::printf("only %zu steps\n", steps.size()), std::exit(1);
    std::ranges::sort(steps);
    return {steps[steps.size() / 2], steps[steps.size() * 99 / 100]};
  }
};

// Connects, sends noise, and connects again, until it is stopped.
void make_noise(const std::atomic<bool>& stop) {
  take_what_is_left();
  std::vector<char> noise(512);
  for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<char>(i * 37);
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  while (!stop) {
    const int s = ::socket(AF_INET, SOCK_STREAM, 0);
    if (::connect(s, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0)
      if (::send(s, noise.data(), noise.size(), MSG_NOSIGNAL) < 0) ::usleep(100);
    ::close(s);
  }
}

// Computes, so that it takes as much of a processor as an attacker, and sends nothing.
void make_work(const std::atomic<bool>& stop) {
  take_what_is_left();
  volatile double x = 1;
  while (!stop) x = x * 1.0000001;
}

void measure_memory(cluster c, std::size_t steps) {
  const double parameters = 4e-6 * (1000. * wide + wide + wide * 1000. + 1000 + 1000 + 1);
  for (const char* job : {"ps", "chief", "worker"}) c.start(job);
  for (const char* job : {"chief", "worker"}) c.wait_for(job, steps);
  const auto line = [&](const char* job, const char* what, double bar) {
    const double most = c.most_memory(job);
    std::printf("%-7s %5.0f MB, %.2f of %s (%.0f MB)\n", job, most, most / bar, what, bar);
  };
  std::printf("parameters %.0f MB, each slot as much\n", parameters);
  line("worker", "2 x parameters + gradients", 3 * parameters);
  line("chief", "the same", 3 * parameters);
  line("ps", "1.1 x (parameters and two slots) + 64 MiB", 1.1 * 3 * parameters + 67);
}

template <class Attack>
void beside(const cluster& c, const char* what, std::array<double, 2> calm, const Attack& attack) {
  std::atomic<bool> stop = false;
  std::thread other([&] { attack(stop); });
  ::usleep(300'000);
  const auto now = c.steps_of_chief(5);
  stop = true;
  other.join();
  std::printf("%-50s half %7.0f us (x %.2f)  99 %% %7.0f us (x %.2f)\n", what, now[0], now[0] / calm[0], now[1],
              now[1] / calm[1]);
}

void measure_flood(cluster c) {
  c.start("ps"), c.start("chief");
  c.wait_for("chief", 200);
  const auto calm = c.steps_of_chief(5);
  std::printf("%-50s half %7.0f us           99 %% %7.0f us\n", "alone", calm[0], calm[1]);
  beside(c, "a thread that computes", calm, make_work);
  beside(c, "connections that send noise", calm, make_noise);
  beside(c, "a hostile worker's tiny messages", calm, [&](const std::atomic<bool>& stop) {
    c.start("worker");
    while (!stop) ::usleep(10'000);
    ::kill(c.tasks["worker"], SIGKILL);
  });
}
}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "flood";
  if (std::getenv("TF_CONFIG") != nullptr)
    return what == "memory"   ? run_task<wide>(argv[2])
           : what == "saved"  ? run_task<wide>(argv[2], recovery::roll_back{}, true)
           : what == "logged" ? run_task<wide>(argv[2], recovery::log{.directory = text(argv[2], "/logs")})
                              : run_task<narrow>(argv[2]),
           0;
  const testing::temp_dir place;
  if (what == "memory" || what == "saved")
    measure_memory({argv[0], what, place.path()}, 10);
  else if (what == "logged")
    measure_memory({argv[0], what, place.path()}, 30);
  else
    measure_flood({argv[0], what, place.path()});
}
