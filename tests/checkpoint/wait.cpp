#include "gradus/checkpoint/wait.hpp"

#include <doctest/doctest.h>

#include "gradus/checkpoint/saver.hpp"
#include "gradus/testing/clock.hpp"
#include "gradus/testing/faulty_files.hpp"

using namespace gradus;
using testing::faulty_files;
using testing::hand_clock;

namespace {
struct run {
  faulty_files fs;
  hand_clock clock;
  float w = 0;
  state_list list;
  saver<flat_binary, faulty_files, hand_clock> s{{}, {}, fs, clock};
  run() { list.scalar("w", w); }
  void save(std::int64_t step) { s.save(list, "d/m", step); }
};
}  // namespace

TEST_CASE("wait: the newest checkpoint is there at once; then the next one is waited for, second by second") {
  run r;
  int polls = 0;
  const wait_options waiting{.timeout = 100, .pass = [&](double seconds) {
                               CHECK(seconds == 1);
                               r.clock.advance(seconds);
                               if (++polls == 5) r.save(20);
                               return true;
                             }};
  CHECK(wait_for_new_checkpoint(r.fs, "d", {}, {.timeout = 0}, r.clock).empty());
  r.save(10);
  const auto first = wait_for_new_checkpoint(r.fs, "d", {}, waiting, r.clock);
  CHECK(first == "d/m-10.ckpt");
  CHECK(polls == 0);
  CHECK(wait_for_new_checkpoint(r.fs, "d", first, waiting, r.clock) == "d/m-20.ckpt");
  CHECK(polls == 5);
}

TEST_CASE("wait: it ends at the time-out, or when it is told to") {
  run r;
  double waited = 0;
  const auto pass = [&](double seconds) {
    waited += seconds;
    r.clock.advance(seconds);
    return true;
  };
  CHECK(wait_for_new_checkpoint(r.fs, "d", {}, {.timeout = 2.5, .pass = pass}, r.clock).empty());
  CHECK(waited == 2.5);
  CHECK(wait_for_new_checkpoint(r.fs, "d", {}, {.pass = [](double) { return false; }}, r.clock).empty());
  CHECK_THROWS_AS(wait_for_new_checkpoint(r.fs, "d", {}, {.poll = 0}, r.clock), error_of<status::invalid_argument>);
}

TEST_CASE("wait: a state file that cannot be read is not yet one") {
  run r;
  make_directories(r.fs, "d");
  publish(r.fs, "d/checkpoint", "model_checkpoint_pa");
  int polls = 0;
  const auto found = wait_for_new_checkpoint(r.fs, "d", {},
                                             {.pass =
                                                  [&](double) {
                                                    if (++polls == 2) r.save(3);
                                                    return true;
                                                  }},
                                             r.clock);
  CHECK(found == "d/m-3.ckpt");
}

TEST_CASE("wait: for_each_checkpoint sees each new one once, and skips what came between") {
  run r;
  std::vector<std::string> seen;
  std::int64_t step = 0;
  const wait_options options{.timeout = 3, .pass = [&](double seconds) {
                               r.clock.advance(seconds);
                               return true;
                             }};
  r.save(++step);
  const auto n = for_each_checkpoint(
      r.fs, "d",
      [&](const std::string& path) {
        seen.push_back(path);
        if (step == 1) step = 2, r.save(2), step = 3, r.save(3);
        return true;
      },
      options, r.clock);
  CHECK(n == 2);
  CHECK(seen == std::vector<std::string>{"d/m-1.ckpt", "d/m-3.ckpt"});
}

TEST_CASE("wait: a stop that was there before lets one look be made") {
  run r;
  cancellation stop;
  stop.cancel();
  CHECK(wait_for_new_checkpoint(r.fs, "d", {}, {.stop = &stop}, r.clock).empty());
  CHECK(wait_for_new_checkpoint(r.fs, "d", {}, {.pass = [](double) { return true; }, .stop = &stop}, r.clock).empty());
  r.save(10);
  CHECK(wait_for_new_checkpoint(r.fs, "d", {}, {.stop = &stop}, r.clock) == "d/m-10.ckpt");
}
