#include <gradus/base/tasks.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <latch>
#include <string>
#include <vector>

using namespace gradus;

static_assert(gradus::clock<task_system>);
static_assert(!std::is_copy_constructible_v<task_handle>);
static_assert(std::is_nothrow_move_constructible_v<task_handle>);
static_assert(!std::is_convertible_v<std::shared_ptr<task_driver>, task_system>);

namespace {

// A driver that writes down what is asked of it. Its time passes only while somebody waits or sleeps: a wait lasts as
// long as was asked for, or as `wakes_early` says first. It runs a task when it is started.
struct scribe final : task_driver {
  std::vector<std::string> said;
  std::vector<double> wakes_early;  // the first waits last so long instead, the first of them last
  double time = 0;
  bool refuses = false;

  struct place final : meeting {
    explicit place(scribe& d) : of(d) {}
    ~place() override { of.said.push_back("unmake"); }
    void wait(std::unique_lock<std::mutex>& lock, double secs) override {
      CHECK(lock.owns_lock());
      of.said.push_back(text("wait ", secs));
      if (!of.wakes_early.empty()) secs = of.wakes_early.back(), of.wakes_early.pop_back();
      of.time += secs;
    }
    void notify_one() override { of.said.push_back("one"); }
    void notify_all() override { of.said.push_back("all"); }
    scribe& of;
  };
  struct ran final : running {
    explicit ran(scribe& d) : of(d) {}
    ~ran() override { of.said.push_back("forget"); }
    void join() override { of.said.push_back("join"); }
    scribe& of;
  };
  double now() const override { return 1000 + time; }
  double elapsed() const override { return time; }
  void sleep(double secs) override { said.push_back(text("sleep ", secs)), time += secs; }
  std::unique_ptr<meeting> make_meeting() override { return std::make_unique<place>(*this); }
  std::unique_ptr<running> start(std::function<void()> body) override {
    if (refuses) throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    said.push_back("start");
    body();
    return std::make_unique<ran>(*this);
  }
};

using lines = std::vector<std::string>;

}  // namespace

TEST_CASE("a task calls its body and is waited for when it is destroyed or replaced") {
  const task_system run;
  int first = 0, second = 0, third = 0;
  {
    auto task = run.start("a test", "do without", [&] { first = 1; });
    CHECK(task.joinable());
    task = run.start("a test", "do without", [&] { second = 1; });
    CHECK(first == 1);
    gradus::task_handle moved = std::move(task);
    moved.join();
    CHECK(second == 1);
    CHECK(!moved.joinable());
    moved = run.start("a test", "do without", [&] { third = 1; });
  }
  CHECK(third == 1);
  CHECK(!task_handle().joinable());
}

TEST_CASE("the system's time is the system's, and a sleep takes as long as was said") {
  const task_system run;
  const double before = system_clock{}.now(), from = run.elapsed();
  CHECK(run.now() >= before);
  CHECK(run.now() < before + 1000);
  for (const double none : {0.0, -5.0, std::nan("")}) run.sleep(none);
  run.sleep(2e-3);
  CHECK(run.elapsed() - from >= 2e-3);
}

TEST_CASE("a condition of the system: a deadline that passes, and a state that comes before") {
  const task_system run;
  task_condition changed(run);
  std::mutex mutex;
  bool done = false;
  {
    std::unique_lock lock(mutex);
    const double from = run.elapsed();
    CHECK_FALSE(changed.wait_for(lock, 2e-3, [&] { return done; }));
    CHECK(run.elapsed() - from >= 2e-3);
    for (const double none : {0.0, -1.0, -task_condition::forever})
      CHECK_FALSE(changed.wait_for(lock, none, [&] { return done; }));
    CHECK(changed.wait_for(lock, -1, [] { return true; }));
    CHECK(lock.owns_lock());
  }
  for (const double secs : {60.0, 1e300, task_condition::forever}) {
    done = false;
    std::unique_lock lock(mutex);  // the task cannot say so before the wait begins
    const auto other = run.start("a test", "do without", [&] {
      const std::lock_guard mine(mutex);
      done = true;
      changed.notify_one();
    });
    CHECK(changed.wait_for(lock, secs, [&] { return done; }));
    CHECK(lock.owns_lock());
    lock.unlock();  // the task may not have its lock yet
  }
}

TEST_CASE("a condition of the system: notify_all wakes all, notify_one wakes one after the other") {
  const task_system run;
  for (const bool all : {true, false}) {
    task_condition changed(run), waits(run);
    std::mutex mutex;
    int waiting = 0, tokens = 0, taken = 0;
    std::vector<task_handle> waiters;
    for (int i = 0; i < 3; ++i)
      waiters.push_back(run.start("a test", "do without", [&] {
        std::unique_lock lock(mutex);
        ++waiting;
        waits.notify_one();
        changed.wait(lock, [&] { return tokens > 0; });
        --tokens, ++taken;
        waits.notify_one();
      }));
    std::unique_lock lock(mutex);
    waits.wait(lock, [&] { return waiting == 3; });
    if (all) {
      tokens = 3;
      changed.notify_all();
    } else {
      for (int i = 1; i <= 3; ++i) {
        tokens = 1;
        changed.notify_one();
        waits.wait(lock, [&] { return taken == i; });
      }
    }
    waits.wait(lock, [&] { return taken == 3; });
    CHECK(tokens == 0);
    lock.unlock();
    for (auto& w : waiters) w.join();
  }
}

TEST_CASE("what stands behind the door is asked for everything") {
  const auto driver = std::make_shared<scribe>();
  const task_system run(driver), copy = run;
  CHECK(copy.driver() == driver);
  CHECK(task_system().driver() == nullptr);
  CHECK(run.now() == 1000);
  run.sleep(2.5);
  run.sleep(0), run.sleep(-1);  // are none
  CHECK(copy.elapsed() == 2.5);
  bool called = false;
  {
    auto first = run.start("a test", "do without", [&] { called = true; });
    CHECK(called);
    CHECK(first.joinable());
    first.join();
    CHECK(!first.joinable());
    const auto second = run.start("a test", "do without", [] {});
  }
  CHECK(driver->said == lines{"sleep 2.5", "start", "join", "forget", "start", "join", "forget"});
  driver->said.clear();
  {
    task_condition c(run);
    std::mutex mutex;
    std::unique_lock lock(mutex);
    c.notify_one(), c.notify_all();
    c.wait(lock);
    c.wait_for(lock, 3);
  }
  CHECK(driver->said == lines{"one", "all", "wait inf", "wait 3", "unmake"});
}

TEST_CASE("a wait that returns early waits for what is left, by the driver's time") {
  const auto driver = std::make_shared<scribe>();
  driver->wakes_early = {0.25, 0, 4};  // from the back
  task_condition c{task_system(driver)};
  std::mutex mutex;
  std::unique_lock lock(mutex);
  int looks = 0;
  CHECK_FALSE(c.wait_for(lock, 10, [&] { return ++looks, false; }));
  CHECK(driver->said == lines{"wait 10", "wait 6", "wait 6", "wait 5.75"});
  CHECK(driver->time == 10);
  CHECK(looks == 5);

  driver->said.clear(), looks = 0;
  driver->wakes_early = {1, 1};
  CHECK(c.wait_for(lock, 10, [&] { return ++looks == 3; }));
  CHECK(driver->time == 12);
  driver->wakes_early = {1, 1, 1};
  looks = 0;
  c.wait(lock, [&] { return ++looks == 4; });
  CHECK(driver->said == lines{"wait 10", "wait 9", "wait inf", "wait inf", "wait inf"});

  driver->said.clear();
  for (const double none : {0.0, -3.0}) CHECK_FALSE(c.wait_for(lock, none, [] { return false; }));
  CHECK(driver->said.empty());
}

TEST_CASE("a condition keeps its driver") {
  auto driver = std::make_shared<scribe>();
  const std::weak_ptr<scribe> alive = driver;
  {
    task_condition c{task_system(std::exchange(driver, nullptr))};
    CHECK(!alive.expired());
    c.notify_all();
  }
  CHECK(alive.expired());
}

TEST_CASE("where a driver has no thread, the error says for what, and what to do; `otherwise` comes before it") {
  const auto driver = std::make_shared<scribe>();
  driver->refuses = true;
  const task_system run(driver);
  bool called = false, otherwise = false;
  CHECK_THROWS_WITH_AS((void)run.start(
                           "prefetch", "leave prefetch out", [&] { called = true; }, [&] { otherwise = true; }),
                       doctest::Contains("(end other threads or processes, raise the limit of them (ulimit -u), or "
                                         "leave prefetch out)"),
                       resource_exhausted);
  CHECK_THROWS_WITH_AS((void)run.start("prefetch", "leave prefetch out", [] {}),
                       doctest::Contains("prefetch cannot begin a thread: "), resource_exhausted);
  CHECK(otherwise);
  CHECK(!called);
  driver->refuses = false;
  (void)run.start("prefetch", "leave prefetch out", [&] { called = true; });
  CHECK(called);
}
