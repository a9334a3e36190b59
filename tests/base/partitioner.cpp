// The three partitioners against the numbers of TensorFlow's own tests, and the edges that these leave out.
#include <gradus/base/partitioner.hpp>

#include <doctest/doctest.h>

#include <type_traits>

#include <gradus/base/error.hpp>

using namespace gradus;

TEST_CASE("fixed_size_partitioner: so many parts, at most one for each row") {
  CHECK(fixed_size_partitioner{.shards = 5}(float32, {10, 10}) == cut_along{0, 5});
  CHECK(fixed_size_partitioner{.shards = 4}(int64, {20}) == cut_along{0, 4});
  CHECK(fixed_size_partitioner{.shards = 3}(float32, {10, 2}) == cut_along{0, 3});
  CHECK(fixed_size_partitioner{.shards = 30}(float32, {10, 2}) == cut_along{0, 10});
  CHECK(fixed_size_partitioner{.shards = 4, .axis = 1}(float32, {10, 2}) == cut_along{1, 2});
  CHECK(fixed_size_partitioner{.shards = 4}(float32, {0, 2}) == cut_along{0, 1});
}

// A float32 of [4, 8, 16, 32] has 16384, 8192, 4096 and 2048 bytes in a row of its four axes.
TEST_CASE("variable_axis_size_partitioner: no part larger than so many bytes") {
  const auto parts = [](int axis, std::int64_t most, std::int64_t shards = 0) {
    const cut_along c = variable_axis_size_partitioner{.max_shard_bytes = most, .axis = axis, .max_shards = shards}(
        float32, {4, 8, 16, 32});
    CHECK(c.axis == axis);
    return c.parts;
  };
  CHECK(parts(0, 131072) == 1);
  CHECK(parts(1, 65536) == 1);  // just fits
  CHECK(parts(2, 32768) == 2);
  CHECK(parts(3, 2048) == 32);
  CHECK(parts(3, 1024) == 32);  // less than a row
  CHECK(parts(3, 1024, 33) == 32);
  CHECK(parts(3, 1024, 2) == 2);
  CHECK(variable_axis_size_partitioner{.max_shard_bytes = 64}(float32, {10, 4}) == cut_along{0, 3});
  CHECK(variable_axis_size_partitioner{.max_shard_bytes = 64}(float64, {10, 4}) == cut_along{0, 5});
  CHECK(variable_axis_size_partitioner{}(float32, {0, 4}) == cut_along{0, 1});
}

TEST_CASE("min_max_variable_partitioner: as many parts as have so many bytes") {
  const auto parts = [](std::int64_t most, int axis, std::int64_t least, const extents& dims) {
    const cut_along c =
        min_max_variable_partitioner{.max_partitions = most, .axis = axis, .min_slice_bytes = least}(float32, dims);
    CHECK(c.axis == axis);
    return c.parts;
  };
  CHECK(parts(100, 0, 2 << 10, {2048}) == 4);
  CHECK(parts(100, 0, 256 << 10, {2048, 1024}) == 32);
  CHECK(parts(16, 0, 256 << 10, {2048, 1024}) == 16);
  CHECK(parts(1, 0, 256 << 10, {2048, 1024}) == 1);
  CHECK(parts(100, 0, 128 << 10, {2048, 1024}) == 64);
  CHECK(parts(100, 0, 512 << 10, {2048, 1024}) == 16);
  CHECK(parts(100, 1, 256 << 10, {64, 1024, 1, 3}) == 3);
  CHECK(parts(100, 3, 256 << 10, {64, 1024, 1, 3}) == 3);
  CHECK(parts(100, 0, 256 << 10, {16, 128, 1024}) == 16);  // a part is a row at least
  CHECK(parts(100, 0, 256 << 10, {4, 512, 1024}) == 4);
  CHECK(parts(100, 0, 256 << 10, {2048, 1025}) == 33);  // rounded up
  const min_max_variable_partitioner m{.max_partitions = 100};
  CHECK(m(uint8, {2, 2}) == cut_along{0, 1});
  CHECK(m(float64, {64, 1 << 20}) == cut_along{0, 64});
  CHECK(min_max_variable_partitioner{}(float32, {2048, 1024}) == cut_along{0, 1});
  CHECK(std::is_same_v<min_max_partitioner, min_max_variable_partitioner>);
  CHECK(std::is_same_v<axis_size_partitioner, variable_axis_size_partitioner>);
}

TEST_CASE("an axis that is none, and settings below 1, are refused") {
  CHECK_THROWS_WITH_AS(fixed_size_partitioner{.axis = 2}(float32, {10, 4}),
                       "a partitioner cuts axis 2, but [10, 4] has 2 axes", invalid_argument);
  CHECK_THROWS_WITH_AS(min_max_variable_partitioner{.axis = -1}(float32, {10, 4}),
                       "a partitioner cuts axis -1, but [10, 4] has 2 axes", invalid_argument);
  CHECK_THROWS_WITH_AS(variable_axis_size_partitioner{}(float32, {}), "a partitioner cuts axis 0, but [] has 0 axes",
                       invalid_argument);
  CHECK_THROWS_WITH_AS(fixed_size_partitioner{.shards = 0}(float32, {10}),
                       "fixed_size_partitioner: shards is 0; expected 1 or more", invalid_argument);
  CHECK_THROWS_WITH_AS(min_max_variable_partitioner{.max_partitions = 0}(float32, {10}),
                       "min_max_variable_partitioner: max_partitions is 0; expected 1 or more", invalid_argument);
  CHECK_THROWS_WITH_AS(min_max_variable_partitioner{.min_slice_bytes = -4}(float32, {10}),
                       "min_max_variable_partitioner: min_slice_bytes is -4; expected 1 or more", invalid_argument);
  CHECK_THROWS_WITH_AS(variable_axis_size_partitioner{.max_shard_bytes = 0}(float32, {10}),
                       "variable_axis_size_partitioner: max_shard_bytes is 0; expected 1 or more", invalid_argument);
  CHECK_THROWS_WITH_AS(variable_axis_size_partitioner{.max_shards = -1}(float32, {10}),
                       "variable_axis_size_partitioner: max_shards is -1; expected 1 or more", invalid_argument);
}
