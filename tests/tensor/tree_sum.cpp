#include <gradus/tensor/tree_sum.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <vector>

using namespace gradus;

namespace {
float leaf(std::int64_t i) { return 1.0f / static_cast<float>(3 * i + 1) * (i % 2 == 0 ? 1e4f : -7.0f); }
// From the definition.
float tree(std::int64_t first, std::int64_t n) {
  if (n == 1) return leaf(first);
  std::int64_t cut = 1;
  while (2 * cut < n) cut *= 2;
  return tree(first, cut) + tree(first + cut, n - cut);
}
const auto add = [](std::byte* to, const std::byte* from) {
  *reinterpret_cast<float*>(to) += *reinterpret_cast<const float*>(from);
};
float sum_of(tree_sum& s, std::int64_t first, std::int64_t n) {
  alignas(float) std::byte here[sizeof(float)];
  for (std::int64_t i = first; i < first + n; ++i) {
    *reinterpret_cast<float*>(here) = leaf(i);
    s.take(here, add);
  }
  return *reinterpret_cast<float*>(here);
}
}  // namespace

TEST_CASE("every number of addends: the tree, twice with the same object") {
  for (std::int64_t n = 1; n <= 70; ++n) {
    tree_sum s(n, sizeof(float));
    CHECK(sum_of(s, 0, n) == tree(0, n));
    CHECK(sum_of(s, 5, n) == tree(5, n));
    CHECK(s.bytes() == static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(n - 1))) * sizeof(float));
  }
}

TEST_CASE("in order: each is added to the sum of those before it, with room for one") {
  for (std::int64_t n = 1; n <= 20; ++n) {
    tree_sum s(n, sizeof(float), in_order);
    for (const std::int64_t first : {0, 5}) {
      float sum = leaf(first);
      for (std::int64_t i = first + 1; i < first + n; ++i) sum += leaf(i);
      CHECK(sum_of(s, first, n) == sum);
    }
    CHECK(s.bytes() == (n == 1 ? 0 : sizeof(float)));
  }
}

TEST_CASE("who holds a power of two of the addends sums a branch of the tree") {
  for (std::int64_t each : {1, 2, 4, 8})
    for (std::int64_t workers = 1; workers <= 9; ++workers) {
      tree_sum own(each, sizeof(float)), all(workers, sizeof(float));
      alignas(float) std::byte here[sizeof(float)];
      for (std::int64_t w = 0; w < workers; ++w) {
        *reinterpret_cast<float*>(here) = sum_of(own, w * each, each);
        all.take(here, add);
      }
      CHECK(*reinterpret_cast<float*>(here) == tree(0, each * workers));
    }
}

TEST_CASE("a sum that was given up is forgotten; none is refused; no bytes are none") {
  tree_sum s(4, sizeof(float));
  alignas(float) std::byte here[sizeof(float)] = {};
  s.take(here, add);
  s.restart();
  CHECK(sum_of(s, 0, 4) == tree(0, 4));
  CHECK_THROWS(tree_sum(0, 4));
  tree_sum empty(3, 0);
  for (int i = 0; i < 3; ++i) empty.take(here, [](std::byte*, const std::byte*) {});
  CHECK(empty.bytes() == 0);
}
