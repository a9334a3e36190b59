#include <gradus/estimator/serving_input.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace gradus;

TEST_CASE("placeholders by the extents of one example, in the scope of an input_fn's") {
  graph g;
  const serving_input made = raw_serving_input({{"x", float32, {4}}, {"age", int32, {}}}, {{"y", float32, {}}})(g);
  CHECK(made.features.names() == std::vector<std::string>{"x", "age"});
  CHECK(to_text(made.features["x"].dims()) == "[batch, 4]");
  CHECK(made.features["age"].type() == int32);
  CHECK(made.labels.names() == std::vector<std::string>{"y"});
  CHECK(made.receiver_tensors.empty());
  CHECK(g.find("input_fn/x") >= 0);
  CHECK_THROWS_AS(raw_serving_input({{"x", float32, {4}}, {"x", float32, {4}}}), invalid_argument);
  CHECK_THROWS_AS(raw_serving_input({{"x", float32, {any_extent}}})(g), invalid_argument);
}
