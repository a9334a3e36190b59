// costs: 900
// runs: digits
// needs: grpc
// The demo as processes over gRPC: tasks die by SIGKILL at random instants and are started again, and the run ends with
// the bits of one that nobody disturbed. GRADUS_LONG takes many more kills.
#include <gradus/store/file.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <map>
#include <memory>
#include <random>

#include "../train/run_files.hpp"
#include "process.hpp"

namespace {
using gradus::text;
using gradus::testing::temp_dir;
using processes::process;

bool is_long() { return std::getenv("GRADUS_LONG") != nullptr; }
constexpr int steps = 160;

// A port that nobody has at present.
int free_port() {
  const int s = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  const bool found = ::bind(s, reinterpret_cast<sockaddr*>(&at), size) == 0 &&
                     ::getsockname(s, reinterpret_cast<sockaddr*>(&at), &size) == 0;
  ::close(s);
  REQUIRE(found);
  return ntohs(at.sin_port);
}

std::vector<std::string> demo(const temp_dir& place, const std::string& dir, std::vector<std::string> more) {
  std::vector<std::string> words{processes::program("digits"),
                                 "--model_dir",
                                 place / dir,
                                 "--cache",
                                 place / "digits",
                                 "--steps",
                                 text(steps),
                                 "--batch",
                                 "32",
                                 "--train_digits",
                                 "2000",
                                 "--test_digits",
                                 "200",
                                 "--save_checkpoints_steps",
                                 "8",
                                 "--threads",
                                 "1"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}
run_files::content trained(const temp_dir& place, const std::string& dir) {
  return run_files::newest_checkpoint(gradus::posix{}, place / dir);
}
std::string slurp(const std::string& path) {
  const auto bytes = gradus::read_file(gradus::posix{}, path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Two parameter servers, the chief and a worker.
class cluster {
public:
  static constexpr const char* tasks[] = {"ps 0", "ps 1", "chief 0", "worker 0"};

  cluster(const temp_dir& place, std::string dir) : place_(&place), dir_(std::move(dir)) {
    spec_ = text(R"("cluster": {"ps": ["localhost:)", free_port(), R"(", "localhost:)", free_port(),
                 R"("], "chief": ["localhost:1"], "worker": ["localhost:2"]})");
    for (const char* t : tasks) start(t);
  }
  // Starts again what has ended with an error, as a service manager does. False: all have ended as they should.
  bool look() {
    int running = 0;
    for (const std::string t : tasks) {
      process& p = *running_.at(t);
      if (p.ended() && !p.succeeded()) {
        REQUIRE_MESSAGE(++restarts_ < 2000, slurp(output(t)));
        start(t);
      }
      running += !running_.at(t)->ended();
    }
    // All end within moments, unless a task was killed in them: it is started again and finds nobody. Then all are
    // started again, as docs/cluster_operators.md says.
    const bool is_ending = running != 0 && running != static_cast<int>(std::size(tasks));
    if (!is_ending) ending_since_ = processes::seconds();
    if (is_ending && processes::seconds() - ending_since_ > 30)
      for (const std::string t : tasks)
        if (running_.at(t)->ended()) start(t);
    return running != 0;
  }
  bool kill(const std::string& task) {
    process& p = *running_.at(task);
    if (p.ended()) return false;
    p.kill();
    return p.was_killed();
  }
  std::string output(const std::string& task) const { return *place_ / (dir_ + "-" + task); }

private:
  const temp_dir* place_;
  std::string dir_, spec_;
  std::map<std::string, std::unique_ptr<process>> running_;
  int restarts_ = 0;
  double ending_since_ = 0;

  void start(const std::string& task) {
    const auto space = task.find(' ');
    const std::string config = text("TF_CONFIG={", spec_, R"(, "task": {"type": ")", task.substr(0, space),
                                    R"(", "index": )", task.substr(space + 1), "}}");
    running_[task] = std::make_unique<process>(demo(*place_, dir_, {"--cluster", "grpc"}), output(task),
                                               std::vector<std::string>{config});
  }
};
}  // namespace

TEST_CASE(
    "a cluster of processes, whose tasks are killed at random instants: the bits of threads that nobody disturbed") {
  const temp_dir place;
  process alone(demo(place, "alone", {"--cluster", "in_process", "--ps", "1", "--workers", "2"}), place / "output");
  alone.wait();
  REQUIRE_MESSAGE(alone.succeeded(), slurp(place / "output"));
  const auto expected = trained(place, "alone");
  REQUIRE(expected.step == steps);
  const int wanted = is_long() ? 100 : 8;
  std::mt19937 random(20261126);
  std::map<std::string, int> killed;
  int kills = 0;
  for (int number = 0; kills < wanted; ++number) {
    const std::string dir = text("run-", number);
    cluster c(place, dir);
    double next = processes::seconds() + std::uniform_real_distribution<>(0.5, 2)(random);
    const double end = processes::seconds() + 240;
    while (c.look()) {
      REQUIRE_MESSAGE(processes::seconds() < end, slurp(c.output("chief 0")), slurp(c.output("ps 0")));
      if (kills < wanted && processes::seconds() >= next) {
        const std::string task = cluster::tasks[std::uniform_int_distribution<>(0, 3)(random)];
        if (c.kill(task)) ++kills, ++killed[task];
        next = processes::seconds() + std::uniform_real_distribution<>(0.3, 2)(random);
      }
      ::usleep(2000);
    }
    CHECK(run_files::difference(trained(place, dir), expected) == "");
  }
  for (const auto& [task, n] : killed) MESSAGE(task, " was killed ", n, " times");
}
