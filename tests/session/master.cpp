#include <gradus/session/master.hpp>

#include <doctest/doctest.h>

using namespace gradus;

namespace {

struct named_server {
  std::string name;
  bool running = true;
  std::string target() const { return name; }
  bool is_running() const { return running; }
};
static_assert(reachable<named_server>);

// A session is whatever a policy gives; here it tells where it is.
struct here {
  int operator()() const { return 1; }
};
struct everywhere {
  using policy_for = kind::connection;
  template <class OpenHere>
  int connect(const master& m, OpenHere&&) const {
    return m.port;
  }
};
static_assert(connect_policy<in_process<>, here>);
static_assert(connect_policy<in_process<named_server>, here>);
static_assert(connect_policy<everywhere, here>);
static_assert(!connect_policy<here, here>);

// Kept where it is made: connect must not ask to move it.
struct pinned {
  int n;
  explicit pinned(int i) : n(i) {}
  pinned(const pinned&) = delete;
};

}  // namespace

TEST_CASE("master: the forms") {
  for (const char* s : {"", "local"}) {
    CHECK(parse_master(s).is_this_process());
    CHECK(parse_master(s).text == s);
  }
  const master m = parse_master("grpc://worker0.example.com:2222");
  CHECK_FALSE(m.is_this_process());
  CHECK(m.protocol == "grpc");
  CHECK(m.host == "worker0.example.com");
  CHECK(m.port == 2222);
  CHECK(m.text == "grpc://worker0.example.com:2222");
  CHECK(parse_master("grpc://[::1]:2222").host == "[::1]");
  CHECK(parse_master("in_process://localhost:0").protocol == "in_process");
  CHECK(parse_master("grpc+verbs://h:65535").port == 65535);
}

TEST_CASE("master: what is none") {
  for (const char* s : {"grpc",
                        "grpc:",
                        "grpc://",
                        "grpc://host",
                        "grpc://host:",
                        "grpc://:1",
                        "grpc://host:port",
                        "grpc://host:65536",
                        "grpc://host:-1",
                        "grpc://host:1x",
                        "grpc://host: 1",
                        "grpc://a b:1",
                        "grpc://::1:2222",
                        "grpc://[]:1",
                        "grpc://a:1/x:2",
                        "grpc://a:1,b:2",
                        "://h:1",
                        "GRPC://h:1",
                        "Local",
                        " ",
                        "local ",
                        "localhost:2222",
                        "grpc://h:99999999999999999999"}) {
    CAPTURE(s);
    CHECK_THROWS_WITH_AS(parse_master(s), doctest::Contains("is no master: expected '', 'local' or"), invalid_argument);
  }
}

TEST_CASE("in_process: '' and 'local' open a session here, without a move") {
  for (const char* s : {"", "local"}) {
    const auto made = in_process{}.connect(parse_master(s), [] { return pinned(7); });
    CHECK(made.n == 7);
  }
}

TEST_CASE("in_process: its server's target, while the server runs") {
  named_server server{"in_process://worker0:2222"};
  const in_process policy{server};
  CHECK(policy.connect(parse_master(server.target()), here{}) == 1);
  CHECK(policy.connect(parse_master(""), here{}) == 1);
  server.running = false;
  CHECK_THROWS_WITH_AS(policy.connect(parse_master(server.target()), here{}),
                       "the server \"in_process://worker0:2222\" does not run: start() it, and connect before it is "
                       "stopped",
                       unavailable);
}

TEST_CASE("in_process: the rest says what is missing") {
  const named_server server{"in_process://worker0:2222"};
  CHECK_THROWS_WITH_AS(in_process{server}.connect(parse_master("grpc://worker1:2222"), here{}),
                       "\"grpc://worker1:2222\" takes a connect policy that speaks grpc, and none was given: the "
                       "connect policy in_process reaches '', 'local' and its server \"in_process://worker0:2222\"",
                       unimplemented);
  CHECK_THROWS_WITH_AS(in_process{}.connect(parse_master("grpc://worker1:2222"), here{}),
                       doctest::Contains("in_process reaches '' and 'local'"), unimplemented);
  CHECK_THROWS_WITH_AS(in_process{}.connect(parse_master("in_process://worker0:2222"), here{}),
                       doctest::Contains("give it the server, in_process{server}"), unavailable);
  CHECK_THROWS_AS(in_process{server}.connect(parse_master("in_process://worker1:2222"), here{}), unavailable);
}
