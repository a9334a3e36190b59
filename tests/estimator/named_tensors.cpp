#include <gradus/estimator/named_tensors.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace gradus;

TEST_CASE("tensors by name keep their order; a name that is not there is answered with those that are") {
  graph g;
  const value b = g.placeholder("b", {2}), a = g.placeholder("a", {3});
  const named_tensors both{{"b", b}, {"a", a}};
  CHECK(both.size() == 2);
  CHECK(both["a"].id == a.id);
  CHECK(both["b"].id == b.id);
  CHECK(both.names() == std::vector<std::string>{"b", "a"});
  CHECK(&both.of() == &g);
  CHECK(both.contains("a"));
  CHECK_FALSE(both.contains("c"));
  CHECK_THROWS_WITH_AS(both["c"], "no tensor is named \"c\"; there are: \"b\", \"a\"", not_found);
  CHECK_THROWS_WITH_AS(named_tensors()["c"], "no tensor is named \"c\"; there are: none", not_found);
  CHECK_THROWS_AS(named_tensors().of(), failed_precondition);
  std::string order;
  for (const auto& [name, v] : both) order += name;
  CHECK(order == "ba");
}

TEST_CASE("one tensor is its value; several are not") {
  graph g;
  const value y = g.placeholder("y", {2}), z = g.placeholder("z", {2});
  const named_tensors one{{"y", y}};
  const value taken = one;
  CHECK(taken.id == y.id);
  CHECK_FALSE(one.is_single());
  const named_tensors nameless = z;
  CHECK(nameless.is_single());
  CHECK(nameless["output"].id == z.id);
  CHECK(named_tensors(value{}).empty());
  const auto only_of = [](const named_tensors& v) { return v.only(); };
  CHECK_THROWS_WITH_AS(only_of({{"y", y}, {"z", z}}),
                       "expected exactly one tensor, found 2: \"y\", \"z\"; take one by its name, as in labels[\"y\"]",
                       failed_precondition);
  CHECK_THROWS_AS(only_of({}), failed_precondition);
}

TEST_CASE("what cannot be named is refused") {
  graph g, other;
  const value y = g.placeholder("y", {2}), z = other.placeholder("z", {2});
  named_tensors all{{"y", y}};
  CHECK_THROWS_WITH_AS(all.add("y", y), "named values: the name \"y\" is given twice", already_exists);
  CHECK_THROWS_AS(all.add("", y), invalid_argument);
  CHECK_THROWS_AS(all.add("empty", value{}), invalid_argument);
  CHECK_THROWS_AS(all.add("z", z), invalid_argument);
  CHECK(all.size() == 1);
}
