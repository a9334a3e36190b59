#include <gradus/session/coordinator.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <latch>
#include <thread>

#include "turned_clock.hpp"

using namespace gradus;

static_assert(gradus::waiting_clock<turned_clock>);
static_assert(!gradus::waiting_clock<system_clock>);

namespace {

template <class Coordinator>
std::string joined_with(Coordinator& coord, const join_options& options = {}) {
  try {
    coord.join(options);
    return "nothing";
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("the first error wins, later ones are kept aside") {
  coordinator coord;
  CHECK_FALSE(coord.should_stop());
  coord.raise_requested_exception();
  coord.request_stop(not_found("first"));
  coord.request_stop(aborted("second"));
  coord.request_stop();
  CHECK(coord.should_stop());
  CHECK_THROWS_WITH_AS(coord.raise_requested_exception(), "first", not_found);
  CHECK_FALSE(coord.joined());
  CHECK_THROWS_WITH_AS(coord.join(), "first", not_found);
  CHECK(coord.joined());
  REQUIRE(coord.suppressed().size() == 1);
  CHECK_THROWS_WITH_AS(std::rethrow_exception(coord.suppressed()[0]), "second", aborted);
  CHECK_THROWS_WITH_AS(coord.raise_requested_exception(), "first", not_found);  // it stays until cleared
}

TEST_CASE("an error after a stop without one is not raised") {
  coordinator coord;
  coord.request_stop();
  coord.request_stop(std::runtime_error("late"));
  CHECK(joined_with(coord) == "nothing");
  CHECK(coord.suppressed().size() == 1);
}

TEST_CASE("clean stops: the end of input, or the kinds that were named") {
  {
    coordinator coord;
    coord.request_stop(out_of_range("the end"));
    CHECK(coord.should_stop());
    CHECK(joined_with(coord) == "nothing");
    CHECK(coord.suppressed().empty());
  }
  {
    coordinator coord({.clean_stop = {}});
    coord.request_stop(out_of_range("the end"));
    CHECK(joined_with(coord) == "the end");
  }
  {
    coordinator coord({.clean_stop = {status::cancelled, status::aborted}});
    coord.request_stop(aborted("restarted"));
    CHECK(joined_with(coord) == "nothing");
  }
  {
    coordinator coord;
    coord.request_stop(std::out_of_range("another library's"));
    CHECK(joined_with(coord) == "another library's");
  }
}

TEST_CASE("after join an error is raised by request_stop itself; clear_stop begins anew") {
  coordinator coord;
  coord.request_stop();
  coord.join();
  CHECK_THROWS_WITH_AS(coord.request_stop(internal("nobody left")), "nobody left", internal);
  CHECK_NOTHROW(coord.request_stop(out_of_range("clean")));
  CHECK_NOTHROW(coord.request_stop());
  coord.clear_stop();
  CHECK_FALSE(coord.should_stop());
  CHECK_FALSE(coord.joined());
  CHECK_NOTHROW(coord.request_stop(internal("again")));
  CHECK(joined_with(coord) == "again");
}

TEST_CASE("stop_on_exception takes what is thrown, whatever it is") {
  coordinator coord;
  coord.stop_on_exception([] {});
  CHECK_FALSE(coord.should_stop());
  coord.stop_on_exception([] { throw 7; });
  CHECK(coord.should_stop());
  CHECK_THROWS_AS(coord.join(), int);
}

TEST_CASE("join returns when the threads end, and then leaves the flag as it is") {
  coordinator coord;
  std::latch go(1);
  std::thread worker([&, here = coord.register_thread("worker")] { go.wait(); });
  go.count_down();
  CHECK(joined_with(coord) == "nothing");
  CHECK_FALSE(coord.should_stop());
  CHECK(coord.joined());
  worker.join();
  CHECK(joined_with(coord) == "nothing");  // nobody is registered any more
}

TEST_CASE("threads that stop when asked are waited for, however long the grace") {
  coordinator coord;
  std::atomic<int> ended{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, here = coord.register_thread("waits")]() mutable {
      coord.wait_for_stop();
      ++ended;
      here.release();
      here.release();  // a second time is nothing
    });
  std::thread failing([&, here = coord.register_thread("fails")] {
    coord.stop_on_exception([] { raise(status::data_loss, "the disk"); });
  });
  CHECK(joined_with(coord) == "the disk");
  CHECK(ended == 4);
  for (auto& t : threads) t.join();
  failing.join();
}

TEST_CASE("the grace period: stragglers are named, exactly they") {
  const turned_clock clock(true);
  coordinator coord({}, clock);
  auto first = coord.register_thread("first"), second = coord.register_thread("second"),
       third = coord.register_thread("third");
  second.release();
  coord.request_stop();
  const double before = clock.elapsed();
  CHECK_THROWS_WITH_AS(
      coord.join({.stop_grace_period_secs = 2.5}),
      "asked to stop, these threads still run after 2.5 seconds: \"first\", \"third\"; let them look at should_stop(), "
      "or give a longer stop_grace_period_secs",
      deadline_exceeded);
  CHECK(clock.elapsed() - before == 2.5);
  CHECK(joined_with(coord) == "nothing");  // they are registered no more
}

TEST_CASE("stragglers may be ignored; a recorded error comes before them; a negative grace waits not at all") {
  const turned_clock clock(true);
  coordinator coord({}, clock);
  auto slow = coord.register_thread("slow");
  coord.request_stop();
  CHECK(coord.join({.ignore_live_threads = true}) == std::vector<std::string>{"slow"});
  CHECK(clock.elapsed() == 120);

  coord.clear_stop();
  slow = coord.register_thread("slow");
  coord.request_stop(unavailable("the cause"));
  CHECK(joined_with(coord, {.stop_grace_period_secs = 1}) == "the cause");

  coord.clear_stop();
  slow = coord.register_thread("slow");
  coord.request_stop();
  const double before = clock.elapsed();
  CHECK_THROWS_AS(coord.join({.stop_grace_period_secs = -1}), deadline_exceeded);
  CHECK(clock.elapsed() == before);
}

TEST_CASE("the grace begins when join sees the stop, and an ending thread cuts it short") {
  const turned_clock clock;
  coordinator coord({}, clock);
  auto slow = coord.register_thread("slow");
  clock.turn(1000);
  coord.request_stop();
  std::string result;
  std::thread joiner([&] { result = joined_with(coord, {.stop_grace_period_secs = 10}); });
  clock.until_waits(1);
  clock.turn(9);  // 1 second left
  clock.until_waits(2);
  slow.release();
  joiner.join();
  CHECK(result == "nothing");
  CHECK(clock.elapsed() == 1009);
}

TEST_CASE("wait_for_stop: true in time, false after it, at once if negative") {
  const turned_clock clock(true);
  coordinator coord({}, clock);
  CHECK_FALSE(coord.wait_for_stop(-1));
  CHECK(clock.elapsed() == 0);
  CHECK_FALSE(coord.wait_for_stop(3));
  CHECK(clock.elapsed() == 3);
  coord.request_stop();
  CHECK(coord.wait_for_stop(-1));
  CHECK(coord.wait_for_stop(3));
  CHECK(clock.elapsed() == 3);

  const turned_clock stands;
  coordinator other({}, stands);
  bool stopped = false;
  std::thread waiter([&] { stopped = other.wait_for_stop(5); });
  stands.until_waits(1);
  other.request_stop();
  waiter.join();
  CHECK(stopped);
}

TEST_CASE("with the system's clock a wait ends by its time") {
  coordinator coord;
  CHECK_FALSE(coord.wait_for_stop(1e-4));
  auto slow = coord.register_thread("slow");
  coord.request_stop();
  CHECK_THROWS_AS(coord.join({.stop_grace_period_secs = 1e-4}), deadline_exceeded);
}

TEST_CASE("many threads: one error, and every thread ended before join returns") {
  for (int round = 0; round < 50; ++round) {
    coordinator coord;
    std::atomic<int> ended{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&, i, here = coord.register_thread(text(i))] {
        coord.stop_on_exception([&] {
          if (i % 2 == round % 2) raise(status::aborted, text("thread ", i));
          coord.wait_for_stop();
        });
        ++ended;
      });
    const std::string what = joined_with(coord);
    CHECK(ended == 4);
    const int first = what.back() - '0';
    CHECK(first % 2 == round % 2);
    REQUIRE(coord.suppressed().size() == 1);
    for (auto& t : threads) t.join();
  }
}

TEST_CASE("a token may outlive its coordinator, and be moved") {
  registration kept;
  {
    coordinator coord;
    kept = coord.register_thread("kept");
    registration other = std::move(kept);
    kept = std::move(other);
    coord.request_stop();
    CHECK(coord.join({.stop_grace_period_secs = 0, .ignore_live_threads = true}).size() == 1);
  }
  kept.release();
}
