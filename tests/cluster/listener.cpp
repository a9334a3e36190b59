#include <gradus/cluster/listener.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <mutex>

#include "../message.hpp"

using namespace gradus;
using namespace gradus::detail;

namespace {

// Keeps the descriptors that it is given.
struct taker {
  std::mutex m;
  task_condition changed;
  std::vector<int> taken;
  void operator()(int d) {
    std::lock_guard lock(m);
    taken.push_back(d);
    changed.notify_all();
  }
  bool until(std::size_t n) {
    std::unique_lock lock(m);
    return changed.wait_for(lock, 30, [&] { return taken.size() >= n; });
  }
  ~taker() {
    for (const int d : taken) ::close(d);
  }
};

int socket_to(int port) {
  const int s = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(::connect(s, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
  return s;
}
int socket_to(const std::string& path) {
  const int s = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un at = {};
  at.sun_family = AF_UNIX;
  std::memcpy(at.sun_path, path.data(), path.size());
  CHECK(::connect(s, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
  return s;
}
bool is_closed(int s) {
  char c;
  return ::read(s, &c, 1) <= 0;
}

}  // namespace

TEST_CASE("addresses of tasks") {
  const network_address a = address_from("worker0.example.com:2222");
  CHECK(a.host == "worker0.example.com");
  CHECK(a.port == 2222);
  CHECK(!a.is_unix);
  CHECK(address_from("[::1]:0").host == "::1");
  CHECK(address_from("unix:/tmp/x").host == "/tmp/x");
  CHECK(address_from("unix:/tmp/x").is_unix);
  for (const char* local : {"localhost:1", "127.0.0.1:1", "127.255.3.4:1", "[::1]:1", "unix:x"})
    CHECK(address_from(local).is_local());
  for (const char* away : {"128.0.0.1:1", "127.0.0.1.example.com:1", "127.0.0:1", "127.0.0.1.1:1", "127.0.0.256:1",
                           "12.7.0.1:1", "[::2]:1", "localhost.example.com:1", "0.0.0.0:1"})
    CHECK(!address_from(away).is_local());
  for (const char* none : {"", "host", ":1", "host:", "host:x", "host:-1", "host:65536", "host:1x", "h/x:1", "::1:1",
                           "a:b:1", "[]:1", "unix:", "http://a:1", "host: 1"}) {
    const std::string said = message_of(status::invalid_argument, [&] { address_from(none); });
    CHECK(says(said, text("\"", none, "\" is no address of a task")));
    CHECK(says(said, "expected host:port, [::1]:port or unix:path"));
  }
  message_of(status::invalid_argument, [] { address_from("unix:" + std::string(200, 'x')); });
}

TEST_CASE("a listener takes as many connections as it may, and more when some are gone") {
  taker takes;
  listener door({}, 3, std::ref(takes));
  const int port = door.open("127.0.0.1:0");
  door.start();
  std::vector<int> mine;
  for (int i = 0; i < 3; ++i) mine.push_back(socket_to(port));
  REQUIRE(takes.until(3));
  const int fourth = socket_to(port);
  CHECK(is_closed(fourth));
  ::close(fourth);
  CHECK(door.too_many() == 1);
  ::close(takes.taken.back());
  takes.taken.pop_back();
  mine.push_back(socket_to(port));
  CHECK(takes.until(3));
  CHECK(door.too_many() == 1);
  for (const int s : mine) ::close(s);
  door.close();
  listener next({}, 3, std::ref(takes));
  CHECK(next.open(text("127.0.0.1:", port)) == port);  // it was freed
  CHECK(says(message_of(status::failed_precondition, [&] { next.open("127.0.0.1:0"); }), "a task has one address"));
  listener third({}, 3, std::ref(takes));
  CHECK(says(message_of(status::unavailable, [&] { third.open(text("127.0.0.1:", port)); }),
             "another process listens there: end it, or choose another port"));
  // An address for documentation, which no machine has.
  CHECK(says(message_of(status::invalid_argument, [&] { third.open("192.0.2.1:0"); }),
             "give an address of this machine"));
}

TEST_CASE("a unix socket takes the place of one that a dead task left, not of one that lives") {
  const testing::temp_dir folder;
  const std::string path = folder / "s", address = "unix:" + path;
  taker takes;
  {
    const int left = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un at = {};
    at.sun_family = AF_UNIX;
    std::memcpy(at.sun_path, path.data(), path.size());
    REQUIRE(::bind(left, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
    ::close(left);  // the file stays
  }
  listener door({}, 3, std::ref(takes));
  CHECK(door.open(address) == 0);
  door.start();
  const int s = socket_to(path);
  CHECK(takes.until(1));
  ::close(s);
  listener second({}, 3, std::ref(takes));
  message_of(status::unavailable, [&] { second.open(address); });
  door.close();
  CHECK(::access(path.c_str(), F_OK) != 0);
}

TEST_CASE("where descriptors run out a connection waits until there are some") {
  taker takes;
  listener door({}, 100, std::ref(takes));
  const int port = door.open("127.0.0.1:0");
  door.start();
  const int first = socket_to(port);
  REQUIRE(takes.until(1));
  const int mine = ::socket(AF_INET, SOCK_STREAM, 0);
  rlimit before = {}, none = {};
  ::getrlimit(RLIMIT_NOFILE, &before);
  none = before;
  none.rlim_cur = static_cast<rlim_t>(mine) + 1;  // all below are taken
  std::vector<int> filling;
  ::setrlimit(RLIMIT_NOFILE, &none);
  for (int d; (d = ::dup(0)) >= 0;) filling.push_back(d);
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(::connect(mine, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);  // the kernel has taken it
  {
    std::lock_guard lock(takes.m);
    CHECK(takes.taken.size() == 1);
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  CHECK(takes.until(2));
  for (const int d : filling) ::close(d);
  ::close(first);
  ::close(mine);
}
