#include "gradus/cluster/protocol/shard_store.hpp"

#include <doctest/doctest.h>

using namespace gradus;
using namespace gradus::detail;

namespace {
struct whole_store {
  std::string problem_of(std::span<const wire_slice>) const { return {}; }
  void apply(std::uint64_t, std::span<const staged_part>) {}
  std::span<const wire_slice> values() const { return {}; }
  std::span<const wire_slice> state() const { return {}; }
  void restore(std::uint64_t, std::span<const wire_slice>) {}
  void save(bytes_out) const {}
  void load(bytes_in&) {}
};
struct no_state : whole_store {
  void state() const {}
};
struct no_restore : whole_store {
  void restore() {}
};
}  // namespace

TEST_CASE("what a store is") {
  CHECK(shard_store<whole_store>);
  CHECK(!shard_store<no_state>);
  CHECK(!shard_store<no_restore>);
}
