// costs: 600
// runs: digits
// Kills the demo with SIGKILL, again and again, and starts it again: it must end where an uninterrupted run ends, and
// its curves must be that run's, without a fork and without a hole. GRADUS_LONG takes many more kills.
#include <gradus/store/file.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <sched.h>
#include <unistd.h>
#include <cstdlib>
#include <random>

#include "../train/run_files.hpp"
#include "process.hpp"

namespace {

using gradus::join_path;
using gradus::text;
using gradus::testing::temp_dir;
using processes::process;
using processes::program;
using processes::seconds;

bool is_long() { return std::getenv("GRADUS_LONG") != nullptr; }
std::string slurp(const std::string& path) {
  const auto bytes = gradus::read_file(gradus::posix{}, path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
constexpr int steps = 160, batch = 32, train_digits = 2000, save_steps = 8;

// A model directory, in which the demo is run until it ends.
class run {
public:
  run(const temp_dir& place, int number, std::vector<std::string> more = {"--threads", "2"})
      : dir_(place / text("run-", number)),
        output_(place / text("output-", number)),
        cache_(place / "digits"),
        more_(std::move(more)) {}

  process demo() const {
    std::vector<std::string> words{program("digits"),
                                   "--model_dir",
                                   dir_,
                                   "--cache",
                                   cache_,
                                   "--steps",
                                   text(steps),
                                   "--batch",
                                   text(batch),
                                   "--train_digits",
                                   text(train_digits),
                                   "--test_digits",
                                   "200",
                                   "--save_checkpoints_steps",
                                   text(save_steps)};
    words.insert(words.end(), more_.begin(), more_.end());
    return {words, output_};
  }
  // The demo's training on a disk at whose n-th operation inside a save it dies.
  process deadly(std::int64_t n) const {
    return {{program("digits_killed"), join_path(cache_, text("drawn-", train_digits, "-200/train")), dir_, text(steps),
             text(batch), text(train_digits), text(save_steps), "2", text(n)},
            output_};
  }
  std::string output() const { return slurp(output_); }
  // The step at which the last process began.
  std::int64_t began_at() const {
    const std::string said = output();
    const auto at = said.find("restored step ");
    return at == std::string::npos ? 0 : std::atol(said.c_str() + at + 14);
  }
  bool holds_a_temporary() const {
    std::vector<std::string> names;
    if (gradus::posix{}.list(dir_, names) != 0) return false;
    return std::any_of(names.begin(), names.end(), [](const auto& n) { return gradus::is_temporary(n); });
  }
  run_files::content checkpoint() const { return run_files::newest_checkpoint(gradus::posix{}, dir_); }
  run_files::curves curves() const { return run_files::read_curves(gradus::posix{}, dir_); }

private:
  std::string dir_, output_, cache_;
  std::vector<std::string> more_;
};

struct reference {
  run_files::content end;
  run_files::curves curves;
  double secs = 0;
};
reference uninterrupted(const temp_dir& place, const std::vector<std::string>& more = {"--threads", "2"}) {
  const run r(place, 0, more);
  r.demo().wait();  // draws the digits
  const run again(place, 1, more);
  const double start = seconds();
  process p = again.demo();
  p.wait();
  REQUIRE_MESSAGE(p.succeeded(), again.output());
  const reference out{again.checkpoint(), again.curves(), seconds() - start};
  REQUIRE(out.end.step == steps);
  REQUIRE(run_files::steps_of(out.curves, "loss").size() == 1 + steps / 10);
  CHECK(run_files::difference(r.checkpoint(), out.end).empty());
  return out;
}

void check_end(const run& r, const reference& expected) {
  CHECK(run_files::difference(r.checkpoint(), expected.end) == "");
  const auto curves = r.curves();
  for (const auto& [tag, points] : expected.curves) {
    CAPTURE(tag);
    const auto found = curves.find(tag);
    REQUIRE(found != curves.end());
    if (tag == "global_step/sec")  // a time: its steps agree, its values need not
      CHECK(run_files::steps_of(curves, tag) == run_files::steps_of(expected.curves, tag));
    else
      CHECK(run_files::same_points(found->second, points));
  }
  CHECK(curves.size() == expected.curves.size());
}

}  // namespace

TEST_CASE("killed at random instants, and when a save has begun: the same bits, one curve") {
  const temp_dir place;
  const reference expected = uninterrupted(place);
  const int wanted_random = is_long() ? 200 : 20, wanted_in_save = is_long() ? 60 : 6,
            wanted_later = is_long() ? 100 : 10;
  std::mt19937 random(20240229);
  int at_random = 0, in_save = 0, later = 0, rounds = 0, tries = 0;
  for (int number = 2; at_random < wanted_random || in_save < wanted_in_save || later < wanted_later; ++number) {
    const run r(place, number);
    ++rounds;
    for (bool done = false; !done;) {
      REQUIRE(++tries < 50 * wanted_random);
      const bool aims_at_save = tries % 3 == 0;
      const double until = seconds() + expected.secs * std::uniform_real_distribution<>(0, 0.5)(random);
      process p = r.demo();
      // Either until the instant has come, or until after it a save is seen.
      while (!p.ended() && seconds() < until) ::usleep(200);
      while (aims_at_save && !p.ended() && !r.holds_a_temporary()) ::sched_yield();
      if (!p.ended()) p.kill();
      done = !p.was_killed();
      if (done) REQUIRE_MESSAGE(p.succeeded(), r.output());
      if (!done) at_random += !aims_at_save, in_save += r.holds_a_temporary();
      later += r.began_at() > 0;
    }
    check_end(r, expected);
  }
  MESSAGE("kills at random instants: ", at_random, ", kills inside a save: ", in_save,
          ", restarts at a step above 0: ", later, ", runs: ", rounds);
  CHECK(at_random >= 20);
  CHECK(in_save >= 5);
  CHECK(later >= 10);
}

TEST_CASE("a cluster of threads, killed at random instants: the same bits, one curve") {
  const temp_dir place;
  const std::vector<std::string> cluster{"--threads", "1", "--cluster", "in_process", "--ps", "2", "--workers", "2"};
  const reference expected = uninterrupted(place, cluster);
  const int wanted = is_long() ? 100 : 20;
  std::mt19937 random(20261125);
  int kills = 0, later = 0, tries = 0;
  for (int number = 2; kills < wanted || later < wanted / 2; ++number) {
    const run r(place, number, cluster);
    for (bool done = false; !done;) {
      REQUIRE(++tries < 50 * wanted);
      const double until = seconds() + expected.secs * std::uniform_real_distribution<>(0, 0.7)(random);
      process p = r.demo();
      while (!p.ended() && seconds() < until) ::usleep(200);
      if (!p.ended()) p.kill();
      done = !p.was_killed();
      if (done) REQUIRE_MESSAGE(p.succeeded(), r.output());
      kills += !done, later += r.began_at() > 0;
    }
    check_end(r, expected);
  }
  MESSAGE("kills: ", kills, ", restarts at a step above 0: ", later);
}

TEST_CASE("killed at each operation of a save: the same bits, one curve") {
  const temp_dir place;
  const reference expected = uninterrupted(place);
  const run whole(place, 2);
  process p = whole.deadly(-1);
  p.wait();
  REQUIRE_MESSAGE(p.succeeded(), whole.output());
  check_end(whole, expected);
  const std::string said = whole.output();
  const auto at = said.find("operations inside saves: ");
  REQUIRE(at != std::string::npos);
  const std::int64_t each = std::atol(said.c_str() + at + 25) / (1 + steps / save_steps);
  REQUIRE(each > 8);  // create, write, sync, close, rename, sync the directory; twice

  // Each process publishes one checkpoint and dies in its second save, so that runs move on.
  int kills = 0, later = 0, number = 3;
  const std::int64_t stride = is_long() ? 1 : std::max<std::int64_t>(1, each / 12);
  std::vector<std::int64_t> operations;
  for (std::int64_t n = 0; n < each; n += stride) operations.push_back(n);
  for (std::int64_t n = std::max<std::int64_t>(each - 8, 0); stride > 1 && n < each; ++n)
    operations.push_back(n);  // all of what follows the writes: that is where states differ
  for (std::size_t i = 0; i < operations.size(); ++number) {
    const run r(place, number);
    for (bool done = false; !done;) {
      process dying = r.deadly(i < operations.size() ? each + operations[i] : -1);
      dying.wait();
      done = !dying.was_killed();
      later += r.began_at() > 0;
      if (done) {
        REQUIRE_MESSAGE(dying.succeeded(), r.output());
      } else {
        CHECK(r.output().find("dies in a save: ") != std::string::npos);
        ++kills, ++i;
      }
    }
    check_end(r, expected);
  }
  MESSAGE("kills inside a save: ", kills, " of ", each, " operations, restarts at a step above 0: ", later,
          ", runs: ", number - 3);
  CHECK(kills == static_cast<int>(operations.size()));
  CHECK(kills >= 5);
  CHECK(later >= 10);
}
