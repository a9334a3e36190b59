// A cluster of real processes over gRPC on this machine: tests kill its tasks, stop them, and start them again, as a
// service manager does.
#pragma once
#include <gradus/store/file.hpp>

#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <functional>
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

// Which tasks there are, at which ports, and what the environment of one has besides.
struct tasks_wanted {
  int ps = 2;
  bool has_worker = true;       // beside the chief
  std::vector<int> ports = {};  // of the parameter servers; none: free ones
  std::function<std::vector<std::string>(const std::string& task)> environment = {};
};

// Parameter servers, the chief and a worker: `words` is the program of all, and what each writes is in the file that
// `outputs`, a dash and its name make.
class cluster {
public:
  cluster(std::vector<std::string> words, std::string outputs, tasks_wanted wanted = {})
      : words_(std::move(words)), outputs_(std::move(outputs)), wanted_(std::move(wanted)) {
    for (int k = 0; k < wanted_.ps; ++k) {
      const int port = wanted_.ports.empty() ? free_port() : wanted_.ports.at(static_cast<std::size_t>(k));
      spec_ += text(k == 0 ? R"("cluster": {"ps": [)" : ", ", R"("localhost:)", port, '"');
      tasks_.push_back(text("ps ", k));
    }
    spec_ += text(R"(], "chief": ["localhost:1"])", wanted_.has_worker ? R"(, "worker": ["localhost:2"])" : "", '}');
    tasks_.emplace_back("chief 0");
    if (wanted_.has_worker) tasks_.emplace_back("worker 0");
    for (const std::string& t : tasks_) start(t);
  }
  const std::vector<std::string>& tasks() const { return tasks_; }
  // Starts again what has ended with an error, as a service manager does. False: all have ended as they should.
  bool look() {
    int running = 0;
    for (const std::string& t : tasks_) {
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
    const bool is_ending = running != 0 && running != static_cast<int>(tasks_.size());
    if (!is_ending) ending_since_ = seconds();
    if (is_ending && seconds() - ending_since_ > 30)
      for (const std::string& t : tasks_)
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
  // Starts one that has ended.
  void start_again(const std::string& task) {
    REQUIRE(!is_running(task));
    start(task);
  }
  // Whether one that has ended did so without an error.
  bool succeeded(const std::string& task) { return running_.at(task)->succeeded(); }
  std::string output(const std::string& task) const { return outputs_ + "-" + task; }
  // How often a task ended with an error of its own, and was started again.
  int errors() const { return errors_; }

private:
  std::vector<std::string> words_;
  std::string outputs_, spec_;
  tasks_wanted wanted_;
  std::vector<std::string> tasks_;
  std::map<std::string, std::unique_ptr<process>> running_;
  int restarts_ = 0, errors_ = 0;
  double ending_since_ = 0;

  void start(const std::string& task) {
    const auto space = task.find(' ');
    const std::string config = text("TF_CONFIG={", spec_, R"(, "task": {"type": ")", task.substr(0, space),
                                    R"(", "index": )", task.substr(space + 1), "}}");
    std::vector<std::string> lines{config};
    if (wanted_.environment)
      for (std::string& line : wanted_.environment(task)) lines.push_back(std::move(line));
    running_[task] = std::make_unique<process>(words_, output(task), std::move(lines));
  }
};

}  // namespace processes
