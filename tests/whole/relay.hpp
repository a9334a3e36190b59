// A relay of TCP on this machine: connections to its port go on to another one. It can stop to pass bytes on, without a
// loss, and it can cut its connections and refuse new ones, cut each new one after a few bytes, or forget one end of
// each; so a test parts two processes and joins them again.
#pragma once
#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <list>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace relays {

class relay {
public:
  // open: all bytes pass. stalled: none does, and none is lost. cut: there are no connections. torn: the same, and each
  // new one is cut after some bytes, which are fewer than a TLS handshake with certificates has. halved: of each
  // connection one end is gone, and the other does not hear of it; new connections are open.
  enum ways { open, stalled, cut, torn, halved };

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
  // How many connections began with TLS.
  std::uint64_t encrypted() const { return encrypted_; }
  // How many connections it has torn or halved.
  std::uint64_t broken() const { return broken_; }

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
    bool is_over = false, has_begun = false;
    std::size_t left = unbounded;  // the bytes after which it is cut
  };
  static constexpr std::size_t unbounded = SIZE_MAX, most_before_cut = 3000;
  int to_, port_ = 0, listening_ = -1;
  int wake_[2] = {};
  std::atomic<int> way_ = open, is_ = open;
  std::atomic<std::uint64_t> passed_ = 0, encrypted_ = 0, broken_ = 0;
  std::list<connection> all_;
  std::vector<int> forgotten_;  // the ends of halved connections that are still there
  std::mt19937 random_{static_cast<unsigned>(to_)};
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
  static void reset(int s) {
    const linger now{1, 0};
    ::setsockopt(s, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    ::close(s);
  }
  void cut_all() {
    for (const connection& c : all_) reset(c.in), reset(c.out);
    for (const int s : forgotten_) reset(s);
    all_.clear(), forgotten_.clear();
  }
  void halve_all() {
    for (const connection& c : all_) {
      const bool in_stays = random_() % 2 == 0;
      forgotten_.push_back(in_stays ? c.in : c.out);
      reset(in_stays ? c.out : c.in);
      ++broken_;
    }
    all_.clear();
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
    if (way_ == torn) all_.back().left = random_() % most_before_cut;
  }
  void take(connection& c, int from, half& h) {
    if (!h.has_room()) return;
    const ssize_t n = ::recv(from, h.bytes.data(), h.bytes.size(), 0);
    if (n > 0) h.first = 0, h.last = static_cast<std::size_t>(n);
    constexpr char handshake = 22;  // the type of TLS's first record (RFC 8446, 5.1)
    if (n > 0 && from == c.in && !std::exchange(c.has_begun, true)) encrypted_ += h.bytes[0] == handshake;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) c.is_over = true;
  }
  void give(connection& c, int to, half& h) {
    if (h.has_room()) return;
    const ssize_t n = ::send(to, h.bytes.data() + h.first, std::min(h.last - h.first, c.left), MSG_NOSIGNAL);
    if (n > 0) h.first += static_cast<std::size_t>(n), passed_ += static_cast<std::uint64_t>(n);
    if (n > 0 && c.left != unbounded) c.left -= static_cast<std::size_t>(n);
    if (n < 0 && errno != EAGAIN && errno != EINTR) c.is_over = true, h.first = h.last;
    if (h.first == h.last) h.first = h.last = 0;
  }
  void pass() {
    for (std::vector<pollfd> waits;;) {
      const int way = way_;
      const bool is_new = way != is_;
      if (way == -1 || way == cut || (way == torn && is_new)) cut_all();
      if (way == halved && is_new) halve_all();
      if (way == open && is_new)
        for (connection& c : all_) c.left = unbounded;
      const bool is_closed = way == -1 || way == cut, passes = !is_closed && way != stalled;
      if (is_closed && listening_ >= 0) ::close(listening_), listening_ = -1;
      if (passes && listening_ < 0) listen();
      is_ = way, is_.notify_all();
      if (way == -1) return;
      waits.assign(1, {wake_[0], POLLIN, 0});
      if (passes) {
        waits.push_back({listening_, POLLIN, 0});
        for (const connection& c : all_)
          for (const auto& [s, to, from] : {std::tuple{c.in, &c.down, &c.up}, std::tuple{c.out, &c.up, &c.down}})
            waits.push_back(
                {s, static_cast<short>((from->has_room() ? POLLIN : 0) | (to->has_room() ? 0 : POLLOUT)), 0});
      }
      ::poll(waits.data(), waits.size(), -1);
      for (char some[64]; ::read(wake_[0], some, sizeof some) > 0;) {
      }
      if (!passes || way_ != way) continue;
      for (connection& c : all_) {
        take(c, c.in, c.up), give(c, c.out, c.up);
        take(c, c.out, c.down), give(c, c.in, c.down);
      }
      std::erase_if(all_, [this](const connection& c) {
        if (c.left == 0) {
          reset(c.in), reset(c.out);
          return ++broken_, true;
        }
        if (!c.is_over || !c.up.has_room() || !c.down.has_room()) return false;
        ::close(c.in), ::close(c.out);
        return true;
      });
      if (waits[1].revents != 0) accept();
    }
  }
};

}  // namespace relays
