// The plain structs that a run makes lists of: what they are without settings, and that a MetaGraphDef takes them.
#include <doctest/doctest.h>

#include <gradus/summary/meta_graph.hpp>
#include <gradus/summary/run_graph.hpp>
#include <gradus/summary/variable_def.hpp>

using namespace gradus;

TEST_CASE("a variable is trainable and whole unless it is said") {
  const variable_def v{.name = "w"};
  CHECK(v.trainable);
  CHECK(!v.part.has_value());
  CHECK(v.initializer.empty());
  meta_graph m;
  add_variable(m, v);
  CHECK(m.collections.at("variables").messages.size() == 1);
  CHECK(m.collections.at("trainable_variables").messages == m.collections.at("variables").messages);
}

TEST_CASE("a tensor of a checkpoint is not trainable and has its own name unless it is said") {
  const saved_tensor s{.name = "w/Adam", .type = float32, .dims = {2, 3}};
  CHECK(!s.trainable);
  CHECK(s.key.empty());
  CHECK(!s.part.has_value());
}
