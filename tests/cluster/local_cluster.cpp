// Tasks on threads: who they are, how they end, and whose error is told.
#include <gradus/cluster/local_cluster.hpp>
#include <gradus/cluster/task_network.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "../message.hpp"

using namespace gradus;

TEST_CASE("the program runs once for each task, and each knows its place") {
  std::mutex mutex;
  std::vector<std::string> tasks;
  local_cluster{.ps = 2, .workers = 3}.run([&](server& here) {
    const std::lock_guard lock(mutex);
    CHECK(here.workers() == 3);
    CHECK(here.shards() == 2);
    CHECK(here.network() != nullptr);
    tasks.push_back(text(here.target(), here.is_chief() ? " chief" : "", here.is_ps() ? " ps" : ""));
  });
  std::sort(tasks.begin(), tasks.end());
  CHECK(tasks == std::vector<std::string>{"in_process://ps0:0 ps", "in_process://ps1:0 ps",
                                          "in_process://worker0:0 chief", "in_process://worker1:0",
                                          "in_process://worker2:0"});
}

TEST_CASE("a parameter server's join returns when the workers' programs have ended, though nothing was trained") {
  int joined = 0;
  std::mutex mutex;
  local_cluster{.ps = 2, .workers = 2}.run([&](server& here) {
    here.finish();  // who started the threads waits for them
    if (!here.is_ps()) return;
    here.join();
    const std::lock_guard lock(mutex);
    ++joined;
  });
  CHECK(joined == 2);
}

TEST_CASE("what a task throws is thrown, the first of all") {
  for (const char* task : {"in_process://worker1:0", "in_process://ps0:0"}) {
    CAPTURE(task);
    CHECK_THROWS_WITH_AS(local_cluster({.ps = 1, .workers = 2}).run([&](server& here) {
      if (here.target() == task) throw std::runtime_error("it broke");
      if (here.is_ps()) here.join();
    }),
                         "it broke", std::runtime_error);
  }
}

TEST_CASE("without parameter servers there are workers alone, and what needs one says so") {
  std::mutex mutex;
  int workers = 0;
  const local_cluster two{.ps = 0, .workers = 2};
  CHECK(two.spec() == cluster_spec{{"worker", {"worker0:0", "worker1:0"}}});
  std::string said;
  two.run([&](server& here) {
    here.finish();
    const std::lock_guard lock(mutex);
    CHECK(here.shards() == 0);
    CHECK(here.is_chief() == (here.worker() == 0));
    ++workers;
    said = message_of(status::invalid_argument, [&] { (void)here.network()->messages(); });
  });
  CHECK(workers == 2);
  CHECK(says(said, "this cluster has no parameter servers"));
  CHECK_THROWS_WITH_AS(two.run([&](server& here) {
    if (here.worker() == 1) throw std::runtime_error("it broke");
  }),
                       "it broke", std::runtime_error);
}

TEST_CASE("a cluster needs a worker") {
  const auto said = [](const local_cluster& c) {
    return message_of(status::invalid_argument, [&] { c.run([](server&) {}); });
  };
  CHECK(says(said({.ps = -1, .workers = 2}), "expected ps of 0 or more, and one worker or more, found -1 and 2"));
  CHECK(says(said({.ps = 1, .workers = 0}), "found 1 and 0"));
}
