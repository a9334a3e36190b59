#include <gradus/run/storage.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

using namespace gradus;

TEST_CASE("on the heap: tables as asked for, memory that never shrinks") {
  heap_storage::table<int> t;
  heap_storage::resize(t, 3);
  t[2] = 7;
  heap_storage::resize(t, 5);
  CHECK(t.size() == 5);
  CHECK(t[2] == 7);
  heap_storage::memory m;
  heap_storage::reserve(m, 100);
  std::byte* const at = m.data();
  CHECK(reinterpret_cast<std::uintptr_t>(at) % alignment == 0);
  heap_storage::reserve(m, 50);
  heap_storage::reserve(m, 100);
  CHECK(m.data() == at);
  heap_storage::reserve(m, 0);
  CHECK(m.size() == 100);
}

TEST_CASE("of fixed size: inside the object, and no further") {
  using fixed = static_storage<capacities{.entries = 4, .bytes = 256}>;
  struct {
    fixed::table<int> t;
    fixed::memory m;
  } all;
  fixed::resize(all.t, 4);
  CHECK(all.t.size() == 4);
  all.t[3] = 9;
  CHECK(*(all.t.end() - 1) == 9);
  CHECK(all.t.end() - all.t.begin() == 4);
  fixed::reserve(all.m, 256);
  CHECK(reinterpret_cast<std::uintptr_t>(all.m.data()) % alignment == 0);
  const auto* inside = reinterpret_cast<const std::byte*>(&all);
  CHECK(all.m.data() >= inside);
  CHECK(all.m.data() + all.m.size() <= inside + sizeof all);
  std::string said;
  try {
    fixed::reserve(all.m, 257);
  } catch (const resource_exhausted& e) {
    said = e.what();
  }
  CHECK(said == "the batch is larger than this static_batch holds");
}
