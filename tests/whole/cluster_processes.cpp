// costs: 900
// runs: digits
// needs: grpc
// The demo as processes over gRPC: tasks die by SIGKILL at random instants and are started again, or hang by SIGSTOP
// and go on, and the run ends with the bits of one that nobody disturbed. GRADUS_LONG takes many more of both.
#include <gradus/store/file.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <map>
#include <random>

#include "demo.hpp"
#include "process_cluster.hpp"

namespace {
using demo::trained;
using gradus::text;
using gradus::testing::temp_dir;
using processes::cluster;
using processes::process;
using processes::slurp;

bool is_long() { return std::getenv("GRADUS_LONG") != nullptr; }
cluster start(const temp_dir& place, const std::string& dir) {
  return {demo::words(place, dir, {"--cluster", "grpc"}), place / dir};
}
// The run on threads that nobody disturbs, made once, and a folder for those that are compared with it.
struct undisturbed {
  temp_dir place = {};
  run_files::content end;
  undisturbed() {
    process alone(demo::words(place, "alone", {"--cluster", "in_process", "--ps", "1", "--workers", "2"}),
                  place / "output");
    alone.wait();
    REQUIRE_MESSAGE(alone.succeeded(), slurp(place / "output"));
    end = trained(place, "alone");
    REQUIRE(end.step == demo::steps);
  }
};
const undisturbed& alone() {
  static const undisturbed run;
  return run;
}
}  // namespace

TEST_CASE(
    "a cluster of processes, whose tasks are killed at random instants: the bits of threads that nobody disturbed") {
  const temp_dir& place = alone().place;
  const int wanted = is_long() ? 100 : 8;
  std::mt19937 random(20261126);
  std::map<std::string, int> killed;
  int kills = 0;
  for (int number = 0; kills < wanted; ++number) {
    const std::string dir = text("run-", number);
    cluster c = start(place, dir);
    double next = processes::seconds() + std::uniform_real_distribution<>(0.5, 2)(random);
    const double end = processes::seconds() + 240;
    while (c.look()) {
      REQUIRE_MESSAGE(processes::seconds() < end, slurp(c.output("chief 0")), slurp(c.output("ps 0")));
      if (kills < wanted && processes::seconds() >= next) {
        const std::string task = c.tasks()[std::uniform_int_distribution<std::size_t>(0, 3)(random)];
        if (c.kill(task)) ++kills, ++killed[task];
        next = processes::seconds() + std::uniform_real_distribution<>(0.3, 2)(random);
      }
      ::usleep(2000);
    }
    CHECK(run_files::difference(trained(place, dir), alone().end) == "");
  }
  for (const auto& [task, n] : killed) MESSAGE(task, " was killed ", n, " times");
}

// One task at a time hangs, and a run is long enough for few of them; those count behind which the chief still has to
// work. The first one hangs for longer than the 10 s after which a worker is taken for dead, and a parameter server for
// a part of that.
TEST_CASE("a cluster of processes, whose tasks hang and go on: the same bits, and no task ends with an error") {
  const temp_dir& place = alone().place;
  const int wanted = is_long() ? 60 : 3;
  std::mt19937 random(20261129);
  std::map<std::string, int> stopped;
  int stops = 0, longest = 0;
  for (int number = 0; stops < wanted; ++number) {
    const std::string dir = text("hangs-", number);
    cluster c = start(place, dir);
    std::map<std::string, double> until;  // whose tasks hang
    double next = processes::seconds() + std::uniform_real_distribution<>(0.5, 1.5)(random);
    const double end = processes::seconds() + 240;
    while (c.look()) {
      const double now = processes::seconds();
      REQUIRE_MESSAGE(now < end, slurp(c.output("chief 0")), slurp(c.output("ps 0")));
      std::erase_if(until, [&](const auto& hangs) {
        const auto& [task, to] = hangs;
        if (now < to) return false;
        if (c.is_running("chief 0")) ++stops, ++stopped[task];
        CHECK(c.go_on(task));
        next = now + std::uniform_real_distribution<>(0.1, 0.5)(random);
        return true;
      });
      if (stops < wanted && until.empty() && now >= next) {
        const bool is_dead = stops == 0 || (is_long() && stops / 20 >= longest);
        const std::string task =
            is_dead ? "worker 0" : c.tasks()[std::uniform_int_distribution<std::size_t>(0, 3)(random)];
        if (c.stop(task)) until[task] = now + (is_dead ? 11 : std::uniform_real_distribution<>(0.1, 1)(random));
        if (is_dead && until.contains(task) && c.stop("ps 1")) until["ps 1"] = now + 2, ++longest;
      }
      ::usleep(2000);
    }
    CHECK(c.errors() == 0);
    CHECK(run_files::difference(trained(place, dir), alone().end) == "");
  }
  for (const auto& [task, n] : stopped) MESSAGE(task, " hung ", n, " times");
  MESSAGE(longest, " times for longer than the silence after which a worker is taken for dead");
}

// The script that a user starts, whole; it compares with one process by itself.
TEST_CASE("scripts/cluster.sh: six tasks with certificates, of which some are killed" * doctest::skip(!is_long())) {
  const temp_dir place;
  const std::vector<std::string> words{"/usr/bin/env",
                                       "bash",
                                       GRADUS_SOURCE_DIR "/scripts/cluster.sh",
                                       "--kill",
                                       "3",
                                       "--port",
                                       text(processes::free_port()),
                                       "--runs",
                                       place / "runs",
                                       processes::program("digits"),
                                       "--steps",
                                       "200",
                                       "--batch",
                                       "96",
                                       "--train_digits",
                                       "2000",
                                       "--test_digits",
                                       "500",
                                       "--save_checkpoints_steps",
                                       "20",
                                       "--threads",
                                       "1",
                                       "--cache",
                                       place / "digits"};
  process script(words, place / "output");
  script.wait();
  const std::string said = slurp(place / "output");
  CHECK_MESSAGE(script.succeeded(), said);
  CHECK(said.find("3 kills, ") != std::string::npos);
  CHECK(said.find("the parameters are those of one process, bit for bit") != std::string::npos);
}
