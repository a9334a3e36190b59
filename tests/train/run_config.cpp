#include <gradus/train/run_config.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>

using namespace gradus;

namespace {

using seconds_or_none = std::optional<double>;  // what is in force: a number, or none

seconds_or_none of(const interval& i) { return i.has_value() ? seconds_or_none(i.value()) : seconds_or_none(); }

std::string refusal(const run_config& c) {
  try {
    validate(c);
  } catch (const invalid_argument& e) {
    return e.what();
  }
  return {};
}

}  // namespace

TEST_CASE("the interval rule: unset, none and a number, each against each") {
  struct {
    interval steps, secs;
    seconds_or_none in_force_steps, in_force_secs;
  } const table[] = {
      {{}, {}, {}, 600.0},     // neither: every ten minutes
      {50.0, {}, 50.0, {}},    //
      {{}, 30.0, {}, 30.0},    //
      {none, {}, {}, {}},      // a none that was said disables, it does not bring back the default
      {{}, none, {}, {}},      //
      {none, none, {}, {}},    //
      {50.0, none, 50.0, {}},  //
      {none, 30.0, {}, 30.0},  //
      {0.0, {}, 0.0, {}},      // 0 is allowed, and never happens
      {{}, 0.0, {}, 0.0},
  };
  int row = 0;
  for (const auto& t : table) {
    CAPTURE(row++);
    const auto in_force = checkpoint_interval_of({.save_checkpoints_steps = t.steps, .save_checkpoints_secs = t.secs});
    CHECK(of(in_force.steps) == t.in_force_steps);
    CHECK(of(in_force.secs) == t.in_force_secs);
  }
  CHECK(refusal({.save_checkpoints_steps = 50, .save_checkpoints_secs = 30}) ==
        "run_config: save_checkpoints_steps (50) and save_checkpoints_secs (30) are both given; keep one");
  CHECK(refusal({.save_checkpoints_steps = 0, .save_checkpoints_secs = 0}).find("both given") != std::string::npos);
}

TEST_CASE("an interval is active only as a seconds_or_none above 0") {
  CHECK(!interval().given());
  CHECK(!interval().active());
  CHECK(interval(none).given());
  CHECK(!interval(none).has_value());
  CHECK(!interval(none).active());
  CHECK(interval(0).has_value());
  CHECK(!interval(0).active());
  CHECK(interval(0.5).active());
  CHECK(!interval(std::numeric_limits<double>::quiet_NaN()).active());
}

TEST_CASE("defaults are TensorFlow's") {
  const run_config c;
  CHECK(c.model_dir.empty());
  CHECK(c.save_summary_steps == 100);
  CHECK(c.keep_checkpoint_max == 5);
  CHECK(c.keep_checkpoint_every_n_hours == 10000);
  CHECK(c.log_step_count_steps == 100);
  CHECK(c.summaries.flush_secs == 120);  // FileWriter's
  CHECK(refusal(c).empty());
}

TEST_CASE("every field is checked, and the refusal names it, its bound and what came") {
  CHECK(refusal({.save_summary_steps = 0}).empty());
  CHECK(refusal({.save_summary_steps = -1}) == "run_config: save_summary_steps must be at least 0, got -1");
  CHECK(refusal({.save_checkpoints_steps = -1}) == "run_config: save_checkpoints_steps must be at least 0, got -1");
  CHECK(refusal({.save_checkpoints_secs = -0.5}) == "run_config: save_checkpoints_secs must be at least 0, got -0.5");
  CHECK(refusal({.keep_checkpoint_max = 0}).empty());
  CHECK(refusal({.keep_checkpoint_max = -1}) == "run_config: keep_checkpoint_max must be at least 0, got -1");
  CHECK(refusal({.keep_checkpoint_every_n_hours = 0}) ==
        "run_config: keep_checkpoint_every_n_hours must be above 0, got 0");
  CHECK(refusal({.log_step_count_steps = 0}) == "run_config: log_step_count_steps must be above 0, got 0");

  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(!refusal({.save_summary_steps = nan}).empty());
  CHECK(!refusal({.save_checkpoints_steps = nan}).empty());
  CHECK(!refusal({.save_checkpoints_secs = nan}).empty());
  CHECK(!refusal({.keep_checkpoint_every_n_hours = nan}).empty());
  CHECK(!refusal({.log_step_count_steps = nan}).empty());
  CHECK(refusal({.summaries = {.flush_secs = -1}}) == "run_config: summaries.flush_secs must be at least 0, got -1");
  CHECK(!refusal({.summaries = {.flush_secs = nan}}).empty());
}
