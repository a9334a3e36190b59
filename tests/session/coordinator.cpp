#include <gradus/session/coordinator.hpp>
#include <gradus/testing/hand_tasks.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <thread>

#include "turned_clock.hpp"

using namespace gradus;

static_assert(gradus::waiting_clock<turned_clock>);
static_assert(!gradus::waiting_clock<system_clock>);
static_assert(std::is_base_of_v<any_coordinator, coordinator<turned_clock>>);

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

// Threads of a coordinator whose time is turned by hand.
struct by_hand {
  testing::hand_tasks hand;
  coordinator<task_system> coord{{}, hand.tasks()};

  task_handle begin(std::string name, std::function<void()> body) {
    return hand.tasks().start("a test", "do without",
                              [body = std::move(body), here = std::make_shared<registration>(
                                                           coord.register_thread(std::move(name)))] { body(); });
  }
};

}  // namespace

// The facts that TensorFlow's own tests of its Coordinator hold are C1 to C10.
TEST_CASE("C1 fresh, no stop is requested; then one is") {
  by_hand t;
  bool before = true, after = false;
  const auto waiter = t.begin("waits", [&] {
    before = t.coord.wait_for_stop(0.01);
    t.hand.tasks().sleep(1);
    after = t.coord.wait_for_stop(0.01);
  });
  CHECK_FALSE(t.coord.should_stop());
  t.hand.advance(0.5);
  CHECK_FALSE(before);
  t.coord.request_stop();
  CHECK(t.coord.should_stop());
  CHECK(t.coord.wait_for_stop(0.01));
  t.hand.advance(0.51);
  CHECK(after);
  CHECK(t.hand.elapsed() == 1.01);  // the second wait took no time
}

TEST_CASE("C2 another thread's request ends a wait within its time, and one that has none") {
  by_hand t;
  double woken = -1, forever = -1;
  const auto waiter = t.begin("waits", [&] {
    if (t.coord.wait_for_stop(1)) woken = t.hand.elapsed();
  });
  const auto patient = t.begin("waits for good", [&] {
    t.coord.wait_for_stop();
    forever = t.hand.elapsed();
  });
  const auto asks = t.begin("asks", [&] {
    t.hand.tasks().sleep(0.25);
    t.coord.request_stop();
  });
  t.hand.advance(0.2);
  CHECK(forever == -1);
  t.hand.advance(0.2);
  CHECK(woken == 0.25);
  CHECK(forever == 0.25);
}

TEST_CASE("C3 join waits through the door, for threads that end without a stop") {
  by_hand t;
  const auto first = t.begin("first", [&] { t.hand.tasks().sleep(1); }),
             second = t.begin("second", [&] { t.hand.tasks().sleep(200); });
  double joined = -1;
  const auto joiner = t.hand.tasks().start("a test", "do without", [&] {
    t.coord.join();
    joined = t.hand.elapsed();
  });
  t.hand.advance(199);  // longer than the grace that a stop would begin
  CHECK(joined == -1);
  t.hand.advance(2);
  CHECK(joined == 200);
  CHECK_FALSE(t.coord.should_stop());
}

TEST_CASE("C4 a thread that runs on past the grace is an error; the grace begins with the stop") {
  by_hand t;
  const auto runs_on = t.begin("runs on", [&] { t.hand.tasks().sleep(100); }),
             stops = t.begin("stops", [&] { t.coord.wait_for_stop(); }), asks = t.begin("asks", [&] {
               t.hand.tasks().sleep(10);
               t.coord.request_stop();
             });
  std::string said;
  double at = -1;
  const auto joiner = t.hand.tasks().start("a test", "do without", [&] {
    said = joined_with(t.coord, {.stop_grace_period_secs = 2});
    at = t.hand.elapsed();
  });
  t.hand.advance(50);
  CHECK(said.starts_with("a stop was requested, and these threads still run after 2 seconds: \"runs on\"; "));
  CHECK(at == 12);
  t.hand.advance(50);
}

TEST_CASE("C5 C6 of two threads' errors join raises the first, in whatever form they come") {
  using report = std::function<void(any_coordinator&, const char*)>;
  const report forms[] = {
      [](any_coordinator& c, const char* what) { c.request_stop(std::runtime_error(what)); },
      [](any_coordinator& c, const char* what) { c.request_stop(aborted(what)); },
      [](any_coordinator& c, const char* what) { c.request_stop(std::make_exception_ptr(std::runtime_error(what))); },
      [](any_coordinator& c, const char* what) {
        try {
          throw std::runtime_error(what);
        } catch (...) {
          c.request_stop(std::current_exception());
        }
      },
      [](any_coordinator& c, const char* what) { c.stop_on_exception([&] { throw std::runtime_error(what); }); },
  };
  for (const auto& one : forms)
    for (const auto& other : forms)
      for (const bool order : {false, true}) {
        by_hand t;
        const auto a = t.begin("a", [&] {
          t.hand.tasks().sleep(order ? 2 : 1);
          one(t.coord, order ? "Too late" : "First");
        });
        const auto b = t.begin("b", [&] {
          t.hand.tasks().sleep(order ? 1 : 2);
          other(t.coord, order ? "First" : "Too late");
        });
        t.hand.advance(2);
        CHECK(joined_with(t.coord) == "First");
        CHECK(t.coord.suppressed().size() == 1);
      }
}

TEST_CASE("tasks, what has tasks, and a clock that only tells the time") {
  const testing::hand_tasks hand;
  CHECK(coordinator({}, hand.tasks()).tasks().driver() == hand.tasks().driver());
  CHECK(coordinator({}, hand).tasks().driver() == hand.tasks().driver());
  CHECK(any_coordinator({}, hand.tasks()).tasks().driver() == hand.tasks().driver());
  CHECK(coordinator().tasks().driver() == nullptr);
  CHECK(any_coordinator().tasks().driver() == nullptr);
}

TEST_CASE("C5 the first error wins, later ones are kept aside") {
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

TEST_CASE("C7 clean stops: the end of input, or the kinds that were named") {
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

TEST_CASE("C8 C9 after join an error is raised by request_stop itself; clear_stop begins anew") {
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

TEST_CASE("a thread that fails after the grace of join ends no process: its error is kept") {
  for (const bool was_asked : {false, true}) {
    CAPTURE(was_asked);
    coordinator coord;
    std::latch go(1);
    std::thread straggler;
    if (was_asked) {
      straggler = std::thread([&, here = coord.register_thread("slow")] {
        coord.stop_on_exception([&] { go.wait(), raise(status::data_loss, "the disk"); });
      });
      coord.request_stop();
      CHECK(coord.join({.stop_grace_period_secs = -1, .ignore_live_threads = true}).size() == 1);
    } else {
      straggler =
          std::thread([&] { coord.stop_on_exception([&] { go.wait(), raise(status::data_loss, "the disk"); }); });
      coord.join();
    }
    go.count_down();
    straggler.join();
    CHECK(coord.should_stop());
    CHECK(coord.suppressed().size() == (was_asked ? 1 : 0));
    if (was_asked)
      CHECK_THROWS_WITH_AS(std::rethrow_exception(coord.suppressed().at(0)), "the disk", data_loss);
    else
      CHECK_THROWS_WITH_AS(coord.raise_requested_exception(), "the disk", data_loss);
  }
}

TEST_CASE("C3 join returns when the threads end, and then leaves the flag as it is") {
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

TEST_CASE("C4 the grace period: stragglers are named, exactly they") {
  const turned_clock clock(true);
  coordinator coord({}, clock);
  auto first = coord.register_thread("first"), second = coord.register_thread("second"),
       third = coord.register_thread("third");
  second.release();
  coord.request_stop();
  const double before = clock.elapsed();
  CHECK_THROWS_WITH_AS(coord.join({.stop_grace_period_secs = 2.5}),
                       "a stop was requested, and these threads still run after 2.5 seconds: \"first\", \"third\"; let "
                       "them look at should_stop(), "
                       "or give a longer stop_grace_period_secs",
                       deadline_exceeded);
  CHECK(clock.elapsed() - before == 2.5);
  CHECK(joined_with(coord) == "nothing");  // they are registered no more
}

TEST_CASE("C10 stragglers may be ignored; a recorded error comes before them; a negative grace waits not at all") {
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

TEST_CASE("who sees a stop sees its cancellation") {
  for (int round = 0; round < 500; ++round) {
    coordinator coord;
    const auto stops = coord.stopping();
    bool cancelled = false;
    std::latch looks(1);
    std::thread sees([&] {
      looks.count_down();
      while (!coord.should_stop()) {
      }
      cancelled = stops->is_cancelled();
    });
    looks.wait();
    coord.request_stop();
    sees.join();
    CHECK(cancelled);
  }
}

TEST_CASE("what stops with a coordinator: cancelled by its first stop, whatever it was; another one after clear_stop") {
  for (const bool fails : {false, true}) {
    coordinator coord;
    const auto stops = coord.stopping();
    CHECK(stops == coord.stopping());
    CHECK(!stops->is_cancelled());
    bool stopped_then = false;
    const cancellation::link sees(*stops, [&] { stopped_then = coord.should_stop(); });
    if (fails)
      coord.request_stop(data_loss("no"));
    else
      coord.request_stop();
    CHECK(stopped_then);  // who is ended by it finds the stop
    CHECK((stops->is_cancelled() && stops->kind() == status::out_of_range));
    CHECK(stops->reason() == "a stop was requested");
    coord.clear_stop();
    CHECK((stops->is_cancelled() && !coord.stopping()->is_cancelled()));
    const auto later = coord.stopping();
    coord.clear_stop();
    CHECK(later == coord.stopping());  // nothing had stopped
  }
}
