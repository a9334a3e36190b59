// TensorFlow's facts about sessions on a server, as one list of cases for every way to such a session. A file runs them
// with its ways, of which each is a type that has a server and opens sessions on it:
//
//   TEST_CASE_TEMPLATE_INVOKE(session_facts, session_facts::direct, session_facts::over<gradus::local_messages>);
//   TEST_CASE_TEMPLATE_INVOKE(target_facts, session_facts::over<gradus::local_messages>);
#pragma once
#include <gradus/cpu/device.hpp>
#include <gradus/ops/elementwise.hpp>
#include <gradus/ops/matmul.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/run/session.hpp>
#include <gradus/session/master.hpp>
#include <gradus/session/queue/graph_queue.hpp>
#include <gradus/train/session_service.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../message.hpp"
#include "../sanitized.hpp"

namespace session_facts {
using namespace gradus;

inline server_def any_port() {
  return {.cluster = {{"worker", {"localhost:0"}}}, .job_name = "worker", .task_index = 0};
}
inline remote_session_options patient(double secs) {
  remote_session_options o;
  o.connect_secs = o.silence_secs = secs;
  return o;
}

// By messages, over a transport.
template <transport_policy Transport>
struct over {
  static constexpr std::size_t large = is_sanitized ? 1'000'000 : 30'000'000;  // floats of P4
  Transport by;
  server here;
  session_service<> there;

  explicit over(Transport t = {}, const server_def& def = any_port()) : by(std::move(t)), here(by, def), there(here) {}
  std::unique_ptr<base_session> open(graph& g, const or_none<session_options>& config = {}) const {
    remote_session_options o = patient(120);
    o.config = config;
    return std::make_unique<remote_session>(there.target(), g, by, o);
  }
  void reset(const std::vector<std::string>& containers) const { reset_server(there.target(), by, containers); }
};
// On the server's resources, without messages.
struct direct {
  static constexpr std::size_t large = 1'000'000;
  server here = server::create_local_server();

  std::unique_ptr<base_session> open(graph& g, const or_none<session_options>& config = {}) const {
    const auto by = config.has_value() ? in_process{here, config.value()} : in_process{here};
    return by.sessions(here.target(), sessions_of(g))();
  }
  void reset(const std::vector<std::string>& containers) const { here.reset(containers); }
};

struct counting {
  graph g;
  value v = g.variable("v", {}, {.init = ones}), add = assign_add(v, g.constant(1.0));
};
// An empty queue of the server, as an object too.
struct empty_queue {
  graph g;
  graph_queue q{g, make_queue_spec(queue_kind::fifo, 8, {float32}, {.shapes = {{}}, .name = "q"})};
  value x = g.placeholder("x", {}), put = q.enqueue({x}), got = q.dequeue()[0], size = q.size();
  session<cpu<fast>, shared_resources> looks;
  any_queue in = q.in(looks);

  explicit empty_queue(const server& here) : looks(g, shared_resources(here.resources())) {}
  // The error of a run that waits in the queue until `ends` is called.
  template <class Ends>
  std::string said_by(base_session& s, status kind, Ends ends, cancellation* stop = nullptr) {
    std::string said;
    std::thread waits([&] { said = message_of(kind, [&] { s.run(got, {}, {.stop = stop}); }); });
    while (in.pending().dequeues == 0) std::this_thread::yield();
    ends();
    waits.join();
    return said;
  }
};

}  // namespace session_facts

TEST_CASE_TEMPLATE_DEFINE("P3 a matrix product through the server's target, in two sessions", Way, session_facts_p3) {
  using namespace gradus;
  const Way at;
  graph g;
  const value a = g.placeholder("a", {batch, 2}), y = matmul(a, g.constant({1, 2, 3, 4}, {2, 2}));
  const auto s = at.open(g), t = at.open(g);
  for (auto* one : {s.get(), t.get()}) {
    const auto r = one->run(y, {{a, std::vector<float>{1, 1, 2, 0}}});
    CHECK(r.dims == extents{2, 2});
    CHECK(std::ranges::equal(r.template as<float>(), std::vector<float>{4, 6, 2, 4}));
  }
  s->close();
  CHECK_THROWS_WITH_AS(s->run(y, {{a, std::vector<float>{1, 1}}}),
                       "run: the session is closed (the session was closed); make another one", failed_precondition);
  CHECK(t->run(y, {{a, std::vector<float>{1, 1}}}).template as<float>()[1] == 6);
}

TEST_CASE_TEMPLATE_DEFINE("P4 a feed, a fetch and a constant of 120 MB", Way, session_facts_p4) {
  using namespace gradus;
  const Way at;
  graph g;
  const value x = g.placeholder("x", {batch}), twice = x + x;
  const std::vector<double> many(Way::large / 4, 0.5);  // two words each, as a constant holds them
  const value c = g.constant(std::span<const double>(many), {static_cast<int>(many.size())}, float64);
  const auto s = at.open(g);
  std::vector<float> fed(Way::large);
  for (std::size_t i = 0; i < fed.size(); ++i) fed[i] = static_cast<float>(i % 1000);
  const auto r = s->run(twice, {{x, fed}});
  REQUIRE(r.size() == fed.size());
  const auto got = r.template as<float>();
  bool same = true;
  for (std::size_t i = 0; i < fed.size(); ++i) same = same && got[i] == 2 * fed[i];
  CHECK(same);
  CHECK(s->run(c).template as<double>()[many.size() - 1] == 0.5);
}

TEST_CASE_TEMPLATE_DEFINE("P5 closing a session, and stopping its server, cancel its blocked dequeue", Way,
                          session_facts_p5) {
  using namespace gradus;
  Way at;
  session_facts::empty_queue m(at.here);
  const auto s = at.open(m.g), other = at.open(m.g);
  CHECK(says(m.said_by(*s, status::cancelled, [&] { s->close(); }), "the session was closed"));
  CHECK(other->run(m.size).template as<std::int32_t>()[0] == 0);
  CHECK(says(m.said_by(*other, status::cancelled, [&] { at.here.stop(); }), "was stopped"));
  CHECK_THROWS_AS(other->run(m.size), error);
  CHECK_THROWS_AS(at.open(m.g), error);
}

TEST_CASE_TEMPLATE_DEFINE("P8 a run times out, or is stopped, and takes nothing from its queue", Way,
                          session_facts_p8) {
  using namespace gradus;
  const Way at;
  session_facts::empty_queue m(at.here);
  const auto s = at.open(m.g);
  CHECK_THROWS_AS(s->run(m.got, {}, {.timeout_secs = 0}), deadline_exceeded);
  CHECK_THROWS_AS(s->run(m.got, {}, {.timeout_secs = 0.05}), deadline_exceeded);
  cancellation stop;
  CHECK(says(m.said_by(
                 *s, status::aborted, [&] { stop.cancel("enough", status::aborted); }, &stop),
             "enough"));
  s->run(m.put, {{m.x, std::vector<float>{2}}});
  CHECK(s->run(m.size).template as<std::int32_t>()[0] == 1);
  CHECK(s->run(m.got).template as<float>()[0] == 2);
}

TEST_CASE_TEMPLATE_DEFINE("P9 sessions on a server share variables by name, from several threads; isolated ones do not",
                          Way, session_facts_p9) {
  using namespace gradus;
  const Way at;
  session_facts::counting a, b, c;
  const auto s = at.open(a.g), t = at.open(b.g);
  s->initialize();
  s->run(a.add);
  CHECK(t->run(b.v).template as<float>()[0] == 2);
  CHECK(at.here.resources().is_variable_initialized("v"));
  const auto own = at.open(c.g, session_options{.isolate_session_state = true});
  CHECK_FALSE(own->is_variable_initialized("v"));
  CHECK_THROWS_AS(own->run(c.v), failed_precondition);
  std::vector<std::thread> threads;
  for (auto* one : {s.get(), t.get(), s.get()})
    threads.emplace_back([&, one] {
      for (int i = 0; i < 30; ++i) one->run(one == s.get() ? a.add : b.add);
    });
  for (auto& one : threads) one.join();
  CHECK(s->run(a.v).template as<float>()[0] == 92);
}

TEST_CASE_TEMPLATE_DEFINE("P10 a reset closes the sessions, and takes the values of its containers", Way,
                          session_facts_p10) {
  using namespace gradus;
  const Way at;
  session_facts::counting a;
  const auto s = at.open(a.g);
  s->initialize();
  at.reset({"other"});
  CHECK_THROWS_AS(s->run(a.v), aborted);
  const auto again = at.open(a.g);
  CHECK(again->run(a.v).template as<float>()[0] == 1);
  at.reset({});
  CHECK_FALSE(at.open(a.g)->is_variable_initialized("v"));
}

// Of transports alone.
TEST_CASE_TEMPLATE_DEFINE(
    "P6 an address without a port; P7 a port in use: errors, no hang; P10 an unknown target: not_found, no server: "
    "deadline_exceeded",
    Way, target_facts) {
  using namespace gradus;
  const Way at;
  const auto by = at.by;
  const std::string protocol(decltype(at.by)::protocol);
  graph g;
  g.placeholder("x", {});
  CHECK(says(message_of(status::invalid_argument, [&] { remote_session(text(protocol, "://localhost"), g, by); }),
             "port"));
  const std::string target = at.there.target();
  CHECK((target.starts_with(text(protocol, "://localhost:")) && !target.ends_with(":0")));
  const server second(by, {.cluster = {{"worker", {target.substr(protocol.size() + 3)}}}, .job_name = "worker"});
  CHECK(says(message_of(status::unavailable, [&] { session_service{second}; }), "in use"));
  CHECK(says(message_of(status::not_found, [&] { reset_server("nonexistent", by); }),
             text("there is no server \"nonexistent\": expected ", protocol, "://host:port")));
  const std::string nobody = text(protocol, "://localhost:1");
  const std::string said =
      message_of(status::deadline_exceeded, [&] { reset_server(nobody, by, {}, session_facts::patient(0.3)); });
  CHECK(says(said, nobody));
  CHECK(says(said, "is it started"));
}

// All of them for these ways.
#define SESSION_FACTS(...)                                  \
  TEST_CASE_TEMPLATE_INVOKE(session_facts_p3, __VA_ARGS__); \
  TEST_CASE_TEMPLATE_INVOKE(session_facts_p4, __VA_ARGS__); \
  TEST_CASE_TEMPLATE_INVOKE(session_facts_p5, __VA_ARGS__); \
  TEST_CASE_TEMPLATE_INVOKE(session_facts_p8, __VA_ARGS__); \
  TEST_CASE_TEMPLATE_INVOKE(session_facts_p9, __VA_ARGS__); \
  TEST_CASE_TEMPLATE_INVOKE(session_facts_p10, __VA_ARGS__)
