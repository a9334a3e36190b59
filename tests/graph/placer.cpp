#include <gradus/graph/placer.hpp>

#include <doctest/doctest.h>

using namespace gradus;

TEST_CASE("a copy of a graph has no placer: it belongs to a block of the original") {
  detail::placer one{nullptr};
  detail::placer_slot slot;
  slot.now = &one;
  const detail::placer_slot copy = slot;
  CHECK(copy.now == nullptr);
  detail::placer_slot other;
  other = slot;
  CHECK(other.now == nullptr);
  CHECK(slot.now == &one);
}
