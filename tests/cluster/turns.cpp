// Tasks that take turns in virtual time: one at a time, by the seed, and what is said when none can go on.
#include <gradus/cluster/turns.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "../message.hpp"

using namespace gradus;
using detail::turn_driver;

namespace {
// A driver, and this thread among its tasks.
struct turns {
  std::shared_ptr<turn_driver> driver;
  turn_driver::presence here;
  task_system tasks;
  explicit turns(std::uint64_t seed, detail::nanos most = detail::never_due)
      : driver(std::make_shared<turn_driver>(seed, most)), here(*driver, "the test"), tasks(driver) {}
  task_handle start(const std::string& who, std::function<void()> body) const {
    return tasks.start(who, "do without", std::move(body));
  }
};

// Tasks that hand numbers round; who did what, in its order.
std::string history(std::uint64_t seed) {
  turns t(seed);
  std::string said;
  std::atomic<int> inside{0};
  std::mutex mutex;
  task_condition changed(t.tasks);
  std::deque<int> queue;
  std::vector<task_handle> all;
  for (int i = 0; i < 4; ++i)
    all.push_back(t.start(text(i), [&, i] {
      for (int k = 0; k < 5; ++k) {
        CHECK(inside.fetch_add(1) == 0);  // nobody else is between two waits
        said += text(i, " ");
        inside.fetch_sub(1);
        if (i % 2 == 0) {
          const std::lock_guard lock(mutex);
          queue.push_back(i);
          changed.notify_one();
        } else {
          std::unique_lock lock(mutex);
          changed.wait(lock, [&] { return !queue.empty(); });
          queue.pop_front();
        }
        t.tasks.sleep(0.25 * (i + 1));
      }
    }));
  all.clear();
  CHECK(t.driver->time() == 5 * 1000 * detail::one_millisecond);
  return said;
}
}  // namespace

TEST_CASE("one task runs at a time, and the seed says which") {
  const std::string first = history(1);
  CHECK(history(1) == first);
  bool differs = false;
  for (std::uint64_t seed = 2; seed < 8; ++seed) differs = differs || history(seed) != first;
  CHECK(differs);
}

TEST_CASE("time jumps to the next deadline, and a wait ends by it or by a notification") {
  turns t(3);
  const double begin = t.tasks.elapsed();
  t.tasks.sleep(86400);
  CHECK(t.tasks.elapsed() == doctest::Approx(begin + 86400).epsilon(1e-12));
  CHECK(t.tasks.now() == doctest::Approx(1.5e9 + begin + 86400).epsilon(1e-15));
  std::mutex mutex;
  task_condition changed(t.tasks);
  bool is_there = false;
  double ended[2] = {};
  auto waits = t.start("waits", [&] {
    std::unique_lock lock(mutex);
    CHECK(!changed.wait_for(lock, 2, [&] { return is_there; }));
    ended[0] = t.tasks.elapsed();
    changed.wait(lock, [&] { return is_there; });
    ended[1] = t.tasks.elapsed();
  });
  t.tasks.sleep(5);
  {
    const std::lock_guard lock(mutex);
    is_there = true;
    changed.notify_all();
  }
  waits.join();
  CHECK(ended[0] == doctest::Approx(begin + 86402).epsilon(1e-12));
  CHECK(ended[1] == doctest::Approx(begin + 86405).epsilon(1e-12));
}

TEST_CASE("a machine that is stopped gets no turn, and its clock goes on") {
  turns t(4);
  const std::size_t machine = t.driver->add_machine({.name = "worker 1"});
  double woke = 0;
  auto sleeper = t.start("sleeper", [&] {
    t.driver->move_to(machine);
    t.tasks.sleep(1);
    woke = t.tasks.elapsed();
  });
  const double begin = t.tasks.elapsed();
  t.tasks.sleep(0.5);
  t.driver->stop(machine, 10'000 * detail::one_millisecond);
  t.tasks.sleep(2);
  CHECK(woke == 0);
  CHECK(says(t.driver->waits(), "worker 1, sleeper waits for time to pass since 0.000000000 s, until 1.000000000 s"));
  CHECK(says(t.driver->waits(), "(it is stopped until 10.500000000 s)"));
  sleeper.join();
  CHECK(woke == doctest::Approx(begin + 10.5).epsilon(1e-12));
}

TEST_CASE("clocks of machines are ahead, and too fast; what they start is theirs") {
  turns t(5);
  const std::size_t machine =
      t.driver->add_machine({.name = "a", .ahead = -60'000 * detail::one_millisecond, .rate = 2});
  auto there = t.start("there", [&] {
    t.driver->move_to(machine);
    const double begin = t.tasks.elapsed();
    CHECK(begin == doctest::Approx(2 * 1000 - 60).epsilon(1e-12));
    auto child = t.start("child", [&] { CHECK(t.driver->here() == machine); });
    t.tasks.sleep(10);
    CHECK(t.tasks.elapsed() == doctest::Approx(begin + 10).epsilon(1e-12));
  });
  there.join();
  CHECK(t.driver->here() == 0);
  CHECK(t.driver->time() == 5'000 * detail::one_millisecond);
}

TEST_CASE("where nobody can go on, all waits raise, with what each waited for and since when") {
  turns t(6);
  std::mutex mutex;
  task_condition one(t.tasks), other(t.tasks);
  std::string said[2];
  const auto wait = [&](task_condition& c, std::string& what) {
    what = message_of(status::aborted, [&] {
      std::unique_lock lock(mutex);
      c.wait(lock);
    });
    CHECK(mutex.try_lock());  // who fails has let go of it
    mutex.unlock();
  };
  auto first = t.start("first", [&] { wait(one, said[0]); });
  auto second = t.start("second", [&] { t.tasks.sleep(3), wait(other, said[1]); });
  first.join();
  second.join();
  CHECK(said[0] == said[1]);
  CHECK(says(said[0], "nothing goes on: "));
  CHECK(says(said[0], "first waits for a notification since 0.000000000 s"));
  CHECK(says(said[0], "second waits for a notification since 3.000000000 s"));
  CHECK(says(said[0], "the test waits for the end of another task"));
}

TEST_CASE("the watchman is told first, and may help") {
  turns t(7);
  std::mutex mutex;
  task_condition changed(t.tasks), never(t.tasks);
  bool is_there = false, was_told = false;
  auto watchman = t.start("watchman", [&] {
    t.driver->watch();
    std::unique_lock lock(mutex);
    CHECK(says(message_of(status::aborted, [&] { never.wait(lock); }), "nothing goes on"));
    is_there = was_told = true;
    changed.notify_all();
  });
  auto waits = t.start("waits", [&] {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return is_there; });
  });
  waits.join();
  watchman.join();
  CHECK(was_told);
}

TEST_CASE("time that is over is an error") {
  turns t(8, 60'000 * detail::one_millisecond);
  t.tasks.sleep(59);
  const std::string said = message_of(status::deadline_exceeded, [&] { t.tasks.sleep(2); });
  CHECK(says(said, "it has not ended after 60.000000000 s"));
  CHECK(says(said, "the test waits for time to pass since 59.000000000 s, until 61.000000000 s"));
}

TEST_CASE("a thread that takes no turns cannot wait, and may look at the time") {
  turns t(9);
  std::string said;
  double seen = 0;
  std::thread([&] {
    seen = t.tasks.elapsed();
    said = message_of(status::failed_precondition, [&] { t.tasks.sleep(1); });
  }).join();
  CHECK(seen == t.tasks.elapsed());
  CHECK(says(said, "start it by the driver's task_system"));
  CHECK(says(message_of(status::failed_precondition, [&] { turns again(1); }), "a thread that is no task"));
}

TEST_CASE("virtual time as text") {
  CHECK(detail::seconds_text(0) == "0.000000000");
  CHECK(detail::seconds_text(61'000'000'007) == "61.000000007");
  CHECK(detail::seconds_text(-1'500'000'000) == "-1.500000000");
}
