#include <gradus/base/clock_tasks.hpp>
#include <gradus/testing/clock.hpp>
#include <gradus/testing/hand_tasks.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace gradus;

namespace {
// Its waits take no time, and half of what was asked for passes in them.
struct halving_clock {
  std::vector<double>* waits;
  double* time;
  double now() const { return 1000 + *time; }
  double elapsed() const { return *time; }
  void wait(std::condition_variable&, std::unique_lock<std::mutex>& lock, double secs) const {
    CHECK(lock.owns_lock());
    waits->push_back(secs);
    *time += secs > 1 ? secs / 2 : secs;
  }
};
static_assert(waiting_clock<halving_clock>);
static_assert(!waiting_clock<testing::hand_clock>);
static_assert(!waiting_clock<task_system>);
}  // namespace

TEST_CASE("tasks are themselves, the system's clock is the system's tasks") {
  const testing::hand_tasks hand;
  CHECK(tasks_of(hand.tasks()).driver() == hand.tasks().driver());
  CHECK(tasks_of(hand).driver() == hand.tasks().driver());
  CHECK(tasks_of(system_clock{}).driver() == nullptr);
  CHECK(tasks_of(task_system{}).driver() == nullptr);
}

TEST_CASE("a clock that only tells the time: its time, and the system's threads and waits") {
  const testing::hand_clock clock(100);
  const task_system run = tasks_of(clock);
  clock.advance(5);
  CHECK(run.now() == 105);
  CHECK(run.elapsed() == 5);
  run.sleep(1e-3);
  CHECK(run.elapsed() == 5);
  task_condition changed(run);
  std::mutex mutex;
  bool done = false;
  std::unique_lock lock(mutex);
  changed.wait_for(lock, 1e-3);  // ends by the system's time
  const auto other = run.start("a test", "do without", [&] {
    const std::lock_guard mine(mutex);
    done = true;
    changed.notify_all();
  });
  CHECK(changed.wait_for(lock, 1e300, [&] { return done; }));
  done = false;
  const auto another = run.start("a test", "do without", [&] {
    const std::lock_guard mine(mutex);
    done = true;
    changed.notify_one();
  });
  changed.wait(lock, [&] { return done; });
  lock.unlock();
}

TEST_CASE("a clock that waits is asked for each wait and sleep that has an end") {
  std::vector<double> waits;
  double time = 0;
  const task_system run = tasks_of(halving_clock{&waits, &time});
  task_condition changed(run);
  std::mutex mutex;
  {
    std::unique_lock lock(mutex);
    CHECK_FALSE(changed.wait_for(lock, 4, [] { return false; }));
    CHECK(waits == std::vector<double>{4, 2, 1});
    CHECK(time == 4);
  }
  waits.clear();
  run.sleep(4);
  CHECK(waits == std::vector<double>{4, 2, 1});
  CHECK(time == 8);
  waits.clear();
  bool done = false;
  std::unique_lock lock(mutex);
  const auto other = run.start("a test", "do without", [&] {
    const std::lock_guard mine(mutex);
    done = true;
    changed.notify_all();
  });
  changed.wait(lock, [&] { return done; });
  CHECK(waits.empty());
  lock.unlock();
}
