#include <gradus/graph/name_table.hpp>

#include <doctest/doctest.h>

#include <map>
#include <string>

using namespace gradus;

static_assert([] {
  name_table t;
  const int tower = t.unique(-1, "tower", true), w = t.unique(tower, "w", false);
  return t.text_at(tower) == "tower/" && t.text_at(w) == "tower/w" && t.text_at(-1).empty() && t.intern("tower/w") == w;
}());

TEST_CASE("each text is stored once, whatever the table's size") {
  name_table t;
  std::map<std::string, int> stored;
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < 1000; ++i) {
      const auto name = "layer_" + std::to_string(i * 7919 % 1000);
      const int at = t.intern(name);
      CHECK(t.text_at(at) == name);
      CHECK(stored.emplace(name, at).first->second == at);
    }
  CHECK(stored.size() == 1000);
}

TEST_CASE("what is interned is not taken; what is taken gets the next free number") {
  name_table t;
  const auto unique = [&](std::string_view name) { return std::string(t.text_at(t.unique(-1, name, false))); };
  t.intern("w");
  CHECK(unique("w") == "w");
  CHECK(unique("w_1") == "w_1");
  CHECK(unique("w") == "w_2");
  CHECK(unique("w_1") == "w_1_1");
  CHECK(unique("w") == "w_3");
}
