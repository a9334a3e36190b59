#include <gradus/run/named_gradient.hpp>

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

using namespace gradus;

namespace {
std::string refusal(const named_gradient& g, const extents& variable) {
  try {
    detail::check_extents(g, variable);
  } catch (const invalid_argument& e) {
    return e.what();
  }
  return "";
}
}  // namespace

TEST_CASE("extents: the variable's own, or a flat array of as many elements") {
  const std::vector<float> six(6), five(5);
  CHECK(refusal({"w", six}, {2, 3}).empty());
  CHECK(refusal({"w", const_tensor_view(std::span<const float>(six), {2, 3})}, {2, 3}).empty());
  CHECK(refusal({"w", const_tensor_view(std::span<const float>(six), {3, 2})}, {2, 3}) ==
        "the gradient of \"w\" is [3, 2]; expected [2, 3], as the variable");
  CHECK(refusal({"w", five}, {2, 3}) == "the gradient of \"w\" is [5]; expected [2, 3], as the variable");
}

TEST_CASE("rows: a vector of integers, and as many rows of values") {
  const std::vector<float> six(6);
  const std::array<std::int32_t, 2> rows{4, 0};
  CHECK(refusal({"w", indexed_slices{rows, six}}, {5, 3}).empty());
  CHECK(refusal({"w", indexed_slices{rows, const_tensor_view(std::span<const float>(six), {2, 3})}}, {5, 3}).empty());
  CHECK(refusal({"w", indexed_slices{rows, const_tensor_view(std::span<const float>(six), {3, 2})}}, {5, 3}) ==
        "the values for 2 rows of \"w\" are [3, 2]; expected [2, 3]");
  CHECK(refusal({"w", indexed_slices{rows, six}}, {5, 2}) == "the values for 2 rows of \"w\" are [6]; expected [2, 2]");
  CHECK(refusal({"w", indexed_slices{rows, six}}, {}) == "\"w\" is a scalar and has no rows; give a dense gradient");
  CHECK(refusal({"w", indexed_slices{six, six}}, {6, 1}) ==
        "the row numbers for \"w\" are float32; expected int32 or int64");
  const auto shaped = [&](const extents& e) { return const_tensor_view(std::span<const std::int32_t>(rows), e); };
  CHECK(refusal({"w", indexed_slices{shaped({2, 1}), six}}, {5, 3}).empty());
  CHECK(refusal({"w", indexed_slices{shaped({1, 2}), six}}, {5, 6}).empty());
  CHECK(refusal({"w", indexed_slices{shaped({1, 2}), six}}, {5, 3}) ==
        "the values for 1 bags of \"w\" are [6]; expected [1, 3]");
  CHECK(refusal({"w", indexed_slices{shaped({2, 1, 1}), six}}, {5, 3}) ==
        "the row numbers for \"w\" are [2, 1, 1]; expected a vector, or bags of rows [bags, k]");
  CHECK(refusal({"w", indexed_slices{std::vector<std::int64_t>{}, std::vector<float>{}}}, {0, 3}).empty());
}
