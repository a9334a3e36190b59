#include <gradus/update/mask.hpp>

#include <doctest/doctest.h>

using namespace gradus;

TEST_CASE("masks choose by shape and by name") {
  static_assert(all_variables{}("anything", {}));
  static_assert(matrices{}("w", {2, 3}) && matrices{}("filter", {3, 3, 1, 8}));
  static_assert(!matrices{}("b", {3}) && !matrices{}("scalar", {}));
  static_assert(rank_two{}("w", {2, 3}) && !rank_two{}("filter", {3, 3, 1, 8}) && !rank_two{}("b", {3}));
  static_assert(named{"encoder/"}("encoder/w", {}) && !named{"encoder/"}("decoder/w", {}));
  static_assert(!all_but{matrices{}}("w", {2, 3}) && all_but{matrices{}}("b", {3}));
}
TEST_CASE("any callable of name and shape is a mask") {
  const auto biases = [](std::string_view name, const extents&) { return name.ends_with("bias"); };
  static_assert(variable_mask<decltype(biases)>);
  static_assert(!variable_mask<int>);
  CHECK(biases("h/bias", {3}));
  CHECK(all_but{biases}("h/kernel", {3, 3}));
}
