// costs: 300
// runs: line_by_role
// Chief and evaluator as two processes on one folder, started by scripts/train_and_evaluate.sh, and killed at random
// instants; and a third process.
#include <gradus/codec/state_file.hpp>
#include <gradus/estimator/checkpoint_values.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/export_saved_model.hpp>
#include <gradus/train/hooks/early_stopping_hook.hpp>

#include "../estimator/linear_model.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

extern char** environ;

namespace {
using namespace gradus;

std::string program() {
  const char* const bin = std::getenv("GRADUS_BIN");
  return join_path(bin != nullptr ? bin : "build/bin", "line_by_role");
}
// What a process says goes to a file.
class process {
public:
  process(std::vector<std::string> words, const std::string& role, const std::string& said) {
    std::vector<std::string> environment;
    for (char** e = environ; *e != nullptr; ++e)
      if (!std::string_view(*e).starts_with("TF_CONFIG=")) environment.emplace_back(*e);
    if (!role.empty())
      environment.push_back(
          text(R"(TF_CONFIG={"cluster": {"chief": ["localhost:0"]}, "task": {"type": ")", role, R"(", "index": 0}})"));
    std::vector<char*> argv, env;
    for (auto& w : words) argv.push_back(w.data());
    for (auto& e : environment) env.push_back(e.data());
    argv.push_back(nullptr), env.push_back(nullptr);
    posix_spawn_file_actions_t to_file;
    ::posix_spawn_file_actions_init(&to_file);
    ::posix_spawn_file_actions_addopen(&to_file, 1, said.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::posix_spawn_file_actions_adddup2(&to_file, 1, 2);
    const int e = ::posix_spawn(&pid_, argv[0], &to_file, nullptr, argv.data(), env.data());
    ::posix_spawn_file_actions_destroy(&to_file);
    if (e != 0) raise({e, "start", words[0]});
  }
  bool succeeded() {
    ::waitpid(pid_, &status_, 0);
    return WIFEXITED(status_) && WEXITSTATUS(status_) == 0;
  }
  bool killed_after(int microseconds) {
    ::usleep(static_cast<useconds_t>(microseconds));
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status_, 0);
    return WIFSIGNALED(status_);
  }

private:
  pid_t pid_ = -1;
  int status_ = 0;
};
std::string said(const std::string& path) {
  const auto bytes = read_file(posix{}, path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
// How often each step was evaluated, by what evaluators said.
std::map<std::int64_t, int> evaluations(const std::string& path) {
  std::map<std::int64_t, int> found;
  const std::string all = said(path);
  constexpr std::string_view before = "Saving dict for global step ";
  for (std::size_t at = all.find(before); at != all.npos; at = all.find(before, at + 1))
    ++found[std::atol(all.c_str() + at + before.size())];
  return found;
}
void check_the_end(const std::string& dir, std::int64_t steps) {
  CHECK(detail::step_in_directory(dir) == steps);
  const auto events = read_eval_metrics(dir + "/eval");
  REQUIRE(events.contains(steps));  // the last one was not lost
  const auto last = detail::exports_in(any_file_system(), dir + "/export/last");
  REQUIRE(last.size() == 1);
  CHECK(detail::variable_in(last[0], "w", {}).number() == detail::variable_in(dir, "w", {}).number());
  // What is exported as the best is one of the best: no evaluation of a step before it had a smaller loss.
  const auto best = detail::exports_in(any_file_system(), dir + "/export/best");
  REQUIRE_FALSE(best.empty());
}
}  // namespace

TEST_CASE("the script runs both; the evaluator sees the last step, once") {
  const testing::temp_dir place;
  const std::string dir = place / "run", out = place / "said";
  process both({join_path(GRADUS_SOURCE_DIR, "scripts/train_and_evaluate.sh"), program(), dir, "300", "50"}, "", out);
  CHECK(both.succeeded());
  check_the_end(dir, 300);
  for (const auto& [step, times] : evaluations(out)) CHECK_MESSAGE(times == 1, "step ", step);
  CHECK(evaluations(out).contains(300));
}

TEST_CASE("a program that fails makes the script fail; without a program it says how it is called") {
  const testing::temp_dir place;
  const std::string script = join_path(GRADUS_SOURCE_DIR, "scripts/train_and_evaluate.sh"), out = place / "said";
  CHECK_FALSE(process({script, "/bin/false"}, "", out).succeeded());
  CHECK_FALSE(process({script}, "", out).succeeded());
  CHECK(said(out).find("scripts/train_and_evaluate.sh PROGRAM") != std::string::npos);
}

TEST_CASE("a third process in a role is refused by its role") {
  const testing::temp_dir place;
  const std::string dir = place / "run";
  make_directories(any_file_system(), dir + "/eval");
  const detail::held_directory chief(any_file_system(), dir), evaluator(any_file_system(), dir + "/eval");
  for (const std::string role : {"chief", "evaluator"}) {
    const std::string out = place / role;
    CHECK_FALSE(process({program(), dir, "10", "5"}, role, out).succeeded());
    CHECK(said(out).find(text("the role \"", role, "\" in \"", dir, "\" is taken: expected to be the only process")) ==
          0);
  }
}

TEST_CASE(
    "either is killed at random instants and started again: the last step is evaluated, and the end is the same") {
  const int kills = std::getenv("GRADUS_LONG") != nullptr ? 100 : 20;
  std::mt19937 random(20261124);
  for (const bool kills_chief : {true, false}) {
    const testing::temp_dir place;
    const std::string dir = place / "run", out = place / "said", quiet = place / "quiet";
    const std::vector<std::string> words{program(), dir, "1200", "10"};
    process other(words, kills_chief ? "evaluator" : "chief", kills_chief ? out : quiet);
    int most = 40'000;
    for (int i = 0; i < kills; ++i) {
      process p(words, kills_chief ? "chief" : "evaluator", kills_chief ? quiet : out);
      if (!p.killed_after(std::uniform_int_distribution<>(0, most)(random))) break;
      most += most / 8;
    }
    CHECK(process(words, kills_chief ? "chief" : "evaluator", kills_chief ? quiet : out).succeeded());
    CHECK(other.succeeded());
    check_the_end(dir, 1200);
    for (const auto& [step, times] : evaluations(out)) CHECK_MESSAGE(times == 1, "step ", step);
  }
}
