// Programs that tests start, watch and kill.
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include <gradus/base/error.hpp>
#include <gradus/store/file.hpp>

extern char** environ;

namespace processes {

inline std::string program(const char* name) {
  const char* bin = std::getenv("GRADUS_BIN");
  return gradus::join_path(bin != nullptr ? bin : "build/bin", name);
}
inline double seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// A program that is running; both of its outputs go to one file.
class process {
public:
  // `more`: lines "NAME=value" that its environment has beside ours.
  process(std::vector<std::string> words, const std::string& output, std::vector<std::string> more = {}) {
    std::vector<char*> argv, environment;
    for (auto& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    for (auto& line : more) environment.push_back(line.data());
    for (char** line = environ; *line != nullptr; ++line) environment.push_back(*line);
    environment.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 1, output.c_str(),
                                       O_WRONLY | O_CREAT | (more.empty() ? O_TRUNC : 0) | O_APPEND, 0666);
    ::posix_spawn_file_actions_adddup2(&actions, 1, 2);
    const int e = ::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environment.data());
    ::posix_spawn_file_actions_destroy(&actions);
    if (e != 0) gradus::raise({e, "start", words[0]});
  }
  process(const process&) = delete;
  ~process() {
    if (!ended_) kill();
  }
  // Whether it has ended by itself.
  bool ended() {
    if (!ended_) ended_ = ::waitpid(pid_, &status_, WNOHANG) == pid_;
    return ended_;
  }
  void wait() {
    if (!ended_) ::waitpid(pid_, &status_, 0), ended_ = true;
  }
  void kill() {
    ::kill(pid_, SIGKILL);
    wait();
  }
  // SIGSTOP, SIGCONT and the like. False: it has ended already.
  bool signal(int number) { return !ended() && ::kill(pid_, number) == 0; }
  bool was_killed() const { return WIFSIGNALED(status_) && WTERMSIG(status_) == SIGKILL; }
  bool succeeded() const { return WIFEXITED(status_) && WEXITSTATUS(status_) == 0; }

private:
  pid_t pid_ = -1;
  int status_ = 0;
  bool ended_ = false;
};

}  // namespace processes
