#include <gradus/cluster/store_lists.hpp>

#include <doctest/doctest.h>

#include <cmath>

using namespace gradus;
using detail::measured_lists;

namespace {
using lists = std::vector<std::vector<double>>;
struct reader {
  lists memory;
  std::vector<std::span<const double>> spans;
  std::vector<std::size_t> at;
  explicit reader(lists l) : memory(std::move(l)), spans(memory.begin(), memory.end()) {}
  measured_lists of(std::size_t shards) { return {1, spans, shards, at}; }
};
}  // namespace

TEST_CASE("each shard's list is read on its own, counts first where they stand") {
  reader r(lists{{2, 10, 11, 0, 7}, {}, {1, 20}});
  measured_lists all = r.of(2);  // the third is of a shard without variables, but it has numbers
  const auto two = all.next_counted(0, "a");
  CHECK(std::vector<double>(two.begin(), two.end()) == std::vector<double>{10, 11});
  CHECK(all.next(2, "b") == 1);
  CHECK(all.next_counted(0, "c").empty());
  CHECK(all.next(0, "d") == 7);
  CHECK_THROWS_WITH_AS(all.end(), "the list of shard 2 for round 1 is malformed: 1 numbers are left behind its end",
                       data_loss);
  CHECK(all.next(2, "b") == 20);
  all.end();
}
TEST_CASE("a list that ends early, counts that lie, and lists that lack are refused") {
  reader r(lists{{1}, {}});
  CHECK_THROWS_WITH_AS(r.of(3), "round 1: the lists of 2 shards came; expected those of 3", data_loss);
  CHECK_THROWS_WITH_AS(
      r.of(2).next(1, "w"),
      "the list of shard 1 for round 1 is malformed: it ends within \"w\": expected 1 more numbers, and 0 are left",
      data_loss);
  for (const double count : {1.0, -1.0, 0.5, 1e300, std::nan(""), HUGE_VAL}) {
    reader one(lists{{count}});
    CHECK_THROWS_WITH_AS(
        one.of(1).next_counted(0, "w"),
        text("the list of shard 0 for round 1 is malformed: it says that \"w\" has ", count, " numbers, and 0 are left")
            .c_str(),
        data_loss);
  }
  reader half(lists{{0.5, 1, 1}});
  CHECK_THROWS_AS(half.of(1).next_counted(0, "w"), data_loss);
}
TEST_CASE("a shard's own list has to be the one that it measured, in bits") {
  reader r(lists{{0.0, 1}, {}});
  const std::vector<double> same{0.0, 1}, zero{-0.0, 1}, shorter{0.0};
  r.of(2).check_own(0, same);
  r.of(2).check_own(1, {});
  r.of(2).check_own(2, {});
  const char* const text = "the list of shard 0 for round 1 is malformed: it is not the list that this shard measured";
  CHECK_THROWS_WITH_AS(r.of(2).check_own(0, zero), text, data_loss);
  CHECK_THROWS_WITH_AS(r.of(2).check_own(0, shorter), text, data_loss);
}
