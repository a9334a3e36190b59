#include "gradus/base/sort.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

TEST_CASE("sort_stably sorts, and what is equal keeps its order") {
  std::uint32_t x = 1;
  for (std::size_t n : {0u, 1u, 2u, 3u, 17u, 1000u}) {
    std::vector<std::pair<unsigned, std::size_t>> list;
    for (std::size_t i = 0; i < n; ++i) list.emplace_back((x = x * 1664525u + 1013904223u) >> 29, i);
    auto expected = list;  // who is equal in the first number was in the order of the second
    std::sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    gradus::detail::sort_stably(list, [](const auto& a, const auto& b) { return a.first > b.first; });
    CHECK(list == expected);
  }
}

TEST_CASE("sort_stably moves what cannot be copied") {
  std::vector<std::unique_ptr<int>> list;
  for (const int i : {3, 1, 2}) list.push_back(std::make_unique<int>(i));
  gradus::detail::sort_stably(list, [](const auto& a, const auto& b) { return *a < *b; });
  CHECK(*list[0] == 1);
  CHECK(*list[1] == 2);
  CHECK(*list[2] == 3);
}
