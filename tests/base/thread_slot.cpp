#include <gradus/base/thread_slot.hpp>

#include <doctest/doctest.h>

#include <set>
#include <thread>

using namespace gradus::detail;

TEST_CASE("a thread keeps its number, and as many threads as there are numbers have different ones") {
  const unsigned here = thread_slot();
  CHECK(thread_slot() == here);
  std::set<unsigned> seen{here};
  for (unsigned i = 1; i < thread_slots; ++i)
    std::thread([&] {
      const unsigned mine = thread_slot();
      CHECK(thread_slot() == mine);
      seen.insert(mine);
    }).join();
  CHECK(seen.size() == thread_slots);
  CHECK(*seen.rbegin() == thread_slots - 1);
}
