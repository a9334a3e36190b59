#include <gradus/graph/constraint.hpp>
#include <gradus/graph/graph.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace gradus;

namespace {
std::string refused(const shape& dims, const constraint& c, dtype type = float32) {
  graph g;
  try {
    g.variable("w", dims, {.type = type, .constraint = c});
  } catch (const invalid_argument& e) {
    return e.what();
  }
  return "(nothing was refused)";
}
constexpr bool at_compile_time() {
  graph g;
  const value w = g.variable("w", {2, 3}, {.constraint = max_norm(2.5, -1)}), b = g.variable("b", {3});
  const constraint c = constraint_of(g.nodes[w.id], g.ints.first);
  return c && c.high == 2.5 && !c.over(0, 2) && c.over(1, 2) && !constraint_of(g.nodes[b.id], g.ints.first) &&
         from_words<variable_attr>(g.ints.first + g.nodes[w.id].attr).trainable == 1 && g.refusal.empty();
}
static_assert(at_compile_time());
}  // namespace

TEST_CASE("axes are counted from the front or from the back") {
  const constraint first = unit_norm(), last = unit_norm(-1), some = unit_norm({0, 1, -1});
  for (int rank = 1; rank <= 6; ++rank)
    for (int i = 0; i < rank; ++i) {
      CHECK(first.over(i, rank) == (i == 0));
      CHECK(last.over(i, rank) == (i == rank - 1));
      CHECK(some.over(i, rank) == (i < 2 || i == rank - 1));
    }
}
TEST_CASE("a constraint that cannot be kept is refused with the variable's name and shape") {
  CHECK(refused({2, 3}, max_norm()) == "(nothing was refused)");
  CHECK(refused({}, clip_values(-1, 1)) == "(nothing was refused)");
  CHECK(refused({2, 3}, unit_norm(2)) ==
        "variable \"w\" [2, 3]: an axis of its constraint is none of its own; give axes below its rank");
  CHECK(refused({3}, max_norm(1, {-1, -2})).find("below its rank") != std::string::npos);
  CHECK(refused({}, unit_norm()).find("below its rank") != std::string::npos);
  CHECK(refused({3}, unit_norm(7)).find("an axis of its constraint is none that a variable has") != std::string::npos);
  CHECK(refused({3}, unit_norm({})).find("at least one axis") != std::string::npos);
  CHECK(refused({3}, clip_values(1, -1)).find("a low that is not above its high") != std::string::npos);
  CHECK(refused({3}, max_norm(-1)).find("neither below 0") != std::string::npos);
  CHECK(refused({3}, min_max_norm(2, 1)).find("not below its min_value") != std::string::npos);
  CHECK(refused({3}, min_max_norm(0, 1, 1.5)).find("a rate in [0, 1]") != std::string::npos);
  CHECK(refused({3}, non_neg, int32).find("float32 and float64, not int32") != std::string::npos);
}
