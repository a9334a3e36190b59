#include "gradus/cluster/protocol/under_way.hpp"

#include "../../message.hpp"
#include "outside.hpp"

using namespace protocol_tests;

namespace {
struct wide_store {
  std::size_t numbers = 0;
  std::string seen;
  std::vector<double> list;

  std::string problem_of(std::span<const wire_slice>) const { return {}; }
  void begin(std::uint64_t order, std::span<const staged_part>) { seen = text("begin ", order); }
  std::size_t rounds() const { return 1; }
  std::span<const double> measure(std::size_t) { return list.assign(numbers, 1.5), std::span<const double>(list); }
  void settle(std::size_t round, std::span<const std::span<const double>> by_shard) {
    seen += text(" settle ", round);
    for (const auto& l : by_shard) seen += text(" ", l.size());
  }
  void apply() { seen += " apply"; }
  std::span<const wire_slice> values() const { return {}; }
  std::span<const wire_slice> state() const { return {}; }
  void restore(std::uint64_t, std::span<const wire_slice>) {}
  void save(bytes_out) const {}
  void load(bytes_in&) {}
};
}  // namespace

TEST_CASE("an update is begun, settled by the lists of as many shards as there are, and applied") {
  wide_store store;
  update_under_way<wide_store> u(0, 2, store);
  const contribution_id id[] = {{0, 1, 1}};
  store.numbers = 2;
  u.begin(4, id, {});
  CHECK((u.is_open() && !u.is_settled() && u.order() == 4 && u.round() == 0));
  u.measure();
  CHECK(u.measures().size() == 2);
  const lists one(std::vector<std::vector<double>>{{1}}), two({{1}, {2, 3}});
  CHECK(u.problem_of(one.slices) == "expected the lists of 2 shards, found 1");
  lists odd({{1}, {2}});
  odd.slices[1].name = "0";
  CHECK(u.problem_of(odd.slices) == "slice 1 is not the list of shard 1");
  CHECK(u.problem_of(two.slices).empty());
  u.settle(two.slices);
  CHECK((u.is_settled() && u.round() == 1));
  std::vector<std::byte> record;
  u.write(bytes_out(record));
  u.apply();
  CHECK(!u.is_open());
  CHECK(store.seen == "begin 4 settle 0 1 2 apply");
  // Again from the record.
  u.begin(4, id, {});
  bytes_in in(record, "record");
  u.replay(in);
  in.end();
  CHECK(u.is_settled());
  CHECK(store.seen == "begin 4 settle 0 1 2");
}

TEST_CASE("a list that nobody would take is refused where it is made") {
  wide_store store;
  update_under_way<wide_store> u(3, 2, store);
  u.begin(4, {}, {});
  store.numbers = measures_most;
  u.measure();
  ++store.numbers;
  CHECK(message_of(status::resource_exhausted, [&] { u.measure(); }) ==
        "shard 3 measures 1048577 numbers in round 0 of update 4; a list has at most 1048576");
}
