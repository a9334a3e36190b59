// costs: 400
// runs: trained_by
// One model, one seed, one input: every runtime ends with the same parameters, slots, powers and step; and so does a
// process of each that is killed at random instants and started again.
#include "trained_by.hpp"

#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdlib>
#include <random>
#include <string>

#include "../train/run_files.hpp"

extern char** environ;

namespace {

using gradus::text;
using gradus::testing::temp_dir;

// What a run left behind, but for what some runtimes alone save: the input's position, and that no variable is without
// a value.
run_files::content trained(const std::string& dir) {
  auto found = run_files::newest_checkpoint(gradus::posix{}, dir);
  std::erase_if(found.records, [](const auto& r) {
    return r.first.starts_with("input ") || r.first.starts_with("session/uninitialized uint8 [0]");
  });
  return found;
}

constexpr int steps = 200, save_steps = 7;

// A run of one runtime in a process of its own.
class process {
public:
  process(std::string_view way, const std::string& dir) {
    const char* const bin = std::getenv("GRADUS_BIN");
    std::string words[] = {gradus::join_path(bin != nullptr ? bin : "build/bin", "trained_by"), std::string(way), dir,
                           text(steps), text(save_steps)};
    char* argv[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), words[4].data(), nullptr};
    if (const int e = ::posix_spawn(&pid_, argv[0], nullptr, nullptr, argv, environ); e != 0)
      gradus::raise({e, "start", words[0]});
  }
  // Kills it at this many microseconds, if it has not ended by then. Whether it was killed.
  bool killed_after(int microseconds) {
    ::usleep(static_cast<useconds_t>(microseconds));
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status_, 0);
    return WIFSIGNALED(status_);
  }
  bool succeeded() {
    ::waitpid(pid_, &status_, 0);
    return WIFEXITED(status_) && WEXITSTATUS(status_) == 0;
  }

private:
  pid_t pid_ = -1;
  int status_ = 0;
};

}  // namespace

TEST_CASE("every runtime ends with the bits of every other") {
  const temp_dir place;
  run_files::content expected;
  for (const std::string_view way : trained_by::ways) {
    CAPTURE(way);
    const std::string dir = place / std::string(way);
    trained_by::train(way, dir, steps, save_steps);
    const auto found = trained(dir);
    CHECK(found.step == steps);
    CHECK(found.records.contains("hidden/kernel/Adam_1 float32 [6, 9]"));
    CHECK(found.records.contains("random_step int64 []"));
    if (expected.step < 0) expected = found;
    CHECK(run_files::difference(found, expected) == "");
  }
  // Other numbers would be seen: one step less, and another seed.
  trained_by::train("trainer", place / "shorter", steps - 1, save_steps);
  CHECK(run_files::difference(trained(place / "shorter"), expected).find("hidden/kernel/Adam float32") !=
        std::string::npos);
}

TEST_CASE("a process of each runtime, killed at random instants and started again, ends with those bits") {
  const temp_dir place;
  trained_by::train("trainer", place / "whole", steps, save_steps);
  const auto expected = trained(place / "whole");
  const int wanted = std::getenv("GRADUS_LONG") != nullptr ? 100 : 20;
  std::mt19937 random(20261124);
  for (const std::string_view way : trained_by::ways) {
    CAPTURE(way);
    int kills = 0, later = 0;
    // A longest time to live that lets a run get a part of its way; it grows where processes only start, and shrinks
    // where they end before they are killed.
    int most = 60'000;
    for (int run = 0; kills < wanted; ++run) {
      // A run that ends takes a quarter of it, and a kill adds an eighth at most: after 20 + wanted / 2 ends it is
      // below 0.2 ms, in which no process trains. Twice as many are allowed, since a busy machine may be late to kill.
      REQUIRE(run < 40 + wanted);
      const std::string dir = place / text(way, "-", run);
      for (;;) {  // each time but the last it is killed, which is counted
        const auto before = run_files::newest_checkpoint(gradus::posix{}, dir).step;
        process p(way, dir);
        if (kills >= wanted) {
          CHECK(p.succeeded());
          break;
        }
        if (!p.killed_after(std::uniform_int_distribution<>(0, most)(random))) {
          most -= most / 4;
          break;
        }
        ++kills, later += before > 0;
        if (run_files::newest_checkpoint(gradus::posix{}, dir).step == before) most += most / 8;
      }
      CHECK(run_files::difference(trained(dir), expected) == "");
    }
    MESSAGE(way, ": ", kills, " kills, ", later, " of them after a checkpoint");
    CHECK(later > 0);
  }
}
