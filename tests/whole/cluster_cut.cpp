// costs: 900
// runs: cut_task
// needs: grpc
// Variables that are cut over parameter servers, as processes over gRPC: tasks of all kinds die by SIGKILL at random
// instants and are started again, and the run ends with the bits of one process that nobody disturbed and where nothing
// is cut. Parts are large enough to be kept where they came in. GRADUS_LONG takes many more kills.
#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <map>
#include <random>

#include "cut_runs.hpp"

namespace {
using namespace cut_runs;
using processes::cluster;
using processes::seconds;

struct how {
  const char* dir;
  int ps;
  bool has_worker;
  std::vector<std::string> more;
};
// Runs until so many tasks were killed. In a default run none dies close to the end: where the last ones end, all may
// have to begin again, which takes long (processes::cluster::look).
void killed(const how& h, int kills, unsigned seed) {
  const temp_dir& place = alone().place;
  std::mt19937 random(seed);
  std::map<std::string, int> died;
  for (int number = 0; kills > 0; ++number) {
    const std::string dir = place / text(h.dir, '-', number);
    ::mkdir(dir.c_str(), 0777);
    cluster c(words(dir, h.more), dir + "/output", {.ps = h.ps, .has_worker = h.has_worker});
    const auto later = [&] { return seconds() + std::uniform_real_distribution<>(0.1, 0.8)(random); };
    double next = later();
    const double end = seconds() + 240;
    while (c.look()) {
      REQUIRE_MESSAGE(seconds() < end, slurp(c.output("chief 0")), slurp(c.output("ps 0")), slurp(c.output("ps 1")));
      if (kills > 0 && seconds() >= next) {
        const std::string task = c.tasks()[random() % c.tasks().size()];
        if ((is_long() || saved_step(dir) < steps - 15) && c.kill(task)) --kills, ++died[task];
        next = later();
      }
      ::usleep(2000);
    }
    const run_files::content end_of_run = trained(dir);
    // Every part of it is a frame that its receiver keeps.
    CHECK(end_of_run.records.at("long float32 [204800]").size() / static_cast<std::size_t>(h.ps) > 256 * 1024);
    CHECK(run_files::difference(end_of_run, h.has_worker ? alone().by_two : alone().by_one) == "");
    if (!h.more.empty()) CHECK(c.errors() == 0);  // with logs no task has to begin again because another died
  }
  std::string all;
  for (const auto& [task, n] : died) all += text(all.empty() ? "" : ", ", task, ' ', n, " times");
  MESSAGE("killed: " << all);
}
int kills() { return is_long() ? 60 : 4; }
}  // namespace

TEST_CASE("a model that is cut over two parameter servers, whose tasks are killed and go back to a checkpoint") {
  killed({"back", 2, true, {}}, kills(), 20261130);
}
TEST_CASE("a model that is cut over three parameter servers with logs, whose tasks are killed") {
  killed({"logs", 3, true, {"--logs"}}, kills(), 20261131);
}
TEST_CASE("a chief alone, whose model is cut over three parameter servers, and all of them are killed") {
  killed({"one", 3, false, {}}, is_long() ? 30 : 2, 20261132);
}

// All have done their part and would leave when a parameter server dies. It is started again only when the workers have
// ended, and nobody is there any more but parameter server 0, which waits for it.
TEST_CASE("a parameter server that is killed as the cluster ends, and is started again, ends as well") {
  const temp_dir place;
  const std::string dir = place / "run", gate = place / "run/gate";
  ::mkdir(dir.c_str(), 0777);
  REQUIRE(::mkfifo(gate.c_str(), 0666) == 0);
  cluster c(words(dir), dir + "/output", {.ps = 3});
  const auto until = [&](auto done) {
    const double end = seconds() + 60;
    while (!done()) {
      REQUIRE_MESSAGE(seconds() < end, slurp(c.output("chief 0")), slurp(c.output("ps 0")), slurp(c.output("ps 1")));
      ::usleep(1000);
    }
  };
  until([&] {
    c.look();
    return slurp(c.output("chief 0")) == "trained\n" && slurp(c.output("worker 0")) == "trained\n";
  });
  REQUIRE(c.kill("ps 1"));
  const int opened = ::open(gate.c_str(), O_WRONLY | O_CLOEXEC);  // as soon as one of them waits there
  until([&] { return !c.is_running("chief 0") && !c.is_running("worker 0") && !c.is_running("ps 2"); });
  ::close(opened);
  CHECK(c.is_running("ps 0"));
  const double began = seconds();
  until([&] { return !c.look() || seconds() > began + 25; });  // then it would start all others again
  CHECK(!c.is_running("ps 1"));
  CHECK(!c.is_running("ps 0"));
  CHECK(c.errors() == 0);
  CHECK(run_files::difference(trained(dir), alone().by_two) == "");
}
