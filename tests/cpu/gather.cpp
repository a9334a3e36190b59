#include "run_graph.hpp"

#include <gradus/cpu/gather.hpp>

#include <doctest/doctest.h>

#include <gradus/pass/fuse.hpp>

#include "divided.hpp"

using namespace gradus;
using kernel_test::from_bytes;
using kernel_test::to_bytes;

TEST_CASE("gather takes rows, and says which index is outside") {
  graph g;
  const value table = g.placeholder("table", {3, 2}), ids = g.placeholder("ids", {batch, 2}, int32);
  const value y = gather(table, ids);
  CHECK(y.dims() == shape{batch, 2, 2});
  std::map<int, kernel_test::bytes> feeds{{table.id, to_bytes<float>({1, 2, 3, 4, 5, 6})},
                                          {ids.id, to_bytes<std::int32_t>({2, 0, 1, 2})}};
  CHECK(from_bytes<float>(kernel_test::run(gather_ops{}, g, y, 2, feeds)) ==
        std::vector<float>{5, 6, 1, 2, 3, 4, 5, 6});
  feeds[ids.id] = to_bytes<std::int32_t>({2, 0, 3, 2});
  CHECK_THROWS_WITH_AS(kernel_test::run(gather_ops{}, g, y, 2, feeds),
                       "Gather: index 3 at position 2 is outside the table's 3 rows; indices must be in [0, 3): check "
                       "the ids, or give the table more rows",
                       invalid_argument);
  feeds[ids.id] = to_bytes<std::int32_t>({2, -1, 0, 2});
  CHECK_THROWS_WITH_AS(kernel_test::run(gather_ops{}, g, y, 2, feeds),
                       "Gather: index -1 at position 1 is outside the table's 3 rows; indices must be in [0, 3): check "
                       "the ids, or give the table more rows",
                       invalid_argument);
}

TEST_CASE("gather from a table that is not near, which it asks ahead, takes the same rows and refuses the same ones") {
  constexpr std::size_t rows = 5000, width = 17;  // 340,000 bytes
  kernel_test::lcg random;
  graph g;
  const value table = g.placeholder("table", {static_cast<int>(rows), static_cast<int>(width)});
  const value ids = g.placeholder("ids", {batch}, int64), y = gather(table, ids);
  const auto numbers = random.reals<float>(rows * width);
  for (const std::size_t n : {1u, 31u, 32u, 33u, 100u}) {
    std::vector<std::int64_t> listed(n);
    for (auto& row : listed) row = static_cast<std::int64_t>(random(rows));
    std::vector<float> expected;
    for (const std::int64_t row : listed)
      for (std::size_t k = 0; k < width; ++k) expected.push_back(numbers[static_cast<std::size_t>(row) * width + k]);
    std::map<int, kernel_test::bytes> feeds{{table.id, to_bytes(numbers)}, {ids.id, to_bytes(listed)}};
    CHECK(from_bytes<float>(kernel_test::run(gather_ops{}, g, y, static_cast<std::int64_t>(n), feeds)) == expected);
    listed[n - 1] = std::int64_t{1} << 60;
    feeds[ids.id] = to_bytes(listed);
    CHECK_THROWS_AS(kernel_test::run(gather_ops{}, g, y, static_cast<std::int64_t>(n), feeds), invalid_argument);
  }
}

namespace {
// Weighted rows are added one after the other, from +0.
template <class T, class Index>
void sums_of_rows(dtype of, dtype indices, std::size_t rows, std::size_t width, std::size_t each, std::size_t lists) {
  kernel_test::lcg random;
  const auto table = random.reals<T>(rows * width), weights = random.reals<T>(lists * each);
  std::vector<Index> ids(lists * each);
  for (auto& id : ids) id = static_cast<Index>(random(static_cast<std::uint32_t>(rows)));
  std::vector<T> expected(lists * width);
  for (std::size_t i = 0; i < lists; ++i)
    for (std::size_t j = 0; j < width; ++j) {
      volatile T sum = 0;  // nothing is fused
      for (std::size_t k = i * each; k < (i + 1) * each; ++k) {
        const volatile T product = table[static_cast<std::size_t>(ids[k]) * width + j] * weights[k];
        sum = sum + product;
      }
      expected[i * width + j] = sum;
    }
  CAPTURE(width);
  bool same = true;
  CHECK(divided_test::same_in_parts<&cards::gathered_sum, T>(
            {0, static_cast<int>(each), static_cast<int>(width), static_cast<int>(rows)},
            static_cast<std::int64_t>(lists), lists * width, {of, of, indices, of},
            {table.data(), ids.data(), weights.data()}, same) == expected);
  CHECK(same);
}
}  // namespace

TEST_CASE("weighted rows are added where they lie, one chain for each column") {
  for (const std::size_t width : {1u, 2u, 7u, 16u, 33u, 64u, 100u}) {
    sums_of_rows<float, std::int32_t>(float32, int32, 50, width, 5, 9);
    sums_of_rows<double, std::int64_t>(float64, int64, 50, width, 1, 3);
    sums_of_rows<float, std::int64_t>(float32, int64, 70'000 / width, width, 50, 40);  // it looks ahead
  }
}

TEST_CASE("what fusion makes of a gather and a sum gives the sum, and says which index is outside") {
  graph g;
  const value table = g.placeholder("table", {3, 2}), ids = g.placeholder("ids", {batch, 2}, int32),
              w = g.placeholder("w", {batch, 2, 1});
  g.add_output(output::fetch, "y", reduce_sum(gather(table, ids) * w, {1}));
  graph f = fuse(parts_of(g));
  const value y{&f, f.nodes.count - 1};
  REQUIRE(f.nodes[y.id].op == &cards::gathered_sum);  // behind the placeholders 0, 1 and 2
  std::map<int, kernel_test::bytes> feeds{{0, to_bytes<float>({1, 2, 3, 4, 5, 6})},
                                          {1, to_bytes<std::int32_t>({2, 0, 1, 2})},
                                          {2, to_bytes<float>({1, 10, 0, 2})}};
  CHECK(from_bytes<float>(kernel_test::run(gather_ops{}, f, y, 2, feeds)) == std::vector<float>{15, 26, 10, 12});
  feeds[1] = to_bytes<std::int32_t>({2, 0, 3, 2});
  CHECK_THROWS_WITH_AS(kernel_test::run(gather_ops{}, f, y, 2, feeds),
                       "Gather: index 3 at position 2 is outside the table's 3 rows; indices must be in [0, 3): check "
                       "the ids, or give the table more rows",
                       invalid_argument);
}

TEST_CASE("a table without rows has no row to add, as it has none to gather") {
  graph g;
  const value table = g.placeholder("table", {0, 2}), ids = g.placeholder("ids", {batch, 2}, int32),
              w = g.placeholder("w", {batch, 2, 1});
  g.add_output(output::fetch, "y", reduce_sum(gather(table, ids) * w, {1}));
  graph f = fuse(parts_of(g));
  const value y{&f, f.nodes.count - 1};
  std::map<int, kernel_test::bytes> feeds{
      {0, {}}, {1, to_bytes<std::int32_t>({0, 0, 1, 0})}, {2, to_bytes<float>({1, 1, 1, 1})}};
  CHECK_THROWS_AS(kernel_test::run(gather_ops{}, f, y, 2, feeds), invalid_argument);
}

TEST_CASE("rows_to_dense adds rows in order of arrival") {
  graph g;
  const value values = g.placeholder("values", {batch, 5}), ids = g.placeholder("ids", {batch}, int64);
  const value y = rows_to_dense(values, ids, {3, 5});
  // In float 1e8 + 1 is 1e8: the order of arrival shows.
  const std::vector<float> v{1e8f, 1, 1, 1, 1, 1, 2, 2, 2, 2, -1e8f, 3, 3, 3, 3, 9, 9, 9, 9, 9};
  std::map<int, kernel_test::bytes> feeds{{values.id, to_bytes(v)}, {ids.id, to_bytes<std::int64_t>({2, 2, 2, 0})}};
  CHECK(from_bytes<float>(kernel_test::run(gather_ops{}, g, y, 4, feeds)) ==
        std::vector<float>{9, 9, 9, 9, 9, 0, 0, 0, 0, 0, 0, 6, 6, 6, 6});
  feeds[ids.id] = to_bytes<std::int64_t>({2, 2, 3, 0});
  CHECK_THROWS_AS(kernel_test::run(gather_ops{}, g, y, 4, feeds), invalid_argument);
  CHECK(from_bytes<float>(kernel_test::run(gather_ops{}, g, y, 0, feeds)) == std::vector<float>(15, 0.0f));
}

TEST_CASE("rows_to_dense of 8 bits wraps, as their sums do") {
  graph g;
  const value values = g.placeholder("v", {batch, 2}, uint8), ids = g.placeholder("i", {batch}, int32);
  const value y = rows_to_dense(values, ids, {3, 2});
  const std::map<int, kernel_test::bytes> feeds{{values.id, to_bytes<std::uint8_t>({200, 1, 100, 2, 7, 3})},
                                                {ids.id, to_bytes<std::int32_t>({2, 2, 0})}};
  CHECK(from_bytes<std::uint8_t>(kernel_test::run(gather_ops{}, g, y, 3, feeds)) ==
        std::vector<std::uint8_t>{7, 3, 0, 0, 44, 3});
}

TEST_CASE("rows_to_dense of a wide row agrees with one sum per element") {
  kernel_test::lcg random;
  graph g;
  const value values = g.placeholder("values", {batch, 37}, float64), ids = g.placeholder("ids", {batch}, int32);
  const value y = rows_to_dense(values, ids, {4, 37});
  const auto v = random.reals<double>(10 * 37);
  std::vector<std::int32_t> rows;
  std::vector<double> expected(4 * 37, 0.0);
  for (std::size_t i = 0; i < 10; ++i) {
    rows.push_back(static_cast<std::int32_t>(random(4)));
    for (std::size_t k = 0; k < 37; ++k) expected[static_cast<std::size_t>(rows[i]) * 37 + k] += v[i * 37 + k];
  }
  CHECK(from_bytes<double>(kernel_test::run(gather_ops{}, g, y, 10,
                                            {{values.id, to_bytes(v)}, {ids.id, to_bytes(rows)}})) == expected);
}

TEST_CASE("one_hot: on, off, and nothing for an index outside") {
  graph g;
  const value ids = g.placeholder("ids", {batch}, int64);
  const std::map<int, kernel_test::bytes> feeds{{ids.id, to_bytes<std::int64_t>({1, -1, 3, 2})}};
  const value y = one_hot(ids, 3, 5, -1);
  CHECK(from_bytes<float>(kernel_test::run(gather_ops{}, g, y, 4, feeds)) ==
        std::vector<float>{-1, 5, -1, -1, -1, -1, -1, -1, -1, -1, -1, 5});
  const value z = one_hot(ids, 2, 1, 0, int32);
  CHECK(from_bytes<std::int32_t>(kernel_test::run(gather_ops{}, g, z, 4, feeds)) ==
        std::vector<std::int32_t>{0, 1, 0, 0, 0, 0, 0, 0});
}
