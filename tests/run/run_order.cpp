// sanitized in every run: threads that must exclude each other
#include <gradus/run/run_order.hpp>

#include <doctest/doctest.h>
#include <gradus/base/random.hpp>

#include <atomic>
#include <latch>
#include <memory>
#include <vector>

using gradus::detail::run_order;

namespace {
// Begins a run on a thread of its own and says whether it has begun.
struct other_run {
  std::atomic<bool> began = false;
  std::latch may_end{1};
  gradus::task_handle thread;
  other_run(run_order& order, run_order::kind& kind) {
    thread = gradus::task_system().start("a run", "do without", [this, &order, &kind] {
      const run_order::turn here(order, kind);
      began = true;
      began.notify_all();
      may_end.wait();
    });
  }
  void await() { began.wait(false); }
  void end() {
    may_end.count_down();
    thread.join();
  }
};
}  // namespace

TEST_CASE("kinds exclude each other if one writes what the other reads or writes, in whichever order they are added") {
  constexpr unsigned variables = 2, reads = 1, writes = 2, all = 16;  // two bits a variable
  run_order order;
  run_order::kind* kinds[all];
  for (unsigned k = 0; k < all; ++k) {
    run_order::footprint f;
    for (unsigned v = 0; v < variables; ++v) {
      if ((k >> 2 * v & reads) != 0) f.reads.push_back(static_cast<int>(v));
      if ((k >> 2 * v & writes) != 0) f.writes.push_back(static_cast<int>(v));
    }
    kinds[k] = &order.add(std::move(f));
  }
  for (unsigned a = 0; a < all; ++a)
    for (unsigned b = 0; b < all; ++b) {
      bool expected = false;
      for (unsigned v = 0; v < variables; ++v) {
        const unsigned x = a >> 2 * v & 3, y = b >> 2 * v & 3;
        expected = expected || (((x | y) & writes) != 0 && x != 0 && y != 0);
      }
      CAPTURE(a);
      CAPTURE(b);
      CHECK(order.exclude_each_other(*kinds[a], *kinds[b]) == expected);
    }
  for (const auto* k : kinds) CHECK(order.exclude_each_other(*k, order.alone()));
}

TEST_CASE("readers of one variable overlap, also with writers of others") {
  run_order order;
  auto &reads_a = order.add({{0}, {}}), &writes_b = order.add({{}, {1}}), &nothing = order.add({{}, {}});
  const run_order::turn one(order, reads_a), two(order, reads_a), three(order, writes_b), four(order, nothing);
  CHECK(&order.add({{0, 0}, {}}) == &reads_a);  // one kind, however it is written
  CHECK(&order.add({{}, {}}) == &nothing);
  CHECK(&order.add({{1}, {0}}) != &order.add({{0}, {1}}));
}

TEST_CASE("a writer waits for a reader and for a writer, and for nobody else") {
  run_order order;
  run_order::kind* const kinds[] = {&order.add({{0, 1}, {}}), &order.add({{2}, {1}}), &order.alone()};
  for (int first = 0; first < 3; ++first)
    for (int second = 0; second < 3; ++second) {
      if (first == 0 && second == 0) continue;
      auto held = std::make_unique<run_order::turn>(order, *kinds[first]);
      other_run later(order, *kinds[second]);
      if (first != 2 && second != 2)  // who touches nothing of either passes, unless somebody wants to be alone
        for (run_order::kind* const by : {&order.add({{7}, {8}}), &order.add({{7}, {}}), &order.add({{}, {}})}) {
          const run_order::turn here(order, *by);
          CHECK(!later.began);
        }
      CHECK(!later.began);
      held.reset();
      later.await();
      later.end();
    }
}

TEST_CASE("a kind that is added while one is at work or waits that excludes it keeps out until that has ended") {
  for (const bool writes : {false, true}) {
    run_order order;
    auto& writer = order.add({{}, {0}});
    auto at_work = std::make_unique<run_order::turn>(order, writer);
    other_run waits(order, writer);
    auto& late = writes ? order.add({{}, {0, 1}}) : order.add({{0}, {}});
    other_run later(order, late);
    {
      const run_order::turn apart(order, order.add({{5}, {}}));  // it touches nothing of the others
    }
    CHECK(!later.began);
    at_work.reset();
    waits.may_end.count_down();
    later.await();
    later.end();
    waits.await();
    waits.thread.join();
    const run_order::turn again(order, late);  // all is open again
  }
}

TEST_CASE("runs that exclude all others begin while kinds are added") {
  run_order order;
  std::atomic<bool> over = false;
  auto thread = gradus::task_system().start("a service", "do without", [&] {
    while (!over) const run_order::turn here(order, order.alone());
  });
  for (int i = 0; i < 500; ++i) order.add({{i}, {i + 1}});
  over = true;
  thread.join();
  CHECK(&order.add({{0}, {1}}) == &order.add({{0}, {1}}));
}

TEST_CASE("a reader that comes behind a waiting writer waits, so that writers do not starve") {
  run_order order;
  auto &reads = order.add({{0}, {}}), &writes = order.add({{}, {0}});
  other_run reader(order, reads);
  reader.await();
  other_run writer(order, writes), late(order, reads);
  // Whichever of the two comes first, the writer is never passed by a reader that came behind it, and both end.
  reader.end();
  writer.may_end.count_down();
  late.await();
  late.end();
  writer.await();
  writer.thread.join();
}

TEST_CASE("drawn runs of many threads never meet where they exclude each other, and all of them end") {
  constexpr int variables = 6, threads = 8, runs = 400;
  struct cell {
    std::atomic<int> readers{0}, writers{0};
  };
  run_order order;
  std::vector<cell> cells(variables);
  std::atomic<int> faults{0}, ended{0};
  {
    std::vector<gradus::task_handle> all;
    for (int t = 0; t < threads; ++t)
      all.push_back(gradus::task_system().start("a test", "do without", [&, t] {
        gradus::random_stream r{static_cast<std::uint64_t>(t)};
        for (int i = 0; i < runs; ++i) {
          run_order::footprint f;
          for (int v = 0; v < variables; ++v)
            if (const double u = r.uniform(); u < 0.2)
              f.writes.push_back(v);
            else if (u < 0.5)
              f.reads.push_back(v);
          auto& kind = order.add(f);
          const run_order::turn here(order, kind);
          for (const int v : f.reads) {
            cell& c = cells[static_cast<std::size_t>(v)];
            ++c.readers;
            if (c.writers != 0) ++faults;
          }
          for (const int v : f.writes) {
            cell& c = cells[static_cast<std::size_t>(v)];
            if (++c.writers != 1 || c.readers != 0) ++faults;
          }
          for (const int v : f.reads) --cells[static_cast<std::size_t>(v)].readers;
          for (const int v : f.writes) --cells[static_cast<std::size_t>(v)].writers;
          ++ended;
        }
      }));
  }
  CHECK(faults == 0);
  CHECK(ended == threads * runs);
}
