#include <gradus/estimator/train_spec.hpp>

#include "linear_model.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>

using namespace gradus;

namespace {
struct nothing_exported {
  std::string called;
  std::string name() const { return called; }
  std::string export_model(const export_call&) const { return {}; }
};
}  // namespace

TEST_CASE("E1 train_spec, eval_spec: defaults, and each bad argument") {
  const train_spec t(line::endless);
  CHECK_FALSE(t.max_steps().has_value());
  CHECK(t.hooks().empty());
  CHECK(t.saving_listeners().empty());
  const eval_spec e(line::once);
  CHECK(e.steps() == 100);
  CHECK(e.start_delay_secs() == 120);
  CHECK(e.throttle_secs() == 600);
  CHECK(e.name().empty());
  CHECK(e.exporters().size() == 0);
  CHECK_FALSE(eval_spec(line::once, {.steps = {}}).steps().has_value());
  const std::function<estimator_input()> nothing;
  CHECK_THROWS_AS(train_spec(line::endless, {.max_steps = 0}), invalid_argument);
  CHECK_THROWS_AS(train_spec(line::endless, {.max_steps = -1}), invalid_argument);
  CHECK_THROWS_AS(train_spec{nothing}, invalid_argument);
  CHECK_THROWS_AS(train_spec{input_function()}, invalid_argument);
  CHECK_THROWS_WITH_AS(eval_spec(line::once, {.steps = 0}), "eval_spec: Must specify steps > 0, given: 0",
                       invalid_argument);
  CHECK_THROWS_AS(eval_spec(line::once, {.start_delay_secs = -0.5}), invalid_argument);
  CHECK_THROWS_AS(eval_spec(line::once, {.throttle_secs = -1}), invalid_argument);
  CHECK_THROWS_AS(eval_spec(line::once, {.throttle_secs = std::numeric_limits<double>::quiet_NaN()}), invalid_argument);
  CHECK_THROWS_AS(eval_spec{input_function()}, invalid_argument);
}

TEST_CASE("E2 exporters: one or a list, unique names, no empty name") {
  const eval_spec one(line::once, {.exporters = nothing_exported{"a"}}),
      list(line::once, {.exporters = {nothing_exported{"a"}, nothing_exported{"b"}}});
  CHECK(one.exporters().size() == 1);
  CHECK(one.exporters().begin()->name() == "a");
  CHECK(list.exporters().size() == 2);
  CHECK_THROWS_WITH_AS(
      eval_spec(line::once, {.exporters = {nothing_exported{"a"}, nothing_exported{"b"}, nothing_exported{"a"}}}),
      doctest::Contains("two are called \"a\""), invalid_argument);
  CHECK_THROWS_WITH_AS(eval_spec(line::once, {.exporters = nothing_exported{""}}),
                       doctest::Contains("a name that is not empty"), invalid_argument);
}
