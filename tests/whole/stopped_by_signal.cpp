// costs: 60
// runs: stopped_by_signal
// Signals a program that trains: it saves and ends in order, or, asked twice, ends at once.
#include <gradus/codec/state_file.hpp>
#include <gradus/store/file_system.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdlib>
#include <string>
#include <vector>

extern char** environ;

namespace {
using gradus::join_path;
using gradus::text;
using gradus::testing::temp_dir;

// A program whose lines are read as they come.
class child {
public:
  explicit child(std::vector<std::string> words) {
    const char* bin = std::getenv("GRADUS_BIN");
    words.insert(words.begin(), join_path(bin != nullptr ? bin : "build/bin", "stopped_by_signal"));
    std::vector<char*> argv;
    for (auto& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    const int e = ::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    out_ = ends[0];
    REQUIRE(e == 0);
  }
  child(const child&) = delete;
  ~child() {
    if (!ended_) ::kill(pid_, SIGKILL), wait();
    ::close(out_);
  }
  // The next line; empty at the end of its output.
  std::string line() {
    std::string all;
    for (char c = 0; ::read(out_, &c, 1) == 1 && c != '\n';) all += c;
    return all;
  }
  void signal(int s) { ::kill(pid_, s); }
  int wait() {
    if (!ended_) ::waitpid(pid_, &status_, 0), ended_ = true;
    return status_;
  }

private:
  pid_t pid_ = -1;
  int out_ = -1, status_ = 0;
  bool ended_ = false;
};
constexpr const char* ways[] = {"trainer", "run_time", "supervisor", "monitored", "session"};
}  // namespace

TEST_CASE("SIGTERM and SIGINT: the step is finished, what is unsaved is saved, the program ends in order") {
  for (const char* how : ways)
    for (const int s : {SIGTERM, SIGINT}) {
      CAPTURE(how);
      const temp_dir dir;
      child p({how, dir.path()});
      REQUIRE(p.line() == "ready");
      p.signal(s);
      const std::string last = p.line();
      const int status = p.wait();
      CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
      REQUIRE(last.starts_with("ended "));
      const std::int64_t step = std::atoll(last.c_str() + 6);
      CHECK(step >= 3);
      const auto saved = gradus::read_state_file(gradus::posix{}, dir.path());
      REQUIRE(saved.has_value());
      CHECK(gradus::file_name_of(saved->newest).find(text("-", step, ".ckpt")) != std::string::npos);
    }
}

TEST_CASE("a second signal, of either kind, ends the program at once") {
  for (const char* how : {"trainer", "monitored"})
    for (const int second : {SIGTERM, SIGINT}) {
      const temp_dir dir;
      child p({how, dir.path(), "stuck"});
      REQUIRE(p.line() == "ready");
      p.signal(SIGTERM);
      REQUIRE(p.line() == "stopping");
      p.signal(second);
      const int status = p.wait();
      CHECK((WIFSIGNALED(status) && WTERMSIG(status) == second));
    }
}
