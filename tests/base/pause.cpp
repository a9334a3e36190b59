#include <gradus/base/pause.hpp>
#include <gradus/testing/hand_tasks.hpp>

#include <doctest/doctest.h>

#include <atomic>

using namespace gradus;

TEST_CASE("a pause lasts its seconds, or until one of several is cancelled, before it or meanwhile") {
  for (const int by : {0, 1, 2}) {
    testing::hand_tasks hand;
    cancellation a, b;
    std::atomic<int> how{-1};
    auto task =
        hand.tasks().start("a test", "do without", [&] { how = detail::pause(hand.tasks(), 5, &a, &b) ? 1 : 0; });
    hand.advance(4);
    CHECK(how == -1);
    if (by == 0) hand.advance(1);
    if (by == 1) a.cancel();
    if (by == 2) b.cancel();
    task.join();
    CHECK(how == (by == 0 ? 1 : 0));
    CHECK(hand.elapsed() == (by == 0 ? 5 : 4));
    if (by != 0) CHECK(!detail::pause(hand.tasks(), 5, &a, &b));  // at once: nobody turns time
  }
}

TEST_CASE("a pause that nothing can end") {
  testing::hand_tasks hand;
  bool slept = false;
  auto task = hand.tasks().start("a test", "do without", [&] { slept = detail::pause(hand.tasks(), 5, nullptr); });
  hand.advance(5);
  task.join();
  CHECK(slept);
}
