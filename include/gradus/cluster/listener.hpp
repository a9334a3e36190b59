// Addresses of tasks, and a listener that accepts the connections at one of them, up to a maximum number at a time.
//
//   gradus::detail::listener door(tasks, 256, [&](int descriptor) { ... });   // called on a thread of its own
//   const int port = door.open("127.0.0.1:0");
//   door.start();
//
// A connection above the limit is closed at once, before a byte of it is read. The function owns the descriptor that it
// gets and closes it at any time; the listener detects that it is closed. If the process has no descriptor left, the
// listener waits until there is one.
#pragma once
#include "../base/build.hpp"

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "../base/error.hpp"
#include "../base/tasks.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

// "host:port", "[::1]:port" or "unix:path".
struct network_address {
  std::string host;  // without brackets; of a unix socket its path
  int port = 0;
  bool is_unix = false;

  // Returns whether the address can only be on this machine: unix sockets, localhost, ::1 and 127.0.0.0/8.
  bool is_local() const;
};
// Raises invalid_argument for text that is no address.
network_address address_from(const std::string& text_of_it);

class listener {
public:
  listener(const task_system& tasks, std::size_t most, std::function<void(int)> take);
  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;
  ~listener();

  // Opens the address; connections wait in the kernel from now on. Returns the port, 0 for a unix socket. Raises
  // unavailable if the address is in use, invalid_argument if it is not one of this machine, failed_precondition for a
  // second call, and resource_exhausted where the process has no descriptors left.
  int open(const std::string& address);
  // Begins to accept connections.
  void start();
  // Accepts no more connections and frees the port.
  void close();
  int descriptor() const { return listening_; }
  // Returns the number of connections that were closed because there were too many.
  std::uint64_t too_many() const { return too_many_; }

private:
  // A descriptor that was passed to the function. Its number may have been reused by now, its inode was not.
  struct taken {
    int descriptor = -1;
    dev_t device = {};
    ino_t inode = {};
  };
  void run();
  bool has_room();

  task_system tasks_;
  std::size_t most_;
  std::function<void(int)> take_;
  int listening_ = -1, wake_[2] = {-1, -1};
  std::string path_;  // of a unix socket
  std::vector<taken> taken_;
  std::atomic<std::uint64_t> too_many_ = 0;
  task_handle task_;
};

}  // namespace gradus::detail

#ifndef GRADUS_COMPILED
#include "listener.ipp"
#endif
