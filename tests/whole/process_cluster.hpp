// A cluster of real processes over gRPC on this machine: tests kill its tasks, stop them, and start them again, as a
// service manager does.
#pragma once
#include <gradus/store/file.hpp>

#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "process.hpp"

namespace processes {
using gradus::text;

// A port that nobody has at present.
inline int free_port() {
  const int s = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  const bool found = ::bind(s, reinterpret_cast<sockaddr*>(&at), size) == 0 &&
                     ::getsockname(s, reinterpret_cast<sockaddr*>(&at), &size) == 0;
  ::close(s);
  REQUIRE(found);
  return ntohs(at.sin_port);
}
inline std::string slurp(const std::string& path) {
  const auto bytes = gradus::read_file(gradus::posix{}, path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Two parameter servers, the chief and a worker: `words` is the program of all, and what each writes is in the file
// that `outputs`, a dash and its name make.
class cluster {
public:
  static constexpr const char* tasks[] = {"ps 0", "ps 1", "chief 0", "worker 0"};

  cluster(std::vector<std::string> words, std::string outputs)
      : words_(std::move(words)), outputs_(std::move(outputs)) {
    spec_ = text(R"("cluster": {"ps": ["localhost:)", free_port(), R"(", "localhost:)", free_port(),
                 R"("], "chief": ["localhost:1"], "worker": ["localhost:2"]})");
    for (const char* t : tasks) start(t);
  }
  // Starts again what has ended with an error, as a service manager does. False: all have ended as they should.
  bool look() {
    int running = 0;
    for (const std::string t : tasks) {
      process& p = *running_.at(t);
      if (p.ended() && !p.succeeded()) {
        REQUIRE_MESSAGE(++restarts_ < 2000, slurp(output(t)));
        errors_ += !p.was_killed();
        start(t);
      }
      running += !running_.at(t)->ended();
    }
    // All end within moments, unless a task was killed in them: it is started again and finds nobody. Then all are
    // started again, as docs/cluster_operators.md says.
    const bool is_ending = running != 0 && running != static_cast<int>(std::size(tasks));
    if (!is_ending) ending_since_ = seconds();
    if (is_ending && seconds() - ending_since_ > 30)
      for (const std::string t : tasks)
        if (running_.at(t)->ended()) start(t);
    return running != 0;
  }
  bool kill(const std::string& task) {
    process& p = *running_.at(task);
    if (p.ended()) return false;
    p.kill();
    return p.was_killed();
  }
  // False: it has ended already.
  bool stop(const std::string& task) { return running_.at(task)->signal(SIGSTOP); }
  bool go_on(const std::string& task) { return running_.at(task)->signal(SIGCONT); }
  bool is_running(const std::string& task) { return !running_.at(task)->ended(); }
  std::string output(const std::string& task) const { return outputs_ + "-" + task; }
  // How often a task ended with an error of its own, and was started again.
  int errors() const { return errors_; }

private:
  std::vector<std::string> words_;
  std::string outputs_, spec_;
  std::map<std::string, std::unique_ptr<process>> running_;
  int restarts_ = 0, errors_ = 0;
  double ending_since_ = 0;

  void start(const std::string& task) {
    const auto space = task.find(' ');
    const std::string config = text("TF_CONFIG={", spec_, R"(, "task": {"type": ")", task.substr(0, space),
                                    R"(", "index": )", task.substr(space + 1), "}}");
    running_[task] = std::make_unique<process>(words_, output(task), std::vector<std::string>{config});
  }
};

}  // namespace processes
