#include <gradus/train/graph_summary.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/run/session.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace gradus;

TEST_CASE("merge_all: scalars, histograms and audio of one run, in the order of the graph") {
  graph g;
  const value x = g.placeholder("x", {4});
  CHECK(merge_all(g).empty());
  g.summary_histogram("spread", x);
  g.summary_scalar("half", cast(g.constant(0.5), float16));
  g.summary_audio("sound", g.constant({0.5, -0.5}, {1, 2}), 8000);
  g.summary_scalar("double", g.constant(2.5, float64));
  const graph_summary all = merge_all(g);
  CHECK(all.fetches().size() == 5);  // and the rate
  session s{g};
  const std::vector<float> data{1, 2, 3, 4};
  const auto results = s.run(all.fetches(), std::vector<feed>{{x, data}});
  const summary_values values = all.values(results);
  REQUIRE(values.size() == 4);
  CHECK((values[0].tag == "spread" && values[0].kind == value_kind::histogram));
  CHECK(values[1].tag == "half");
  CHECK(values[1].simple_value == 0.5f);
  CHECK((values[2].tag.find("sound") == 0 && values[2].kind == value_kind::audio));
  CHECK((values[3].tag == "double" && values[3].simple_value == 2.5f));
}

TEST_CASE("scalars by hand; what is none is refused") {
  graph g;
  session s{g};
  const graph_summary one{{"a", g.constant(1.5)}};
  session t{g};
  const auto results = t.run(one.fetches(), {});
  CHECK(one.values(results)[0].simple_value == 1.5f);
  CHECK_THROWS_AS(graph_summary({{"b", g.constant(1, boolean)}}), invalid_argument);
  CHECK_THROWS_AS(graph_summary({{"two", g.constant({1, 2}, {2})}}), invalid_argument);
}
