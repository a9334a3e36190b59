#include <gradus/testing/hand_tasks.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

using namespace gradus;
using testing::hand_tasks;

namespace {
template <class F>
task_handle begin(const hand_tasks& hand, F f) {
  return hand.tasks().start("a test", "do without", std::move(f));
}
}  // namespace

TEST_CASE("time stands still, is turned, and the wall clock may be set") {
  const hand_tasks hand(100), copy = hand;
  CHECK(hand.now() == 100);
  CHECK(hand.elapsed() == 0);
  copy.advance(2.5);
  CHECK(hand.tasks().now() == 102.5);
  CHECK(hand.tasks().elapsed() == 2.5);
  hand.set(7);
  CHECK(copy.now() == 7);
  CHECK(copy.elapsed() == 2.5);
  hand.advance(0);
  CHECK(hand.now() == 7);
  CHECK(hand_tasks().now() == 1.5e9);
  CHECK_THROWS_WITH_AS(hand.advance(-1), "time goes forward by at least 0 seconds, got -1", invalid_argument);
  CHECK_THROWS_AS(hand.advance(std::nan("")), invalid_argument);
}

TEST_CASE("sleepers wake in the order of their deadlines, at them; of equal ones the first wakes first") {
  const hand_tasks hand;
  std::string order;  // only one task runs at a time once all sleep
  std::vector<double> at;
  std::vector<task_handle> sleepers;
  for (const auto& [name, secs] : {std::pair{'a', 3.0}, {'b', 1.0}, {'c', 3.0}, {'d', 0.5}, {'e', 7.0}}) {
    sleepers.push_back(begin(hand, [&, name = name, secs = secs] {
      hand.tasks().sleep(secs);
      order += name, at.push_back(hand.elapsed());
      if (name == 'b') {  // at 1
        hand.tasks().sleep(2);
        order += 'B', at.push_back(hand.elapsed());
      }
    }));
    hand.settle();
  }
  hand.advance(0.25);
  CHECK(order.empty());
  hand.advance(2.75);
  CHECK(order == "dbacB");  // b slept again after a and c began to
  CHECK(at == std::vector<double>{0.5, 1, 3, 3, 3});
  hand.advance(10);
  CHECK(order == "dbacBe");
  CHECK(at.back() == 7);
  CHECK(hand.elapsed() == 13);
}

TEST_CASE("a wait ends at its deadline and not before; a notification ends it before") {
  for (const bool notified : {false, true}) {
    const hand_tasks hand;
    std::mutex mutex;
    task_condition changed(hand.tasks());
    bool done = false, ended = false, result = false;
    const auto waiter = begin(hand, [&] {
      std::unique_lock lock(mutex);
      result = changed.wait_for(lock, 5, [&] { return done; });
      ended = true;
    });
    hand.advance(4.75);
    const auto look = [&](bool& what) {
      const std::lock_guard lock(mutex);
      return what;
    };
    CHECK(!look(ended));
    {
      const std::lock_guard lock(mutex);
      changed.notify_all();  // of nothing: it waits again, for what is left
    }
    hand.settle();
    CHECK(!look(ended));
    if (notified) {
      {
        const std::lock_guard lock(mutex);
        done = true;
        changed.notify_one();
      }
      hand.settle();  // sees what was woken, however late it begins to run
    } else {
      hand.advance(0.25);
    }
    CHECK(ended);
    CHECK(result == notified);
    CHECK(hand.elapsed() == (notified ? 4.75 : 5));
  }
}

TEST_CASE("notify_one wakes who came first, notify_all wakes all, and only those of this condition") {
  const hand_tasks hand;
  std::mutex mutex;
  task_condition here(hand.tasks()), there(hand.tasks());
  std::string woken;
  std::vector<task_handle> waiters;
  for (const char name : {'a', 'b', 'c', 'd', 'x'}) {
    waiters.push_back(begin(hand, [&, name] {
      std::unique_lock lock(mutex);
      (name == 'x' ? there : here).wait(lock);
      woken += name;
    }));
    hand.settle();
  }
  here.notify_one();
  hand.settle();
  CHECK(woken == "a");
  here.notify_one();
  hand.settle();
  CHECK(woken == "ab");
  here.notify_all();
  hand.settle();
  CHECK((woken == "abcd" || woken == "abdc"));
  here.notify_all(), here.notify_one();  // to nobody
  hand.advance(1e9);                     // a wait without a deadline has none
  CHECK(woken.size() == 4);
  there.notify_one();
  for (auto& w : waiters) w.join();
  CHECK(woken.back() == 'x');
}

TEST_CASE("a join is a wait: by a task and by the test") {
  const hand_tasks hand;
  std::string order;
  auto outer = begin(hand, [&] {
    auto inner = begin(hand, [&] {
      hand.tasks().sleep(2);
      order += 'i';
    });
    inner.join();
    order += 'o';
  });
  hand.advance(1);  // settles although the outer one joins
  CHECK(order.empty());
  hand.advance(1);
  CHECK(order == "io");
  outer.join();
  auto last = begin(hand, [&] { order += 'l'; });
  last.join();
  CHECK(order == "iol");
  begin(hand, [] {}).join();
}

TEST_CASE("a task's body goes before its end is seen") {
  const hand_tasks hand;
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> alive = held;
  const auto t = begin(hand, [held = std::exchange(held, nullptr), hand] { hand.tasks().sleep(1); });
  hand.settle();
  CHECK(!alive.expired());
  hand.advance(1);
  CHECK(alive.expired());
}

TEST_CASE("a thread of the test waits too, and settle does not wait for it") {
  const hand_tasks hand;
  std::mutex mutex;
  task_condition changed(hand.tasks());
  bool done = false;
  const auto t = begin(hand, [&] {
    hand.tasks().sleep(0);
    const std::lock_guard lock(mutex);
    done = true;
    changed.notify_all();
  });
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return done; });
  lock.unlock();
  hand.settle();
}

TEST_CASE("a task can turn no time and settle nothing") {
  const hand_tasks hand, other;
  std::string said;
  begin(hand, [&] {
    try {
      hand.advance(1);
    } catch (const failed_precondition& e) {
      said = e.what();
    }
    CHECK_THROWS_AS(hand.settle(), failed_precondition);
    other.advance(1);  // that of others it can
    other.settle();
  }).join();
  CHECK(said == "a task cannot advance its own tasks; let it sleep instead");
  CHECK(other.elapsed() == 1);
  CHECK(hand.elapsed() == 0);
}

TEST_CASE("settled, nothing moves: drawn chains of notifications and sleeps") {
  // Tasks hand a token on, each to a drawn other, after a drawn sleep; a model without threads tells who has it when.
  for (const unsigned seed : {1u, 2u, 3u, 4u, 5u}) {
    std::mt19937 draw(seed);
    const hand_tasks hand;
    constexpr int n = 5, hops = 60;
    std::vector<int> to(hops), pause(hops);
    for (int i = 0; i < hops; ++i) to[std::size_t(i)] = int(draw() % n), pause[std::size_t(i)] = int(draw() % 3);
    std::mutex mutex;
    std::vector<std::unique_ptr<task_condition>> mine;
    for (int i = 0; i < n; ++i) mine.push_back(std::make_unique<task_condition>(hand.tasks()));
    int hop = 0, holder = 0;  // hop == hops: the end
    std::vector<task_handle> all;
    for (int i = 0; i < n; ++i)
      all.push_back(begin(hand, [&, i] {
        std::unique_lock lock(mutex);
        for (;;) {
          mine[std::size_t(i)]->wait(lock, [&] { return hop == hops || holder == i; });
          if (hop == hops) return;
          const auto at = std::size_t(hop);
          lock.unlock();
          hand.tasks().sleep(pause[at]);
          lock.lock();
          holder = to[at];
          if (++hop == hops)
            for (const auto& c : mine) c->notify_all();
          else if (holder != i)
            mine[std::size_t(holder)]->notify_one();
        }
      }));
    int expected = 0, due = pause[0];  // hops that are over, and when the next is
    for (int time = 0; expected < hops; ++time) {
      if (time > 0) hand.advance(1);
      hand.settle();
      while (expected < hops && due <= time)
        if (++expected < hops) due += pause[std::size_t(expected)];
      const std::lock_guard lock(mutex);
      REQUIRE(hop == expected);
      if (hop > 0) REQUIRE(holder == to[std::size_t(hop - 1)]);
    }
    for (auto& t : all) t.join();
    CHECK(hop == hops);
  }
}
