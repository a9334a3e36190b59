// The bodies of listener.hpp.
#pragma once
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "../base/body.hpp"
#include "listener.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY network_address address_from(const std::string& s) {
  const auto refuse = [&](std::string_view why) {
    raise(status::invalid_argument,
          text("\"", s, "\" is no address of a task: ", why, "; expected host:port, [::1]:port or unix:path"));
  };
  network_address a;
  if (s.starts_with("unix:")) {
    a.is_unix = true, a.host = s.substr(5);
    if (a.host.empty() || a.host.size() >= sizeof(sockaddr_un::sun_path))
      refuse(text("a path has 1 to ", sizeof(sockaddr_un::sun_path) - 1, " bytes"));
    return a;
  }
  const std::size_t colon = s.rfind(':');
  if (colon == std::string::npos) refuse("it has no port");
  a.host = s.substr(0, colon);
  const bool bracketed = a.host.size() > 2 && a.host.front() == '[' && a.host.back() == ']';
  if (bracketed) a.host = a.host.substr(1, a.host.size() - 2);
  if (a.host.empty()) refuse("it has no host");
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
  if (a.host.find_first_not_of(bracketed ? "0123456789abcdefABCDEF:.%" : letters) != std::string::npos)
    refuse("its host has characters that a host does not have");
  const char *first = s.data() + colon + 1, *last = s.data() + s.size();
  const auto [end, bad] = std::from_chars(first, last, a.port);
  if (bad != std::errc{} || end != last || *first == '-' || a.port > 65535) refuse("its port is no number up to 65535");
  return a;
}
GRADUS_BODY bool network_address::is_local() const {
  if (is_unix || host == "localhost" || host == "::1") return true;
  unsigned part = 0;
  int parts = 0;
  // Four numbers of which the first is 127; "127.example.com" may be a host on another machine.
  for (const char *at = host.data(), *last = at + host.size(); parts < 4; ++at) {
    const auto [end, bad] = std::from_chars(at, last, part);
    if (bad != std::errc{} || part > 255 || (parts == 0 && part != 127)) return false;
    at = end, ++parts;
    if (parts == 4) return at == last;
    if (at == last || *at != '.') return false;
  }
  return false;
}

// Returns a socket that listens at the address; -1, with errno set, if there is none.
GRADUS_BODY int listen_at(const sockaddr* at, socklen_t bytes) {
  const int s = ::socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (s < 0) return -1;
  const int on = 1, off = 0;
  // A connection of an ended task in TIME_WAIT must not prevent listening; another process that listens does.
  ::setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (at->sa_family == AF_INET6) ::setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (::bind(s, at, bytes) == 0 && ::listen(s, 1024) == 0) return s;
  const int why = errno;
  ::close(s);
  errno = why;
  return -1;
}

GRADUS_BODY listener::listener(const task_system& tasks, std::size_t most, std::function<void(int)> take)
    : tasks_(tasks), most_(most), take_(std::move(take)) {}
GRADUS_BODY listener::~listener() { close(); }

GRADUS_BODY int listener::open(const std::string& address) {
  const network_address a = address_from(address);
  if (listening_ >= 0)
    raise(status::failed_precondition, text("listen: ", address, " cannot be added: a task has one address"));
  sockaddr_storage bound = {};
  socklen_t bytes = sizeof bound;
  int why = 0;
  if (a.is_unix) {
    sockaddr_un u = {};
    u.sun_family = AF_UNIX;
    std::memcpy(u.sun_path, a.host.data(), a.host.size());
    const auto* at = reinterpret_cast<const sockaddr*>(&u);
    listening_ = listen_at(at, sizeof u), why = errno;
    if (listening_ < 0 && why == EADDRINUSE) {  // no process listens at the file of a task that was killed
      const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const bool is_left = ::connect(probe, at, sizeof u) != 0 && errno == ECONNREFUSED;
      ::close(probe);
      if (is_left && ::unlink(u.sun_path) == 0) listening_ = listen_at(at, sizeof u), why = errno;
    }
    if (listening_ >= 0) path_ = a.host;
  } else {
    addrinfo hints = {}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM, hints.ai_flags = AI_PASSIVE;
    if (const int r = ::getaddrinfo(a.host.c_str(), std::to_string(a.port).c_str(), &hints, &found); r != 0)
      raise(status::invalid_argument, text("listen: the host of \"", address, "\" is not known: ", ::gai_strerror(r),
                                           "; give an address of this machine, or 0.0.0.0 for all of them"));
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);
    for (const int family : {AF_INET, AF_INET6})  // localhost is both; peers try 127.0.0.1
      for (const addrinfo* i = found; i != nullptr && listening_ < 0; i = i->ai_next)
        if (i->ai_family == family) listening_ = listen_at(i->ai_addr, i->ai_addrlen), why = errno;
  }
  if (listening_ < 0)
    raise(why == EADDRNOTAVAIL ? status::invalid_argument : status::unavailable,
          text("listen: ", address, ": ", std::strerror(why),
               why == EADDRINUSE      ? "; another process listens there: end it, or choose another port"
               : why == EADDRNOTAVAIL ? "; give an address of this machine, or 0.0.0.0 for all of them"
                                      : "; choose another address"));
  ::getsockname(listening_, reinterpret_cast<sockaddr*>(&bound), &bytes);
  if (::pipe2(wake_, O_CLOEXEC | O_NONBLOCK) != 0) {
    why = errno;
    close();
    raise(status::resource_exhausted, text("listen: no pipe to be had: ", std::strerror(why)));
  }
  if (bound.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
  if (bound.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port);
  return 0;
}

GRADUS_BODY void listener::start() {
  task_ = tasks_.start("listen", "raise the limit of threads", [this] { run(); });
}

GRADUS_BODY void listener::close() {
  if (task_.joinable()) {
    const char c = 0;
    while (::write(wake_[1], &c, 1) < 0 && errno == EINTR) {
    }
    task_.join();
  }
  for (int* const d : {&listening_, &wake_[0], &wake_[1]})
    if (*d >= 0) ::close(*d), *d = -1;
  if (!path_.empty()) ::unlink(path_.c_str()), path_.clear();
}

// Returns the device and inode of a descriptor, which may be closed or reused by now. ThreadSanitizer takes fstat for a
// use of the descriptor, hence fstatat.
GRADUS_BODY bool look_at_descriptor(int d, struct stat& s) {
#if defined(AT_EMPTY_PATH)
  return ::fstatat(d, "", &s, AT_EMPTY_PATH) == 0;
#else
  return ::fstat(d, &s) == 0;
#endif
}

GRADUS_BODY bool listener::has_room() {
  if (taken_.size() < most_) return true;
  // Closed ones are only removed here, since that costs a system call for each.
  std::erase_if(taken_, [](const taken& t) {
    struct stat s = {};
    return !look_at_descriptor(t.descriptor, s) || s.st_ino != t.inode || s.st_dev != t.device;
  });
  return taken_.size() < most_;
}

GRADUS_BODY void listener::run() {
  bool is_short = false;  // of descriptors
  while (true) {
    pollfd on[2] = {{wake_[0], POLLIN, 0}, {is_short ? -1 : listening_, POLLIN, 0}};
    const int ready = ::poll(on, 2, is_short ? 50 : -1);
    is_short = false;
    if (on[0].revents != 0) return;
    if (ready <= 0 || on[1].revents == 0) continue;
    const int s = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (s < 0) {
      // Without a pause the loop would spin, since the connection stays in the queue.
      is_short = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      continue;
    }
    struct stat is = {};
    if (!has_room() || !look_at_descriptor(s, is)) {
      ++too_many_;
      ::close(s);
      continue;
    }
    const int on_value = 1;
    ::setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on_value, sizeof on_value);  // a unix socket does not have this option
    taken_.push_back({s, is.st_dev, is.st_ino});
    take_(s);
  }
}

}  // namespace gradus::detail
