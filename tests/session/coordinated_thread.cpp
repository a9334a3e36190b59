#include <gradus/session/coordinated_thread.hpp>

#include <gradus/testing/hand_tasks.hpp>

#include <doctest/doctest.h>

#include <string>
#include <utility>

using namespace gradus;

namespace {
template <class Error, class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "(nothing was refused)";
}
}  // namespace

TEST_CASE("coordinated_thread: it runs once started, and is waited for by time") {
  testing::hand_tasks hand;
  int ran = 0;
  coordinated_thread t("worker", "one", nullptr, hand.tasks(), [&] {
    hand.tasks().sleep(3);
    ++ran;
  });
  CHECK(t.name() == "one");
  CHECK(!t.is_alive());
  CHECK(refusal<failed_precondition>([&] { t.join(); }) ==
        "the worker \"one\" is not started; call start() before join()");
  t.start();
  CHECK(refusal<failed_precondition>([&] { t.start(); }) == "the worker \"one\" is started already");
  coordinated_thread moved = std::move(t);  // while it runs
  hand.settle();
  CHECK(moved.is_alive());
  CHECK(!moved.join(0));
  hand.advance(3);
  CHECK(moved.join());
  CHECK((!moved.is_alive() && ran == 1));
}

TEST_CASE("coordinated_thread: a coordinator waits for it from construction on, and lets go when it has ended") {
  testing::hand_tasks hand;
  any_coordinator coord({}, hand.tasks());
  coordinated_thread t("worker", "slow", &coord, hand.tasks(), [&] { coord.wait_for_stop(); });
  coord.request_stop();
  CHECK(coord.join({.stop_grace_period_secs = -1, .ignore_live_threads = true}) == std::vector<std::string>{"slow"});
  coord.clear_stop();
  coordinated_thread other("worker", "other", &coord, hand.tasks(), [&] { coord.wait_for_stop(); });
  other.start();
  coord.request_stop();
  hand.settle();
  CHECK(other.join());
  CHECK(coord.join({.stop_grace_period_secs = -1, .ignore_live_threads = true}).empty());
}
