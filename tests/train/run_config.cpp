#include <gradus/train/run_config.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

using namespace gradus;

namespace {

using seconds_or_none = std::optional<double>;  // what is in force: a number, or none

seconds_or_none of(const interval& i) { return i.has_value() ? seconds_or_none(i.value()) : seconds_or_none(); }

template <class Error>
std::string refusal(const run_config& c) {
  try {
    validate(c);
  } catch (const Error& e) {
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
  CHECK(refusal<invalid_argument>({.save_checkpoints_steps = 50, .save_checkpoints_secs = 30}) ==
        "run_config: save_checkpoints_steps (50) and save_checkpoints_secs (30) are both given; keep one");
  CHECK(refusal<invalid_argument>({.save_checkpoints_steps = 0, .save_checkpoints_secs = 0}).find("both given") !=
        std::string::npos);
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

TEST_CASE("R1 defaults; a process that is alone") {
  const run_config c;
  CHECK((c.model_dir.empty() && !c.model_dir.given() && !c.tf_random_seed.has_value()));
  CHECK(c.save_summary_steps == 100);
  CHECK((!c.save_checkpoints_steps.given() && !c.save_checkpoints_secs.given()));
  CHECK(of(checkpoint_interval_of(c).secs) == 600.0);
  CHECK(c.keep_checkpoint_max == 5);
  CHECK(c.keep_checkpoint_every_n_hours == 10000);
  CHECK(c.log_step_count_steps == 100);
  CHECK(c.session_creation_timeout_secs == 7200);
  CHECK(c.checkpoint_save_graph_def);
  CHECK((!c.session_config.has_value() && !c.device_fn.has_value() && !c.protocol.has_value()));
  CHECK((!c.train_distribute.has_value() && !c.eval_distribute.has_value()));
  CHECK((!c.experimental_distribute.has_value() && !c.experimental_max_worker_delay_secs.has_value()));
  CHECK(c.summaries.flush_secs == 120);  // FileWriter's
  CHECK((c.task_type() == "worker" && c.task_id() == 0 && c.is_chief()));
  CHECK((c.master().empty() && c.evaluation_master().empty() && !c.service().has_value()));
  CHECK((c.num_ps_replicas() == 0 && c.num_worker_replicas() == 1));
  CHECK((c.global_id_in_cluster().has_value() && c.global_id_in_cluster() == 0));
  CHECK(refusal<invalid_argument>(c).empty());
}

TEST_CASE("R3 every none is kept") {
  const run_config c{.model_dir = none,
                     .tf_random_seed = none,
                     .save_summary_steps = none,
                     .save_checkpoints_steps = none,
                     .save_checkpoints_secs = none,
                     .session_config = none,
                     .keep_checkpoint_max = none,
                     .keep_checkpoint_every_n_hours = none,
                     .log_step_count_steps = none,
                     .train_distribute = none,
                     .device_fn = none,
                     .protocol = none,
                     .eval_distribute = none,
                     .experimental_distribute = none,
                     .experimental_max_worker_delay_secs = none,
                     .session_creation_timeout_secs = none};
  CHECK(refusal<invalid_argument>(c).empty());
  CHECK((!c.model_dir.given() && c.model_dir.empty()));
  CHECK((!c.tf_random_seed.has_value() && !c.save_summary_steps.has_value() && !c.session_config.has_value()));
  CHECK((!c.keep_checkpoint_max.has_value() && !c.keep_checkpoint_every_n_hours.has_value()));
  CHECK((!c.log_step_count_steps.has_value() && !c.device_fn.has_value() && !c.protocol.has_value()));
  CHECK((!c.session_creation_timeout_secs.has_value() && !c.experimental_max_worker_delay_secs.has_value()));
  const auto in_force = checkpoint_interval_of(c);
  CHECK((!in_force.steps.has_value() && !in_force.secs.has_value()));
  // What a none comes to where a number is needed: nothing is drawn from a seed, written, logged, or deleted.
  CHECK((c.tf_random_seed == 0 && c.save_summary_steps == 0 && c.log_step_count_steps == 0));
  CHECK(c.keep_checkpoint_max == 0);
}

TEST_CASE("every field is checked, and the refusal names it, its bound and what came") {
  const auto refused = [](const run_config& c) { return refusal<invalid_argument>(c); };
  CHECK(refused({.save_summary_steps = 0}).empty());
  CHECK(refused({.save_summary_steps = -1}) == "run_config: save_summary_steps must be at least 0, got -1");
  CHECK(refused({.save_checkpoints_steps = -1}) == "run_config: save_checkpoints_steps must be at least 0, got -1");
  CHECK(refused({.save_checkpoints_secs = -0.5}) == "run_config: save_checkpoints_secs must be at least 0, got -0.5");
  CHECK(refused({.keep_checkpoint_max = 0}).empty());
  CHECK(refused({.keep_checkpoint_max = -1}) == "run_config: keep_checkpoint_max must be at least 0, got -1");
  CHECK(refused({.keep_checkpoint_every_n_hours = 0}) ==
        "run_config: keep_checkpoint_every_n_hours must be above 0, got 0");
  CHECK(refused({.log_step_count_steps = 0}) == "run_config: log_step_count_steps must be above 0, got 0");
  CHECK(refused({.session_creation_timeout_secs = 0}) ==
        "run_config: session_creation_timeout_secs must be above 0, got 0");
  CHECK(refused({.experimental_max_worker_delay_secs = -3}).empty());  // TensorFlow checks no sign either
  CHECK(refused({.model_dir = ""}).find("model_dir must not be empty") != std::string::npos);
  CHECK(refused({.device_fn = device_function()}).find("device_fn must be callable") != std::string::npos);
  CHECK(refused({.device_fn = [](const placed_op&) { return std::string("/job:ps"); }}).empty());

  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(!refused({.save_summary_steps = nan}).empty());
  CHECK(!refused({.save_checkpoints_steps = nan}).empty());
  CHECK(!refused({.save_checkpoints_secs = nan}).empty());
  CHECK(!refused({.keep_checkpoint_every_n_hours = nan}).empty());
  CHECK(!refused({.log_step_count_steps = nan}).empty());
  CHECK(!refused({.session_creation_timeout_secs = nan}).empty());
  CHECK(refused({.summaries = {.flush_secs = -1}}) == "run_config: summaries.flush_secs must be at least 0, got -1");
  CHECK(!refused({.summaries = {.flush_secs = nan}}).empty());
}

TEST_CASE("strategies are this library's policies; others, and what takes another transport, are refused by name") {
  const auto refused = [](const run_config& c) { return refusal<unimplemented>(c); };
  CHECK(refused({.train_distribute = "mirrored"}) ==
        "run_config: train_distribute is \"mirrored\", a strategy that this library does not have; give "
        "gradus::asynchronous{}, ssp{s}, sync_replicas{} or all_reduce{}");
  CHECK(refused({.eval_distribute = "mirrored"}) ==
        "run_config: eval_distribute is \"mirrored\", a strategy that this library does not have; leave it out: one "
        "task evaluates");
  CHECK(refused({.eval_distribute = sync_replicas{}}) ==
        "run_config: eval_distribute says how a cluster evaluates, and one task does that; leave it out");
  CHECK(refused({.experimental_distribute = distribute_config{.train_distribute = "a"}})
            .find("experimental_distribute.train_distribute is \"a\"") != std::string::npos);
  CHECK(refused({.experimental_distribute = distribute_config{.eval_distribute = "a"}})
            .find("experimental_distribute.eval_distribute is \"a\"") != std::string::npos);
  for (const run_config& c : {run_config{.train_distribute = ssp{3}},
                              run_config{.experimental_distribute = distribute_config{.train_distribute = ssp{3}}}}) {
    CHECK(refused(c).empty());
    REQUIRE(strategy_of(c).has_value());
    CHECK(strategy_of(c).value().visit([](const auto& s) {
      if constexpr (requires { s.bound; }) return s.bound == 3;
      return false;
    }));
    try {
      detail::validate_for_trainer(c, false);
      FAIL("a run without a cluster took a strategy");
    } catch (const failed_precondition& e) {
      CHECK(std::string_view(e.what()).find("train_distribute says how a cluster trains, and this run has none") !=
            std::string_view::npos);
    }
  }
  CHECK_FALSE(strategy_of({}).has_value());
  CHECK(refused({.experimental_distribute = distribute_config{}}).empty());
  CHECK(refused({.protocol = "in_process"}).empty());
  CHECK(refused({.protocol = "grpc"}).empty());
  CHECK(refused({.protocol = "grpc+verbs"}).find("the protocol \"grpc+verbs\" takes a transport") != std::string::npos);
  CHECK(refusal<invalid_argument>({.protocol = "carrier_pigeon"}) ==
        "run_config: protocol must be none, \"in_process\", \"grpc\" or \"grpc+verbs\", got \"carrier_pigeon\"");
  CHECK(refusal<invalid_argument>(
            {.train_distribute = "a", .experimental_distribute = distribute_config{.train_distribute = "b"}})
            .find("keep one") != std::string::npos);
  CHECK(refusal<invalid_argument>(
            {.eval_distribute = "a", .experimental_distribute = distribute_config{.eval_distribute = "b"}})
            .find("keep one") != std::string::npos);
  try {
    detail::validate_for_trainer({.device_fn = [](const placed_op&) { return std::string(); }}, false);
    FAIL("a trainer took a device_fn");
  } catch (const failed_precondition& e) {
    CHECK(std::string_view(e.what()).find("device_fn gives the variables of a cluster") != std::string_view::npos);
  }
  detail::validate_for_trainer({.device_fn = [](const placed_op&) { return std::string(); }}, true);
  detail::validate_for_trainer({.protocol = "grpc"}, true);
  try {
    detail::validate_for_trainer({.protocol = "grpc"}, false);
    FAIL("a trainer of one process took a protocol");
  } catch (const unimplemented& e) {
    CHECK(std::string_view(e.what()).find("add the policy connected{server}") != std::string_view::npos);
  }
}

// A device function has one argument, and it is a node.
static_assert(!std::is_constructible_v<or_none<device_function>, std::string (*)()>);
static_assert(!std::is_constructible_v<or_none<device_function>, std::string (*)(int)>);
static_assert(!std::is_constructible_v<or_none<device_function>, std::string (*)(const placed_op&, int)>);
static_assert(std::is_constructible_v<or_none<device_function>, std::string (*)(const placed_op&)>);
