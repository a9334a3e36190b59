#include <gradus/train/supervisor_options.hpp>

#include <doctest/doctest.h>

#include <cmath>

using namespace gradus;

TEST_CASE("supervisor_options: TensorFlow's defaults, where they are the same thing") {
  const supervisor_options o;
  CHECK(o.is_chief);
  CHECK(o.logdir.empty());
  CHECK(o.save_model_secs == 600);
  CHECK(o.save_summaries_secs == 120);
  CHECK(o.stop_grace_secs == 120);
  CHECK(bool(o.summary_op));
  REQUIRE(bool(o.saver));
  CHECK((*o.saver).max_to_keep == 5);
}

TEST_CASE("supervisor_options: none is not a default") {
  const supervisor_options o{.summary_op = none, .saver = none};
  CHECK_FALSE(bool(o.summary_op));
  CHECK_FALSE(bool(o.saver));
  const supervisor_options kept{.saver = saver_options{.max_to_keep = 2}};
  CHECK((*kept.saver).max_to_keep == 2);
}

TEST_CASE("supervisor_options: only the chief has files") {
  const auto worker = resolve({.logdir = "/tmp/mydir", .is_chief = false});
  CHECK(worker.logdir.empty());
  CHECK(worker.save_model_secs == 0);
  CHECK(worker.save_summaries_secs == 0);
  CHECK(resolve({.logdir = "/tmp/mydir"}).logdir == "/tmp/mydir");
}

TEST_CASE("supervisor_options: refusals") {
  CHECK_THROWS_WITH_AS(resolve({.save_model_secs = -1}), "supervisor: save_model_secs must be at least 0, got -1",
                       invalid_argument);
  CHECK_THROWS_AS(resolve({.save_summaries_secs = std::nan("")}), invalid_argument);
  CHECK_THROWS_WITH_AS(resolve({.stop_grace_secs = -0.5}), doctest::Contains("stop_grace_secs"), invalid_argument);
}
