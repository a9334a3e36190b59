#include <gradus/base/thread_slot.hpp>

#include <doctest/doctest.h>

#include <latch>
#include <set>
#include <thread>
#include <vector>

using namespace gradus::detail;

namespace {
// The numbers of so many threads that live at once.
std::vector<unsigned> of_threads(unsigned n) {
  std::vector<unsigned> slots(n);
  std::vector<std::thread> threads;
  std::latch all_have_one(n);
  for (unsigned i = 0; i < n; ++i)
    threads.emplace_back([&, i] {
      slots[i] = thread_slot();
      all_have_one.arrive_and_wait();
      if (thread_slot() != slots[i]) slots[i] = thread_slots;  // no thread's number
    });
  for (auto& t : threads) t.join();
  return slots;
}
}  // namespace

TEST_CASE("a thread keeps its number, and as many threads as there are numbers have different ones") {
  const unsigned here = thread_slot();
  CHECK(thread_slot() == here);
  const auto others = of_threads(thread_slots - 1);
  std::set<unsigned> seen(others.begin(), others.end());
  seen.insert(here);
  CHECK(seen.size() == thread_slots);
  CHECK(*seen.rbegin() == thread_slots - 1);
}

TEST_CASE("threads that come and go never take the number of one that lives") {
  const unsigned here = thread_slot();
  for (unsigned i = 0; i < 5 * thread_slots; ++i) CHECK(of_threads(1)[0] != here);
  CHECK(std::set<unsigned>{here, of_threads(1)[0]} == std::set<unsigned>{0, 1});  // the lowest free one
}

TEST_CASE("more threads than numbers share them, and their ends free only what they had for themselves") {
  for (const unsigned slot : of_threads(3 * thread_slots)) CHECK(slot < thread_slots);
  const unsigned here = thread_slot();
  for (unsigned i = 0; i < 2 * thread_slots; ++i) CHECK(of_threads(1)[0] != here);
}
