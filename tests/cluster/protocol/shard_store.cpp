#include "gradus/cluster/protocol/shard_store.hpp"

#include <doctest/doctest.h>

using namespace gradus;
using namespace gradus::detail;

namespace {
struct whole_store {
  std::string problem_of(std::span<const wire_slice>) const { return {}; }
  void begin(std::uint64_t, std::span<const staged_part>) {}
  std::size_t rounds() const { return 0; }
  std::span<const double> measure(std::size_t) { return {}; }
  void settle(std::size_t, std::span<const std::span<const double>>) {}
  void apply() {}
  std::span<const wire_slice> values() const { return {}; }
  std::span<const wire_slice> state() const { return {}; }
  void restore(std::uint64_t, std::span<const wire_slice>) {}
  void save(bytes_out) const {}
  void load(bytes_in&) {}
};
struct no_state : whole_store {
  void state() const {}
};
struct no_rounds : whole_store {
  void rounds() const {}
};
struct one_list : whole_store {
  void settle(std::size_t, std::span<const double>) {}
};
struct no_restore : whole_store {
  void restore() {}
};
}  // namespace

TEST_CASE("what a store is") {
  CHECK(shard_store<whole_store>);
  CHECK(!shard_store<no_state>);
  CHECK(!shard_store<no_rounds>);
  CHECK(!shard_store<one_list>);
  CHECK(!shard_store<no_restore>);
}
