#include <gradus/summary/graph_index.hpp>

#include <doctest/doctest.h>

using namespace gradus;
using namespace gradus::detail;

namespace {
std::string refused(std::vector<graph_def_node> nodes) {
  try {
    const graph_index index({std::move(nodes)});
  } catch (const invalid_argument& e) {
    return e.what();
  }
  return "(nothing was refused)";
}
bool says(const std::string& all, std::string_view part) {
  INFO(all);
  return all.find(part) != std::string::npos;
}
}  // namespace

TEST_CASE("nodes, tensors and attributes by name") {
  const graph_index g(
      {{{"a", "A", {}, {}, {{"n", std::int64_t{3}}}}, {"b", "B", {"a:1", "a", "^c"}}, {"c", "C", {"a:0"}}}});
  CHECK((g.size() == 3 && g.find("b") == 1 && g.find("d") == -1));
  CHECK(g.inputs(1) == std::vector<tensor_place>{{0, 1}, {0, 0}});
  CHECK(g.controls(1) == std::vector<int>{2});
  CHECK((g.is_used(0) && g.is_used(2) && !g.is_used(1)));
  CHECK(g.place("a:12") == tensor_place{0, 12});
  for (const char* none : {"d", "a:", "a:x", "a:-1", "a:1234567", "", ":0"}) CHECK(g.place(none).node == -1);
  CHECK((g.name_of({0, 0}) == "a" && g.name_of({0, 2}) == "a:2"));
  CHECK(g.need<std::int64_t>(0, "n") == 3);
  CHECK(g.as<std::int64_t>(1, "n") == nullptr);
  CHECK_THROWS_WITH_AS(g.need<std::int64_t>(1, "n"), "node \"b\" (B) has no attribute \"n\"", invalid_argument);
  CHECK_THROWS_WITH_AS(g.as<bool>(0, "n"), "node \"a\" (A): the attribute \"n\" is of another kind than this op's",
                       invalid_argument);
}

TEST_CASE("nodes that make no graph are refused by name") {
  CHECK(says(refused({{"", "A"}}), "node 0 of the graph has no name"));
  CHECK(says(refused({{"a", ""}}), "node 0 of the graph has no op"));
  CHECK(says(refused({{"a", "A"}, {"a", "B"}}), "two nodes of the graph are called \"a\""));
  CHECK(says(refused({{"a", "A", {"b"}}}), "node \"a\" (A) has the input \"b\", which is no node of the graph"));
  CHECK(says(refused({{"a", "A", {"^b:0x"}}}), "which is no node"));
  CHECK(says(refused({{"a", "A"}, {"b", "B", {"^a", "a"}}}), "has the data input \"a\" behind a control input"));
  CHECK(says(refused({{"a", "A", {"a"}}}), "node \"a\" (A) waits for itself"));
  CHECK(says(refused({{"in", "I", {"b"}}, {"a", "A", {"c"}}, {"b", "B", {"a"}}, {"c", "C", {"^b"}}}),
             "waits for itself"));
}

TEST_CASE("a chain of 100000 nodes, told from one that bites its tail") {
  std::vector<graph_def_node> chain{{"0", "A"}};
  for (int i = 1; i < 100000; ++i) chain.push_back({std::to_string(i), "A", {std::to_string(i - 1)}});
  CHECK(refused(chain) == "(nothing was refused)");
  chain[0].inputs = {"99999"};
  CHECK(says(refused(chain), "waits for itself"));
}
