// costs: 200
// A program that serves sessions: which ops it runs, what it refuses, and how managers reach it.
#include <gradus/cluster/local_messages.hpp>
#include <gradus/ops/matmul.hpp>
#include <gradus/ops/reduce.hpp>
#include <gradus/run/optimizer.hpp>
#include <gradus/session/session_manager.hpp>
#include <gradus/train/session_service.hpp>
#include <gradus/update/rules/gradient_descent.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "../cluster/session_ends.hpp"
#include "../message.hpp"

using namespace session_ends;

TEST_CASE("errors of the server come back as they are, and ops that it lacks are named when they are needed") {
  serving at;
  graph g;
  const value x = g.placeholder("x", {batch, 3});
  const value w = g.variable("w", {3, 1}), y = matmul(x, w), loss = reduce_mean(y * y);
  optimizer opt(gradient_descent{0.1});
  const value train = opt.minimize(loss);
  remote_session s(target, g, at.from("one"), quick());
  const std::vector<float> data{1, 2, 3, 4, 5, 6};
  CHECK(says(message_of(status::failed_precondition, [&] { s.run(y, {{x, data}}); }), "\"w\""));
  s.initialize(1);
  CHECK(s.run(y, {{x, data}}).dims == extents{2, 1});
  CHECK(message_of(status::invalid_argument, [&] { s.run(y); }) ==
        "placeholder \"x\" is needed and was not fed: give {\"x\", data}");
  CHECK(says(message_of(status::not_found, [&] { s.run("nothing"); }), "the graph has no node named \"nothing\""));
  const std::string said = message_of(status::unimplemented, [&] { s.run(train, {{x, data}}); });
  CHECK(says(said, "the server \"loop://w0:1\" has no kernel for "));
  CHECK(says(said, "UpdateVariable"));
  CHECK(says(
      said,
      "a session of the server's own process has the connect policy in_process{server}, a trainer connected{server}"));
  graph other;
  other.variable("w", {4, 1});
  CHECK(says(message_of(status::invalid_argument, [&] { remote_session(target, other, at.from("two"), quick()); }),
             "variable \"w\" is float32 [4, 1] in this graph and float32 [3, 1]"));
  CHECK(says(message_of(status::not_found, [&] { remote_session("grpc://w0:1", g, at.from("three"), quick()); }),
             "expected loop://host:port"));
  auto soon = quick();
  soon.connect_secs = 0.05;
  CHECK(
      says(message_of(status::deadline_exceeded, [&] { remote_session("loop://nobody:1", g, at.from("four"), soon); }),
           "is it started, and does it run a session_service?"));
  const server alone = server::create_local_server();
  CHECK(says(message_of(status::failed_precondition, [&] { session_service{alone}; }), "has no transport"));
}

TEST_CASE("a session manager and a monitored session work on a server by the connect policy remote_sessions") {
  serving at;
  counting k;
  const remote_sessions reach{at.from("one"), quick()};
  session_manager manager({.ready_op = report_uninitialized_variables(k.g)}, {});
  const auto made =
      manager.prepare_session(reach.sessions(target, sessions_of(k.g)), {.init_op = global_variables_initializer(k.g)});
  made->run(k.add);
  CHECK(made->run(k.v).as<float>()[0] == 1);
  CHECK(at.here.resources().is_variable_initialized("v"));
}

TEST_CASE(
    "the master 'local' is this process's server by messages, and a session of this process by other transports") {
  serving at;
  counting k;
  const server here(local_messages{}, server::local_def());
  std::optional<session_service<>> there(std::in_place, here);
  auto o = quick();
  const remote_sessions reach{local_messages{}, o};
  const remote_sessions elsewhere{at.from("one"), o};
  const auto made = [&](const auto& by, const char* master) { return by.sessions(master, sessions_of(k.g))(); };
  const auto s = made(reach, "local"), t = made(reach, there->target().c_str());
  CHECK(there->sessions() == 2);
  s->initialize();
  s->run(k.add);
  CHECK(t->run(k.v).as<float>()[0] == 1);
  CHECK_FALSE(made(reach, "")->is_variable_initialized("v"));
  CHECK_FALSE(made(elsewhere, "local")->is_variable_initialized("v"));
  CHECK(there->sessions() == 2);
  // The server is as it was for sessions without messages.
  CHECK(made(in_process{here}, here.target().c_str())->is_variable_initialized("v"));
  CHECK_FALSE(made(in_process{here}, "local")->is_variable_initialized("v"));

  const server second(local_messages{}, server::local_def());
  std::optional<session_service<>> other(std::in_place, second);
  const std::string several = message_of(status::failed_precondition, [&] { made(reach, "local"); });
  CHECK(says(several, text("2 servers of this process listen there: ", there->target(), ", ", other->target())));
  CHECK(says(several, "connect to one of these targets"));
  CHECK(says(message_of(status::failed_precondition, [&] { made(reach, here.target().c_str()); }),
             "the server \"local://localhost:0\" refuses this client: 2 servers"));
  there.reset(), other.reset();
  o.connect_secs = 0.05;
  const std::string none = message_of(status::deadline_exceeded, [&] {
    made(remote_sessions{local_messages{}, o}, "local");
  });
  CHECK(says(none, "no server of this process listens there; make one with the transport local_messages{}"));
}

TEST_CASE("every op that a header declares can be run by a server, but for three of training") {
  const std::regex declared("\\{+\"([A-Z][A-Za-z0-9]*)\", *-?[0-9]");
  std::string lacking;
  std::size_t known = 0;
  for (const auto& e : std::filesystem::directory_iterator(GRADUS_SOURCE_DIR "/include/gradus/ops")) {
    if (e.path().filename() == "pooled_conv.hpp") continue;  // a pass makes these, behind what a session sends
    if (e.path().filename() == "frozen.hpp") continue;       // refused: their weights are constants of a program
    std::ifstream in(e.path());
    const std::string words{std::istreambuf_iterator<char>(in), {}};
    for (std::sregex_iterator i(words.begin(), words.end(), declared), end; i != end; ++i) {
      const std::string name = (*i)[1];
      const bool has = detail::card_of_sessions(name) != nullptr || default_device::registry<>::named(name) != nullptr;
      known += has;
      if (!has) lacking += name + " ";
    }
  }
  CHECK(known > 80);
  CHECK(lacking == "Apply GlobalNorm LossScale ");
}
