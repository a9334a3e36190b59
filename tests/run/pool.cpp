// costs: 8
// Threads that wait for work: every one is called once a round, all at the same time, and what they wrote is seen.
#include <gradus/run/pool.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace gradus;

static_assert(thread_pool<worker_pool>);
// A trainer that owns one may lie in the frame of a coroutine, which g++ 12 aligns to 16 bytes.
static_assert(alignof(worker_pool) <= alignof(void*));

TEST_CASE("every thread is called once a round, and the caller sees what it wrote") {
  for (int n : {1, 2, 3, 4, 7, 16})
    for (int spins : {0, 50, 20000}) {
      CAPTURE(n);
      CAPTURE(spins);
      worker_pool p(n, {.spins = spins, .yields = spins / 10});
      CHECK(p.size() == n);
      std::vector<long> sums(static_cast<std::size_t>(n), 0);
      for (int round = 1; round <= 20; ++round)
        p.run([&](int i) { sums[static_cast<std::size_t>(i)] += round * (i + 1); });
      for (int i = 0; i < n; ++i) CHECK(sums[static_cast<std::size_t>(i)] == 210 * (i + 1));
    }
}

TEST_CASE("all run at the same time: they may wait for each other") {
  worker_pool p(4);
  std::atomic<int> here{0};
  for (int round = 1; round <= 5; ++round)
    p.run([&](int) {
      ++here;
      while (here.load() < 4 * round) std::this_thread::yield();
    });
  CHECK(here == 20);
}

TEST_CASE("a pool may go without work, and the caller is thread 0") {
  for (int n = 1; n < 9; ++n) worker_pool idle(n, {.spins = 0, .yields = 0});
  worker_pool p(3);
  const auto me = std::this_thread::get_id();
  std::thread::id zero;
  p.run([&](int i) {
    if (i == 0) zero = std::this_thread::get_id();
  });
  CHECK(zero == me);
}

TEST_CASE("a progress wraps around") {
  detail::progress p;
  for (std::uint32_t i = 0; i < 4; ++i) p.reach(0x40000000u * (i + 1));
  CHECK(p.value() == 0);
  p.wait(0xFFFFFFFFu, {.spins = 0, .yields = 0}, false);  // past
  p.reach(1);
  p.wait(1, {.spins = 0, .yields = 0}, false);
}

TEST_CASE("a number of threads that cannot be") {
  for (int n : {0, -1, 1025}) {
    std::string said;
    try {
      worker_pool p(n);
    } catch (const invalid_argument& e) {
      said = e.what();
    }
    CHECK(said == "threads: expected a count from 1 to 1024, got " + std::to_string(n));
  }
}
