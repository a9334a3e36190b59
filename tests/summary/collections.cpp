#include <gradus/summary/collections.hpp>

#include <doctest/doctest.h>

using namespace gradus;

TEST_CASE("merge_all runs the calls of one collection, now") {
  summary_collections c;
  CHECK(!c.merge_all());
  float loss = 1;
  c.add([&] { return scalar_summary("loss", loss); });
  c.add([] { return scalar_summary("eval", 5); }, {"evaluation", summary_collections::summaries});
  loss = 2;
  const auto all = c.merge_all();
  REQUIRE(all);
  REQUIRE(all->size() == 2);
  CHECK(all->at(0).simple_value == 2);
  CHECK(c.merge_all("evaluation")->size() == 1);
  CHECK(merge_all_summaries(c) == all);
  CHECK(merge_all_summaries(c, "evaluation")->front().tag == "eval");
  CHECK(!c.merge_all("other"));
  c.add([] { return scalar_summary("loss", 0); });
  CHECK_THROWS_AS(c.merge_all(), invalid_argument);
}
