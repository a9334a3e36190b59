// The service behind a unix socket. Lines go in and lines come out, in order, on as many connections as there are:
//
//   predict 0.5 -2 ...      0.731059 at 1200            the probability, and the step of the model that gave it
//   learn 1 0.5 -2 ...      learned 19217               the examples in the log, this one included
//   where                   19217 examples, step 1200
//   save                    saving
//   stop                    stopped at step 1201        what is in the log is learned, and saved; the program ends
//   anything else           error: ...
#pragma once
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdio>
#include <list>

#include "service.hpp"

namespace online {

class server {
public:
  // A socket of an earlier process is replaced.
  server(service& s, std::string path) : service_(&s), path_(std::move(path)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path_.size() >= sizeof(address.sun_path))
      gradus::raise(gradus::status::invalid_argument,
                    gradus::text("a socket's path has at most ", sizeof(address.sun_path) - 1, " characters: ", path_));
    path_.copy(address.sun_path, path_.size());
    if (::pipe2(ending_, O_CLOEXEC) != 0) gradus::raise({errno, "make", "a pipe"});
    listens_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ::unlink(path_.c_str());
    if (listens_ < 0 || ::bind(listens_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
        ::listen(listens_, 64) != 0)
      gradus::raise({errno, "listen at", path_});
  }
  server(const server&) = delete;
  ~server() {
    end();
    connections_.clear();
    ::unlink(path_.c_str());
    for (int f : {listens_, ending_[0], ending_[1]}) ::close(f);
  }

  // Answers until `stop` comes or end() is called. Whether `stop` came.
  bool serve() {
    while (is_ready(listens_)) {
      const int peer = ::accept4(listens_, nullptr, nullptr, SOCK_CLOEXEC);
      if (peer < 0) continue;  // it has gone again
      connections_.remove_if([](const connection& c) { return c.done.load(); });
      connection& c = connections_.emplace_back();
      c.thread = tasks_.start("a connection", "end other programs", [this, &c, peer] {
        try {
          answer_all(peer);
        } catch (const std::exception& e) {
          std::fprintf(stderr, "a connection ended: %s\n", e.what());
        }
        ::close(peer);
        c.done = true;
      });
    }
    connections_.clear();  // waits for the answers at work
    return stopped_;
  }
  // From any thread, and from a signal's handler.
  void end() noexcept {
    const char byte = 0;
    [[maybe_unused]] const auto n = ::write(ending_[1], &byte, 1);
  }

private:
  struct connection {
    std::atomic<bool> done{false};
    gradus::task_handle thread;
  };
  static constexpr std::size_t longest_line = 1 << 16;

  service* service_;
  std::string path_;
  int listens_ = -1, ending_[2] = {-1, -1};
  std::atomic<bool> stopped_{false};
  gradus::task_system tasks_;
  std::list<connection> connections_;

  // Waits until there is something to read; false once the server ends. Nobody reads the pipe, so all see it.
  bool is_ready(int file) {
    pollfd both[2] = {{file, POLLIN, 0}, {ending_[0], POLLIN, 0}};
    while (::poll(both, 2, -1) < 0)
      if (errno != EINTR) gradus::raise({errno, "wait for", path_});
    return both[1].revents == 0;
  }
  void answer_all(int peer) {
    std::string text;
    char piece[4096];
    while (is_ready(peer)) {
      const auto n = ::recv(peer, piece, sizeof(piece), 0);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;
      text.append(piece, static_cast<std::size_t>(n));
      std::string answers;
      std::size_t from = 0;
      for (std::size_t to; (to = text.find('\n', from)) != std::string::npos; from = to + 1)
        answers += answer(text.substr(from, to - from)) + '\n';
      text.erase(0, from);
      for (std::size_t done = 0; done < answers.size();) {
        const auto sent = ::send(peer, answers.data() + done, answers.size() - done, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return;
        done += static_cast<std::size_t>(sent);
      }
      if (stopped_) return end();
      if (text.size() > longest_line) return;
    }
  }
  std::string answer(const std::string& line) {
    const auto space = line.find(' ');
    const std::string word = line.substr(0, space), rest = space == std::string::npos ? "" : line.substr(space + 1);
    const std::string wanted = gradus::text(service_->features(), " finite numbers");
    try {
      if (word == "predict") {
        const auto features = numbers_of(rest, static_cast<std::size_t>(service_->features()));
        if (!features) return gradus::text("error: predict takes ", wanted);
        const auto a = service_->predict(*features);
        char said[64];
        std::snprintf(said, sizeof(said), "%.6f at %lld", static_cast<double>(a.probability),
                      static_cast<long long>(a.step));
        return said;
      }
      if (word == "learn") {
        const auto count = service_->learn(rest);
        return count ? gradus::text("learned ", *count)
                     : gradus::text("error: learn takes what was true, then ", wanted);
      }
      if (line == "where") return gradus::text(service_->examples(), " examples, step ", service_->steps());
      if (line == "save") return service_->save_soon(), "saving";
      if (line == "stop") {
        service_->stop();
        stopped_ = true;
        return gradus::text("stopped at step ", service_->steps());
      }
    } catch (const std::exception& e) {
      return gradus::text("error: ", e.what());
    }
    return "error: say predict, learn, where, save or stop";
  }
};

}  // namespace online
