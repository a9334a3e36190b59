#include <gradus/estimator/owned_tensor.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace gradus;

TEST_CASE("it keeps its numbers when those it was made of change; copies share them") {
  std::vector<float> from{1, 2, 3};
  owned_tensor a{const_tensor_view(std::span<const float>(from))};
  const owned_tensor b = a;
  from[1] = 7;
  a = owned_tensor();
  CHECK(std::vector<float>(b.as<float>().begin(), b.as<float>().end()) == std::vector<float>{1, 2, 3});
  CHECK(a.size() == 1);  // a scalar without a type, as an empty view
  CHECK(owned_tensor(const_tensor_view(std::span<const float>(from).first(0))).size() == 0);
}

TEST_CASE("the number of one element, of every type that is one") {
  const auto number = [](auto x) {
    return owned_tensor(const_tensor_view(std::span<const decltype(x)>(&x, 1), {})).number();
  };
  CHECK(number(1.5f) == 1.5);
  CHECK(number(2.5) == 2.5);
  CHECK(number(std::int32_t{-3}) == -3);
  CHECK(number(std::int64_t{4}) == 4);
  CHECK(number(true) == 1);
  CHECK_THROWS_AS(number(std::uint8_t{1}), invalid_argument);
  const std::vector<float> two{1, 2};
  CHECK_THROWS_WITH_AS(owned_tensor(const_tensor_view(std::span<const float>(two))).number(),
                       "expected a tensor of one element, found float32 [2]; take it by as<T>()", invalid_argument);
}
