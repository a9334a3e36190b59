// Sessions over gRPC: TensorFlow's facts about servers and their targets.
// one thread: its many are gRPC's, whose own locks no sanitizer sees; cluster/session_host.cpp has ours
// needs: grpc
// without sanitizers: gRPC's name resolution leaks ten bytes; cluster/remote_session.cpp has what is ours
// costs: 300
#include <gradus/cluster/grpc.hpp>
#include <gradus/ops/elementwise.hpp>
#include <gradus/ops/matmul.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/train/session_service.hpp>

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include "../message.hpp"

using namespace gradus;

namespace {
server_def any_port() { return {.cluster = {{"worker", {"localhost:0"}}}, .job_name = "worker", .task_index = 0}; }
remote_session_options patient(double secs) {
  remote_session_options o;
  o.connect_secs = o.silence_secs = secs;
  return o;
}
}  // namespace

TEST_CASE("P3 a matrix product through the server's target, two sessions on it; port 0 is chosen, and in target") {
  const server here(gradus::grpc{}, any_port());
  const session_service there{here};
  CHECK(there.target().starts_with("grpc://localhost:"));
  CHECK(there.target() != "grpc://localhost:0");
  graph g;
  const value a = g.placeholder("a", {batch, 2}), y = matmul(a, g.constant({1, 2, 3, 4}, {2, 2}));
  remote_session s(there.target(), g, gradus::grpc{}), t(there.target(), g, gradus::grpc{});
  for (auto* one : {&s, &t}) CHECK(one->run(y, {{a, std::vector<float>{1, 1}}}).as<float>()[1] == 6);
}

TEST_CASE("P4 a feed, a fetch and a constant of 120 MB") {
  const server here(gradus::grpc{}, any_port());
  const session_service there{here};
  graph g;
  const value x = g.placeholder("x", {batch}), twice = x + x;
  const std::vector<double> many(7'500'000, 0.5);  // two words each, as a constant holds them
  const value c = g.constant(std::span<const double>(many), {7'500'000}, float64);
  remote_session s(there.target(), g, gradus::grpc{}, patient(120));
  std::vector<float> large(30'000'000);
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<float>(i % 1000);
  const auto r = s.run(twice, {{x, large}});
  REQUIRE(r.size() == large.size());
  bool same = true;
  for (std::size_t i = 0; i < large.size(); ++i) same = same && r.as<float>()[i] == 2 * large[i];
  CHECK(same);
  CHECK(s.run(c).as<double>()[7'499'999] == 0.5);
}

TEST_CASE("P6 an address without a port; P7 a port in use: errors, no hang; P10 no server: deadline_exceeded") {
  graph g;
  g.placeholder("x", {});
  CHECK(says(message_of(status::invalid_argument, [&] { remote_session("grpc://localhost", g, gradus::grpc{}); }),
             "port"));
  const server here(gradus::grpc{}, any_port());
  const session_service there{here};
  const std::string address = there.target().substr(7);
  const server second(gradus::grpc{}, {.cluster = {{"worker", {address}}}, .job_name = "worker", .task_index = 0});
  CHECK(says(message_of(status::unavailable, [&] { session_service{second}; }), "in use"));
  const std::string said = message_of(status::deadline_exceeded,
                                      [&] { reset_server("grpc://localhost:1", gradus::grpc{}, {}, patient(0.3)); });
  CHECK(says(said, "grpc://localhost:1"));
  CHECK(says(said, "is it started"));
}

TEST_CASE("P5 closing a session cancels its blocked dequeue; P8 a run times out; P9 variables are shared by name") {
  const server here(gradus::grpc{}, any_port());
  const session_service there{here};
  graph g, other;
  graph_queue q(g, make_queue_spec(queue_kind::fifo, 8, {float32}, {.shapes = {{}}, .name = "q"}));
  const value got = q.dequeue()[0];
  const value v = g.variable("v", {}, {.init = ones}), add = assign_add(v, g.constant(1.0));
  const value w = other.variable("v", {}, {.init = ones});
  remote_session s(there.target(), g, gradus::grpc{}), t(there.target(), other, gradus::grpc{});
  s.initialize();
  s.run(add);
  CHECK(t.run(w).as<float>()[0] == 2);
  CHECK_THROWS_AS(s.run(got, {}, {.timeout_secs = 0.05}), deadline_exceeded);
  std::thread waits([&] { CHECK_THROWS_AS(s.run(got), error); });
  s.close();
  waits.join();
}
