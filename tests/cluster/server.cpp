#include <gradus/cluster/server.hpp>

#include <doctest/doctest.h>

#include <latch>
#include <thread>

using namespace gradus;

namespace {
const cluster_spec cluster{{"ps", {"ps0:2222"}}, {"worker", {"w0:2222", "w1:2223"}}};
}

TEST_CASE("server: who it is") {
  const server s({.cluster = cluster, .job_name = "worker", .task_index = 1});
  CHECK(s.target() == "in_process://w1:2223");
  CHECK(s.is_running());
  CHECK(s.def().protocol == "in_process");
  CHECK(s.def().cluster == cluster);
  CHECK(server({.cluster = cluster, .job_name = "ps"}).target() == "in_process://ps0:2222");
  CHECK(server(server::local_def()).target() == "in_process://localhost:0");
}

TEST_CASE("server: made, running, stopped") {
  server s({.cluster = cluster, .job_name = "ps"}, false);
  CHECK_FALSE(s.is_running());
  CHECK_THROWS_WITH_AS(s.join(), "the server \"in_process://ps0:2222\" was not started", failed_precondition);
  s.start();
  s.start();
  CHECK(s.is_running());
  s.stop();
  s.stop();
  CHECK_FALSE(s.is_running());
  s.join();
  CHECK_THROWS_WITH_AS(s.start(), "the server \"in_process://ps0:2222\" was stopped and cannot start again",
                       failed_precondition);
}

TEST_CASE("server: join holds until somebody stops it") {
  server s(server::local_def());
  std::latch waiting(1);
  bool stopped_before = true;
  std::thread ps([&] {
    stopped_before = !s.is_running();
    waiting.count_down();
    s.join();
  });
  waiting.wait();
  CHECK_FALSE(stopped_before);
  s.stop();
  ps.join();
}

TEST_CASE("server: refusals") {
  CHECK_THROWS_WITH_AS(server({.cluster = cluster, .job_name = "ps", .protocol = "grpc"}),
                       doctest::Contains("the protocol \"grpc\" takes a transport, and this server has none"),
                       unimplemented);
  CHECK_THROWS_AS(server({.cluster = cluster}), invalid_argument);
  CHECK_THROWS_AS(server({.cluster = cluster, .job_name = "worker", .task_index = 2}), invalid_argument);
}
