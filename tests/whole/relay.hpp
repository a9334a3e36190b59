// A relay of TCP on this machine: connections to its port go on to another one. It can stop to pass bytes on, without a
// loss, and it can cut its connections and refuse new ones; so a test parts two processes and joins them again.
#pragma once
#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <list>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace relays {

class relay {
public:
  enum ways { open, stalled, cut };

  explicit relay(int to) : to_(to) {
    REQUIRE(::pipe2(wake_, O_CLOEXEC | O_NONBLOCK) == 0);
    listen();
    thread_ = std::thread([this] { pass(); });
  }
  relay(const relay&) = delete;
  ~relay() {
    set(-1);
    thread_.join();
    for (const int s : wake_) ::close(s);
  }
  int port() const { return port_; }
  // When it returns, nothing passes any more, or all does again.
  void set(ways w) { set(static_cast<int>(w)); }
  // How many bytes it has passed on.
  std::uint64_t passed() const { return passed_; }

private:
  // One way of a connection.
  struct half {
    std::array<char, 1 << 16> bytes;
    std::size_t first = 0, last = 0;  // of those that wait

    bool has_room() const { return last == 0; }
  };
  struct connection {
    int in = -1, out = -1;
    half up = {}, down = {};
    bool is_over = false;
  };
  int to_, port_ = 0, listening_ = -1;
  int wake_[2] = {};
  std::atomic<int> way_ = open, is_ = open;
  std::atomic<std::uint64_t> passed_ = 0;
  std::list<connection> all_;
  std::thread thread_;

  void set(int way) {
    way_ = way;
    CHECK(::write(wake_[1], "", 1) == 1);
    for (int now = is_; now != way; now = is_) is_.wait(now);
  }
  static sockaddr_in at(int port) {
    sockaddr_in a = {};
    a.sin_family = AF_INET;
    a.sin_port = htons(static_cast<std::uint16_t>(port));
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
  }
  void listen() {
    listening_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1;
    ::setsockopt(listening_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in a = at(port_);
    socklen_t size = sizeof a;
    const bool listens = ::bind(listening_, reinterpret_cast<const sockaddr*>(&a), sizeof a) == 0 &&
                         ::listen(listening_, 64) == 0 &&
                         ::getsockname(listening_, reinterpret_cast<sockaddr*>(&a), &size) == 0;
    CHECK(listens);
    port_ = ntohs(a.sin_port);
  }
  // Both ends see a reset, as where a machine on the way has forgotten the connection.
  static void reset(const connection& c) {
    const linger now{1, 0};
    for (const int s : {c.in, c.out}) {
      ::setsockopt(s, SOL_SOCKET, SO_LINGER, &now, sizeof now);
      ::close(s);
    }
  }
  void accept() {
    const int in = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (in < 0) return;
    const int out = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in a = at(to_);
    if (::connect(out, reinterpret_cast<const sockaddr*>(&a), sizeof a) != 0) {  // nobody listens there at present
      ::close(out);
      ::close(in);
      return;
    }
    ::fcntl(out, F_SETFL, O_NONBLOCK);
    const int on = 1;
    for (const int s : {in, out}) ::setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    all_.emplace_back().in = in;
    all_.back().out = out;
  }
  void take(connection& c, int from, half& h) {
    if (!h.has_room()) return;
    const ssize_t n = ::recv(from, h.bytes.data(), h.bytes.size(), 0);
    if (n > 0) h.first = 0, h.last = static_cast<std::size_t>(n);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) c.is_over = true;
  }
  void give(connection& c, int to, half& h) {
    if (h.has_room()) return;
    const ssize_t n = ::send(to, h.bytes.data() + h.first, h.last - h.first, MSG_NOSIGNAL);
    if (n > 0) h.first += static_cast<std::size_t>(n), passed_ += static_cast<std::uint64_t>(n);
    if (n < 0 && errno != EAGAIN && errno != EINTR) c.is_over = true, h.first = h.last;
    if (h.first == h.last) h.first = h.last = 0;
  }
  void pass() {
    for (std::vector<pollfd> waits;;) {
      const int way = way_;
      if (way == -1 || way == cut) {
        for (const connection& c : all_) reset(c);
        all_.clear();
        if (listening_ >= 0) ::close(listening_), listening_ = -1;
      }
      if (way == open && listening_ < 0) listen();
      is_ = way, is_.notify_all();
      if (way == -1) return;
      waits.assign(1, {wake_[0], POLLIN, 0});
      if (way == open) {
        waits.push_back({listening_, POLLIN, 0});
        for (const connection& c : all_)
          for (const auto& [s, to, from] : {std::tuple{c.in, &c.down, &c.up}, std::tuple{c.out, &c.up, &c.down}})
            waits.push_back(
                {s, static_cast<short>((from->has_room() ? POLLIN : 0) | (to->has_room() ? 0 : POLLOUT)), 0});
      }
      ::poll(waits.data(), waits.size(), -1);
      for (char some[64]; ::read(wake_[0], some, sizeof some) > 0;) {
      }
      if (way != open || way_ != open) continue;
      for (connection& c : all_) {
        take(c, c.in, c.up), give(c, c.out, c.up);
        take(c, c.out, c.down), give(c, c.in, c.down);
      }
      std::erase_if(all_, [](const connection& c) {
        if (!c.is_over || !c.up.has_room() || !c.down.has_room()) return false;
        ::close(c.in), ::close(c.out);
        return true;
      });
      if (waits[1].revents != 0) accept();
    }
  }
};

}  // namespace relays
