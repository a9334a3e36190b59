#include <gradus/ops/elementwise.hpp>
#include <gradus/ops/recomputed.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace gradus;

// What the marks are good for is tested with the pass that reads them (tests/pass/recompute.cpp).
TEST_CASE("a region is its function, between two marks that no other region has") {
  graph g;
  const value x = g.placeholder("x", {batch, 3});
  const value y = recomputed(x, [](value v) { return v * v; }), z = recomputed(y, [](value v) { return v + v; });
  CHECK(y.dims() == x.dims());
  int marks = 0;
  std::vector<int> numbers;
  for (int i = 0; i < g.nodes.count; ++i)
    if (detail::is_mark(g.nodes[i])) {
      const auto a = from_words<detail::mark_attr>(g.ints.first + g.nodes[i].attr);
      CHECK(a.at == (marks++ % 2 == 0 ? detail::border::begin : detail::border::end));
      numbers.push_back(a.node);
    }
  CHECK(marks == 4);
  std::sort(numbers.begin(), numbers.end());
  CHECK(std::unique(numbers.begin(), numbers.end()) == numbers.end());
  CHECK(!detail::is_mark(g.nodes[x.id]));
  CHECK(detail::is_mark(g.nodes[z.id]));
}
