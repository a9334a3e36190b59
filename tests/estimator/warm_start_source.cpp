#include <gradus/estimator/warm_start_source.hpp>

#include <doctest/doctest.h>

using namespace gradus;

TEST_CASE("a path, settings, or the trainer's policy with its codec") {
  const estimator_warm_start nothing, path = "runs/a", set = warm_start_settings{.ckpt_to_initialize_from = "b"},
                                      policy = warm_start_from{"c"};
  CHECK_FALSE(bool(nothing));
  CHECK(bool(path));
  CHECK(path.settings().ckpt_to_initialize_from == "runs/a");
  CHECK(path.settings().vars_to_warm_start.form() == variables_to_warm_start::forms::expression);
  CHECK_FALSE(path.given_codec().has_value());
  CHECK(set.settings().ckpt_to_initialize_from == "b");
  CHECK(policy.settings().ckpt_to_initialize_from == "c");
  REQUIRE(policy.given_codec().has_value());
  CHECK(policy.given_codec()->name == "flat_binary");
}
