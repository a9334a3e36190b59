#include <gradus/session/looper.hpp>
#include <gradus/testing/hand_tasks.hpp>

#include <doctest/doctest.h>

#include <cmath>

#include "turned_clock.hpp"

using namespace gradus;

namespace {

// The times at which calls came, with a clock on which waits take no time. Then join's grace takes none either: it is
// for when the thread is gone.
struct calls {
  turned_clock clock{true};
  coordinator<turned_clock> coord{{}, clock};
  std::vector<double> at;

  void run(std::function<void()> call, double secs, looper_options options = {}) {
    looper_thread loop(coord, secs, std::move(call), std::move(options), clock);
    CHECK(at.empty());
    loop.start();
    CHECK_THROWS_AS(loop.start(), failed_precondition);
    coord.wait_for_stop();
  }
};

}  // namespace

TEST_CASE("looper: at once, then every interval") {
  calls c;
  c.run(
      [&] {
        c.at.push_back(c.clock.elapsed());
        if (c.at.size() == 4) c.coord.request_stop();
      },
      10);
  c.coord.join();
  CHECK(c.at == std::vector<double>{0, 10, 20, 30});
}

TEST_CASE("looper: a slow call is followed by others until the schedule is met again") {
  calls c;
  c.run(
      [&] {
        c.at.push_back(c.clock.elapsed());
        if (c.at.size() == 2) c.clock.turn(25);  // from 10 to 35
        if (c.at.size() == 6) c.coord.request_stop();
      },
      10);
  c.coord.join();
  CHECK(c.at == std::vector<double>{0, 10, 35, 35, 40, 50});
}

TEST_CASE("looper: back to back, with something before and after") {
  calls c;
  std::string order;
  c.run(
      [&] {
        order += 'r';
        if (order.size() == 4) c.coord.request_stop();
      },
      0, {.start_loop = [&] { order += 's'; }, .stop_loop = [&] { order += 'e'; }});
  c.coord.join();
  CHECK(order == "srrre");
  CHECK(c.clock.elapsed() == 0);
}

TEST_CASE("looper: what it throws stops everybody, and its end is skipped") {
  calls c;
  bool ended = false;
  c.run([] { raise(status::resource_exhausted, "the disk is full"); }, 1, {.stop_loop = [&] { ended = true; }});
  CHECK_THROWS_WITH_AS(c.coord.join(), "the disk is full", resource_exhausted);
  CHECK_FALSE(ended);
}

TEST_CASE("looper: destroyed, it ends its own loop and leaves the others alone") {
  const turned_clock clock;  // nobody turns it: a wait for the second call has no end of itself
  coordinator coord({}, clock);
  int n = 0;
  {
    looper_thread loop(
        coord, 10, [&] { ++n; }, {}, clock);
    loop.start();
    clock.until_waits(1);
  }
  CHECK(n == 1);
  CHECK_FALSE(coord.should_stop());
  coord.join();  // it is not waited for
  {
    const looper_thread never_started(
        coord, 10, [&] { ++n; }, {}, clock);
  }
  coord.join();
  CHECK(n == 1);
}

TEST_CASE("looper: registered from the beginning, named when it does not stop") {
  const turned_clock clock(true);
  coordinator coord({}, clock);
  const looper_thread loop(
      coord, 10, [] {}, {.name = "print loss"}, clock);
  coord.request_stop();
  CHECK_THROWS_WITH(coord.join(), doctest::Contains("\"print loss\""));
}

TEST_CASE("looper: refusals") {
  coordinator coord;
  CHECK_THROWS_WITH_AS(looper_thread(coord, -1, [] {}), "a looper's interval must be at least 0 seconds, got -1",
                       invalid_argument);
  CHECK_THROWS_AS(looper_thread(coord, std::nan(""), [] {}), invalid_argument);
  CHECK_THROWS_WITH_AS(looper_thread(coord, 1, nullptr), "a looper needs a function to call", invalid_argument);
}

TEST_CASE("looper: made and started at once, asked whether it lives, waited for") {
  const testing::hand_tasks hand;
  coordinator coord({}, hand.tasks());
  std::vector<double> at;
  double total = 0;
  const auto add = [&](std::vector<double>& when, double& sum) {
    when.push_back(hand.elapsed()), sum += 1;
    if (when.size() == 2) hand.tasks().sleep(25);  // from 10 to 35
  };
  const auto loop = looper_thread<>::loop(coord, 10, add, at, total);
  CHECK(loop->is_alive());
  hand.advance(9);
  CHECK(at == std::vector<double>{0});
  CHECK_FALSE(loop->join(-1));
  CHECK_FALSE(loop->join(0));
  hand.advance(41);
  CHECK(at == std::vector<double>{0, 10, 35, 35, 40, 50});
  CHECK(total == 6);
  CHECK(loop->is_alive());

  bool in_time = true;
  double ended = -1;
  const auto joiner = hand.tasks().start("a test", "do without", [&] {
    in_time = loop->join(4);
    loop->join();
    ended = hand.elapsed();
  });
  hand.advance(5);
  CHECK_FALSE(in_time);
  CHECK(ended == -1);
  coord.request_stop();
  hand.settle();
  CHECK(ended == 55);
  CHECK_FALSE(loop->is_alive());
  CHECK(loop->join(-1));
  CHECK(loop->join(0));
  coord.join();
  CHECK(at.size() == 6);
  CHECK_THROWS_AS(loop->start(), failed_precondition);
}

TEST_CASE("looper: without an interval it is back to back, and what it throws comes to join") {
  const testing::hand_tasks hand;
  coordinator coord({}, hand.tasks());
  int calls = 0;
  const auto loop = looper_thread<>::loop(coord, std::nullopt, [&] {
    if (++calls == 7) raise(status::data_loss, "the seventh");
  });
  CHECK_THROWS_WITH_AS(coord.join(), "the seventh", data_loss);
  CHECK_FALSE(loop->is_alive());
  CHECK(calls == 7);
  CHECK(hand.elapsed() == 0);
}

TEST_CASE("looper: one that was not started neither lives nor can be waited for") {
  coordinator coord;
  looper_thread loop(coord, 1, [] {}, {.name = "idle"});
  CHECK_FALSE(loop.is_alive());
  CHECK_THROWS_WITH_AS(loop.join(), "the looper \"idle\" is not started; call start() before join()",
                       failed_precondition);
  static_assert(std::is_same_v<decltype(loop), looper_thread<system_clock>>);
}
