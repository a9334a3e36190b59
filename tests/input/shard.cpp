#include <gradus/input/shard.hpp>

#include "data.hpp"

using namespace data_tests;

#include <gradus/input/dataset.hpp>
#include <gradus/input/generator.hpp>

TEST_CASE("every n-th, of elements and of batches") {
  CHECK(all_of(range_dataset(10).shard(3, 1)) == ints{1, 4, 7});
  CHECK(all_of(counter_dataset().take(10).shard(3, 0)) == ints{0, 3, 6, 9});
  CHECK(range_dataset(10).shard(3, 1).cardinality() == 3);
  CHECK(range_dataset(10).shard(3, 0).cardinality() == 4);
  CHECK(range_dataset(2).shard(3, 2).cardinality() == 0);
  CHECK(all_of(range_dataset(10).batch(2).shard(2, 1)) == ints{2, 3, 6, 7});
  static_assert(indexed_dataset<shard_of<range_dataset>>);  // a shuffle over it holds no copies
  auto ordered = all_of(range_dataset(10).shard(3, 1).shuffle(10, 1));
  std::sort(ordered.begin(), ordered.end());
  CHECK(ordered == ints{1, 4, 7});
  std::int64_t values[8];
  const tensor_view view(std::span<std::int64_t>(values), {8});
  auto d = counter_dataset().take(10).shard(3, 2);
  CHECK(d.next_batch({&view, 1}, 8) == 3);
  CHECK(values[2] == 8);
  CHECK(
      message_of(status::invalid_argument, [] { range_dataset(3).shard(2, 2); }).starts_with("shard(2, 2): expected"));
  resumes([] { return counter_dataset().take(20).shard(3, 1).repeat(2); });
}

TEST_CASE("a record that raises an error is passed over, and shards and skips go on with the elements of their own") {
  const auto numbers = [] {
    return from_generator(scalar, [] {
      return [i = 0](datum& e) mutable {
        const int mine = i++;
        if (mine == 3) raise(status::data_loss, "a bad record");
        e.set<std::int64_t>(0, mine > 3 ? mine - 1 : mine);  // 0 1 2 (bad) 3 4 ...
        return mine < 41;
      };
    });
  };
  const auto read = [](auto d) {
    ints all;
    datum e;
    for (int raised = 0; raised < 2;) try {
        if (!d.next(e)) break;
        all.push_back(e.template value<std::int64_t>(0));
      } catch (const data_loss&) {
        ++raised;
      }
    return all;
  };
  CHECK(read(numbers().shard(8, 0)) == ints{0, 8, 16, 24, 32});
  CHECK(read(numbers().shard(8, 5)) == ints{5, 13, 21, 29, 37});
  CHECK(read(numbers().skip(36)) == ints{36, 37, 38, 39});
}
