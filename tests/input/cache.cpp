#include <gradus/input/cache.hpp>

#include <gradus/input/dataset.hpp>
#include <gradus/input/map.hpp>
#include <gradus/testing/temp_dir.hpp>

#include "data.hpp"

using namespace data_tests;

namespace {
auto counted(int& reads) {
  return range_dataset(6).map([&reads](datum& e) {
    ++reads;
    e.set(0, value_of(e) * 2);
  });
}
}  // namespace

TEST_CASE("read once, in memory and in a file") {
  const testing::temp_dir dir;
  for (const auto& path : {std::string(), dir / "kept"}) {
    int reads = 0;
    auto d = counted(reads).cache(path).repeat(3);
    const ints once = {0, 2, 4, 6, 8, 10};
    ints expected;
    for (int i = 0; i < 3; ++i) expected.insert(expected.end(), once.begin(), once.end());
    CHECK(all_of(std::move(d)) == expected);
    CHECK(reads == 6);
    CHECK(all_of(counted(reads).cache(path)) == once);
    CHECK(reads == (path.empty() ? 12 : 6));  // the file is there for later processes
  }
  CHECK(lists_of(range_dataset(5).batch(2).cache().repeat(2)) ==
        std::vector<ints>{{0, 1}, {2, 3}, {4}, {0, 1}, {2, 3}, {4}});
}

TEST_CASE("an iteration that was left is forgotten") {
  const testing::temp_dir dir;
  for (const auto& path : {std::string(), dir / "kept"}) {
    int reads = 0;
    auto d = counted(reads).cache(path);
    datum e;
    d.next(e), d.next(e);
    d.rewind();
    CHECK(all_of(std::move(d)) == ints{0, 2, 4, 6, 8, 10});
    CHECK(reads == 8);
  }
}

TEST_CASE("the order is kept, too") {
  auto d = range_dataset(9).shuffle(9, 1).cache().repeat(2);
  const auto all = all_of(std::move(d));
  CHECK(ints(all.begin(), all.begin() + 9) == ints(all.begin() + 9, all.end()));
}

TEST_CASE("positions: the source where filling began") {
  resumes([] { return range_dataset(7).shuffle(7, 1).cache().repeat(3); });
  resumes([] { return range_dataset(7).shuffle(7, 1).batch(2).cache().repeat(3); });
  const testing::temp_dir dir;
  int files = 0;
  resumes([&] { return range_dataset(7).shuffle(7, 1).cache(dir / text(files++)).repeat(3); });
  resumes([&] { return range_dataset(7).shuffle(7, 1).cache(dir / "same").repeat(2); });
  auto large = range_dataset(10000).cache().repeat();
  datum e;
  for (int i = 0; i < 15000; ++i) large.next(e);
  std::vector<std::byte> at;
  large.save(at);
  CHECK(at.size() < 200);
}

TEST_CASE("a file of another dataset, or damaged") {
  const testing::temp_dir dir;
  all_of(range_dataset(4).cache(dir / "kept"));
  CHECK(message_of(status::failed_precondition, [&] {
          all_of(range_dataset(0, 4, 1, "other").cache(dir / "kept"));
        }).find("is not the cache of this dataset") != std::string::npos);
  auto bytes = read_file(posix{}, dir / "kept");
  bytes[bytes.size() - 6] ^= std::byte{1};
  const auto piece = std::span<const std::byte>(bytes);
  publish(posix{}, dir / "kept", byte_pieces(&piece, 1));
  CHECK(message_of(status::data_loss, [&] { all_of(range_dataset(4).cache(dir / "kept")); }).find("corrupted record") !=
        std::string::npos);
}
