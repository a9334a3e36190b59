#include <gradus/estimator/warm_start_source.hpp>

#include <gradus/checkpoint/saver.hpp>
#include <gradus/codec/safetensors.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <string_view>
#include <vector>

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

TEST_CASE("as a policy: its settings and codec; without a source nothing is taken over") {
  CHECK_THROWS_WITH_AS(estimator_warm_start("").source(),
                       "warm_start_from: ckpt_to_initialize_from must not be empty; give a path", invalid_argument);
  const auto [settings, from] = estimator_warm_start(warm_start_from{"c", safetensors{}}).source();
  CHECK((settings.ckpt_to_initialize_from == "c" && from.name == "safetensors"));
  std::vector<float> w{1, 2};
  state_list list;
  list.tensor("w", {2}, std::span(w));
  const auto trainable = [](std::string_view) { return true; };
  const warm_started none_done = estimator_warm_start().apply(list, trainable, posix{});
  CHECK((none_done.source.empty() && none_done.count == 0));
  CHECK(w == std::vector<float>{1, 2});
  // A directory whose format is found by itself.
  testing::temp_dir dir;
  std::vector<float> old{3, 4};
  state_list before;
  before.tensor("w", {2}, std::span(old));
  saver<safetensors>().save(before, dir.path() + "/model", 7);
  const warm_started done = estimator_warm_start(dir.path()).apply(list, trainable, posix{});
  CHECK(done.count == 1);
  CHECK(w == old);
}
