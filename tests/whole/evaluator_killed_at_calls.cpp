// costs: 300
// one thread: it traces processes, and ThreadSanitizer's own calls would be counted with ours
// An evaluator that evaluates and exports a checkpoint, killed with SIGKILL as it enters a system call that changes
// files, and started again: each exporter has one export of the checkpoint. GRADUS_LONG takes every call; an ordinary
// run every one that names or removes something, and some of the others.
#include <gradus/estimator/checkpoint_values.hpp>
#include <gradus/estimator/train_and_evaluate.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/export_saved_model.hpp>
#include <gradus/train/hooks/early_stopping_hook.hpp>
#include <gradus/train/run_environment.hpp>

#include "../estimator/linear_model.hpp"
#include "killed_at_calls.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace {
using namespace gradus;

bool names_something(long long call) {
  static constexpr long calls[] = {
    SYS_renameat,
    SYS_renameat2,
    SYS_unlinkat,
    SYS_mkdirat,
#if defined(SYS_open)
    SYS_rename,
    SYS_unlink,
    SYS_mkdir,
    SYS_rmdir,
#endif
  };
  return std::find(std::begin(calls), std::end(calls), call) != std::end(calls);
}
bool changes_files(long long call) {
  static constexpr long calls[] = {SYS_write, SYS_pwrite64, SYS_writev, SYS_fsync, SYS_fdatasync, SYS_ftruncate};
  return names_something(call) || std::find(std::begin(calls), std::end(calls), call) != std::end(calls);
}

run_config config_of(const std::string& dir, const std::string& role) {
  run_config c = run_config::from_tf_config(
      text(R"({"cluster": {"chief": ["localhost:0"]}, "task": {"type": ")", role, R"(", "index": 0}})"),
      {.model_dir = dir, .save_summary_steps = 0, .save_checkpoints_steps = 1000});
  return c;
}
constexpr std::int64_t steps = 20;

int run_as(const std::string& dir, const std::string& role) {
  try {
    const run_config c = config_of(dir, role);
    estimator e(line::model, {.config = c, .log = [](const std::string&) {}});
    const auto serving = raw_serving_input({{"x", float32, {}}});
    train_and_evaluate(
        e, train_spec(line::endless, {.max_steps = steps}),
        eval_spec(line::once, {.exporters = {latest_exporter("each", {.serving = serving, .exports_to_keep = {}}),
                                             best_exporter("best", {.serving = serving}),
                                             final_exporter("last", {.serving = serving})},
                               .start_delay_secs = 0,
                               .throttle_secs = 0.01}));
    return 0;
  } catch (const std::exception& x) {
    return std::fprintf(stderr, "%s\n", x.what()), 1;
  }
}
std::vector<std::string> exports_of(const std::string& dir, const std::string& name) {
  return detail::exports_in(any_file_system(), text(dir, "/export/", name));
}

// Kills at every `stride`-th call, from the first on; returns how often.
long kill_everywhere(const std::string& trained, bool (*counts)(long long), long stride) {
  long kills = 0;
  bool killed = true;
  for (long n = 0; killed; n += stride) {
    CAPTURE(n);
    const testing::temp_dir place;
    const std::string dir = place / "run";
    std::filesystem::copy(trained, dir, std::filesystem::copy_options::recursive);
    const auto run = [&] { return run_as(dir, "evaluator"); };
    const ended first = run_and_kill(n, run, counts);
    killed = first.killed;
    kills += killed;
    REQUIRE((killed || first.exit_code == 0));
    if (killed) REQUIRE(run_and_kill(-1, run, counts).exit_code == 0);
    for (const std::string name : {"each", "best", "last"}) {
      CAPTURE(name);
      const auto all = exports_of(dir, name);
      CHECK(all.size() == 1);
      REQUIRE_FALSE(all.empty());
      CHECK(detail::variable_in(all[0], "w", {}).number() == detail::variable_in(trained, "w", {}).number());
    }
    CHECK(read_eval_metrics(dir + "/eval").contains(steps));
  }
  return kills;
}
}  // namespace

TEST_CASE("an evaluator that is killed at a system call and started again exports once") {
  const testing::temp_dir place;
  const std::string trained = place / "run";
  REQUIRE(run_and_kill(-1, [&] { return run_as(trained, "chief"); }).exit_code == 0);
  REQUIRE(detail::step_in_directory(trained) == steps);
  const bool is_long = std::getenv("GRADUS_LONG") != nullptr;
  const long kills = is_long
                         ? kill_everywhere(trained, changes_files, 1)
                         : kill_everywhere(trained, names_something, 1) + kill_everywhere(trained, changes_files, 11);
  MESSAGE(kills, " kills at system calls");
  CHECK(kills >= 30);
}
