#include "../golden/golden.hpp"

#include <gradus/tensor/rows.hpp>

#include <doctest/doctest.h>

#include <array>
#include <vector>

using namespace gradus;

namespace {
template <class T>
std::vector<T> list(const const_tensor_view& v) {
  return {v.as<T>().begin(), v.as<T>().end()};
}
template <class Index, class T>
void check(const golden::json& c, double rtol, double atol) {
  const auto rows = golden::numbers<Index>(c["indices"]);
  const auto values = golden::numbers<T>(c["values"]);
  const auto width = c["row_width"].get<std::int64_t>();
  const row_values m =
      merge_rows(rows, const_tensor_view(std::span<const T>(values), {static_cast<std::int64_t>(rows.size()), width}));
  CHECK(list<Index>(m.rows()) == golden::numbers<Index>(c["expect_indices"]));
  const auto want = golden::numbers<double>(c["expect_values"]);
  const auto got = list<T>(m.values());
  REQUIRE(got.size() == want.size());
  CHECK(m.values().dims == extents{static_cast<std::int64_t>(m.size()), width});
  for (std::size_t i = 0; i < want.size(); ++i) CHECK(golden::near(static_cast<double>(got[i]), want[i], rtol, atol));
}
}  // namespace

TEST_CASE("golden cases") {
  int known = 0;
  for (const auto& c : golden::read("replicas.json")) {
    if (c["kind"] != "merge_rows") continue;
    INFO(c["id"].get<std::string>());
    check<std::int32_t, double>(c, c["rtol"].get<double>(), c["atol"].get<double>());
    check<std::int64_t, float>(c, 1e-6, 1e-7);
    ++known;
  }
  CHECK(known == 4);
}
TEST_CASE("many rows against a search; negative and huge numbers; flat values") {
  std::vector<std::int64_t> rows;
  std::vector<float> values;
  std::uint32_t state = 7;
  for (int i = 0; i < 3000; ++i) {
    state = state * 1664525u + 1013904223u;
    rows.push_back((static_cast<std::int64_t>(state >> 20) - 2048) * 1000000007);
    values.push_back(static_cast<float>(state >> 8 & 1023)), values.push_back(1);
  }
  const row_values m = merge_rows(rows, values);
  CHECK(m.values().dims.rank == 2);
  std::vector<std::int64_t> seen;
  std::vector<float> sums;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::size_t at = 0;
    while (at < seen.size() && seen[at] != rows[i]) ++at;
    if (at == seen.size()) seen.push_back(rows[i]), sums.resize(sums.size() + 2);
    sums[2 * at] += values[2 * i], sums[2 * at + 1] += 1;
  }
  CHECK(list<std::int64_t>(m.rows()) == seen);
  CHECK(list<float>(m.values()) == sums);
}
TEST_CASE("no rows; the sign of zero; slices; what does not fit") {
  const std::vector<std::int32_t> none;
  const row_values empty = merge_rows(none, const_tensor_view(std::span<const float>{}, {0, 3}));
  CHECK(empty.size() == 0);
  CHECK(empty.values().dims == extents{0, 3});
  const std::vector<double> minus{-0.0};
  CHECK(std::signbit(merge_rows(std::array{1}, minus).values().as<double>()[0]));
  struct slices {
    std::vector<std::int32_t> rows{2, 2};
    std::vector<float> values{1, 2};
  };
  CHECK(list<float>(merge_rows(slices{}).values()) == std::vector<float>{3});
  CHECK_THROWS_WITH_AS(merge_rows(std::array{1, 2}, std::array{1.0, 2.0, 3.0}),
                       "merge_rows: the values for 2 rows are [3]; expected [2, ...]", invalid_argument);
  CHECK_THROWS_WITH_AS(merge_rows(std::array{1.0f}, std::array{1.0}),
                       "merge_rows: the row numbers are float32 [1]; expected a vector of int32 or int64",
                       invalid_argument);
}
