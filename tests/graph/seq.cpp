#include <gradus/graph/seq.hpp>

#include <doctest/doctest.h>

#include <utility>

using gradus::detail::seq;

namespace {
constexpr bool grows() {
  seq<int> s;
  for (int i = 0; i < 100; ++i) s.push(i);
  seq<int> copy = s, empty;
  seq<int> moved = std::move(s);
  copy.push(-1);
  empty = copy;
  empty = std::move(moved);
  const int more[] = {7, 8};
  empty.append(more, 2);
  return copy.count == 101 && copy[100] == -1 && empty.count == 102 && empty[99] == 99 && empty[101] == 8 &&
         moved.count == 0;
}
static_assert(grows());
static_assert(seq<char>(3, 'x').count == 3 && seq<char>(0, 'x').empty());
}  // namespace

TEST_CASE("the same at run time") {
  CHECK(grows());
  seq<int> s;
  s.push(1);
  const seq<int>& same = s;
  s = same;  // itself
  CHECK(s.count == 1);
  CHECK(s[0] == 1);
  int sum = 0;
  for (int x : seq<int>(4, 5)) sum += x;
  CHECK(sum == 20);
}
