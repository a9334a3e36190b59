// Sessions of a server in this process: chief and others side by side, by session managers, a supervisor, monitored
// sessions, which share its memory or reach it by messages. Time is turned by hand. (local_sessions.cpp has the facts
// that all ways to a session share.)
#include <gradus/cluster/local_messages.hpp>
#include <gradus/cluster/server.hpp>
#include <gradus/cpu/device.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/run/session.hpp>
#include <gradus/run/variable_ops.hpp>
#include <gradus/session/master.hpp>
#include <gradus/session/queue/graph_queue.hpp>
#include <gradus/session/session_manager.hpp>
#include <gradus/testing/hand_tasks.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/monitored_session.hpp>
#include <gradus/train/session_service.hpp>
#include <gradus/train/session_supervisor.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

using namespace gradus;

namespace {

template <class Error, class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "(nothing was refused)";
}
bool says(const std::string& message, const char* words) { return message.find(words) != std::string::npos; }
float scalar(base_session& s, const char* name) { return s.variable(name).as<float>()[0]; }

// A chief's graph with v, and a worker's graph with v and a local copy of it.
struct pair_of_graphs {
  graph chiefs, workers;
  value v0, v1, w1, add, ready_v, ready, local_init;
  pair_of_graphs() {
    const auto on_ps = chiefs.device("/job:ps");
    v0 = chiefs.variable("v", {}, {.init = ones});
    const auto on = workers.device("/job:ps");
    v1 = workers.variable("v", {}, {.init = ones});
    w1 = variable_from("w", v1, {.trainable = false, .local = true});
    add = assign_add(v1, workers.constant(1.0));
    ready_v = report_uninitialized_variables(workers, std::vector{v1});
    ready = report_uninitialized_variables(workers);
    local_init = local_variables_initializer(workers);
  }
};

// The two ways to a server of this process: a server, its master string, and the connect policy.
struct shared_memory {
  testing::hand_tasks hand;
  const server here{server::local_def(), true, hand.tasks()};
  const in_process<server> reach{here};
  std::string master() const { return here.target(); }
};
struct by_messages {
  testing::hand_tasks hand;
  const server here{local_messages{}, server::local_def(), hand.tasks()};
  const session_service<> there{here};
  const remote_sessions<local_messages> reach{local_messages{}, {.tasks = hand.tasks()}};
  static std::string master() { return "local"; }
};

}  // namespace

TEST_CASE_TEMPLATE(
    "S16 on one server, chief and worker as supervisors: the copy comes after v, and the chief sees the write", Way,
    shared_memory, by_messages) {
  const testing::temp_dir at;
  pair_of_graphs t;
  const Way way;
  const auto& [hand, here] = std::tie(way.hand, way.here);
  session_supervisor chief(t.chiefs, sessions_of(t.chiefs), {.logdir = std::string(at.path()), .connect = way.reach});
  session_supervisor worker(t.workers, sessions_of(t.workers),
                            {.ready_for_local_init_op = t.ready_v,
                             .is_chief = false,
                             .recovery_wait_secs = 1,
                             .connect = way.reach,
                             .tasks = hand.tasks()});
  std::shared_ptr<base_session> theirs;
  task_handle waiting =
      hand.tasks().start("a worker", "do without", [&] { theirs = worker.prepare_or_wait_for_session(way.master()); });
  hand.settle();
  CHECK(theirs == nullptr);  // nobody has initialized v
  {
    auto mine = chief.managed_session(way.master());
    hand.advance(1);
    waiting.join();
    REQUIRE(theirs != nullptr);
    CHECK(scalar(*theirs, "w") == 1);
    theirs->run(t.add);
    CHECK(mine.run(t.v0).template as<float>()[0] == 2);
    // Without the server's target a session has variables of its own.
    if constexpr (std::is_same_v<Way, shared_memory>) CHECK(&theirs->resources() == &here.resources());
    CHECK(here.resources().is_variable_initialized("v"));
    session alone{t.chiefs};
    CHECK(&alone.resources() != &here.resources());
  }
  worker.stop();
}

TEST_CASE_TEMPLATE("M10 wait_for_session: v is initialized by another session of the server, w by local init here", Way,
                   shared_memory, by_messages) {
  pair_of_graphs t;
  const Way way;
  const auto& [hand, reach] = std::tie(way.hand, way.reach);
  session_manager manager({.local_init_op = t.local_init,
                           .ready_op = t.ready,
                           .ready_for_local_init_op = t.ready_v,
                           .recovery_wait_secs = 1},
                          hand.tasks());
  std::unique_ptr<base_session> got;
  auto waiter = hand.tasks().start("a test", "do without", [&] {
    got = manager.wait_for_session(reach.sessions(way.master(), sessions_of(t.workers)), 100);
  });
  hand.advance(2);
  CHECK(got == nullptr);
  const auto chief = reach.sessions(way.master(), sessions_of(t.chiefs))();
  chief->initialize();
  hand.advance(1);
  waiter.join();
  REQUIRE(got != nullptr);
  CHECK(got->is_variable_initialized("v"));
  CHECK(scalar(*got, "w") == 1);
}

TEST_CASE("P9 sessions of a server share variables by name, whatever their graphs; isolated ones do not") {
  pair_of_graphs t;
  const server here = server::create_local_server();
  const in_process reach{here};
  {
    const auto first = reach.sessions(here.target(), sessions_of(t.chiefs))();
    first->mutable_variable("v").mutable_as<float>()[0] = 7;
  }  // the value outlives the session
  const auto second = reach.sessions(here.target(), sessions_of(t.chiefs))();
  CHECK(second->run(t.v0).as<float>()[0] == 7);
  const auto other_graph = reach.sessions(here.target(), sessions_of(t.workers))();
  CHECK(other_graph->run(t.v1).as<float>()[0] == 7);
  other_graph->run(t.add);
  CHECK(second->run(t.v0).as<float>()[0] == 8);

  const auto isolated =
      in_process{here, {.isolate_session_state = true}}.sessions(here.target(), sessions_of(t.chiefs));
  const auto one = isolated(), two = isolated();
  CHECK(!one->is_variable_initialized("v"));
  one->mutable_variable("v").mutable_as<float>()[0] = 1;
  CHECK(!two->is_variable_initialized("v"));
  CHECK(second->run(t.v0).as<float>()[0] == 8);
  // A server's own settings are those of sessions that bring none.
  const server apart = server::create_local_server({.isolate_session_state = true});
  const auto open = in_process{apart}.sessions(apart.target(), sessions_of(t.chiefs));
  const auto three = open();
  three->initialize();
  CHECK(!open()->is_variable_initialized("v"));
  CHECK((three->is_variable_initialized("v") && !apart.resources().has("v")));
}

TEST_CASE("P5 closing a session cancels what waits in it; so does a server that stops, for each of its sessions") {
  for (const bool stops : {false, true}) {
    for (const bool isolates : {false, true}) {
      CAPTURE(stops);
      CAPTURE(isolates);
      testing::hand_tasks hand;
      graph g;
      graph_queue q(g, make_queue_spec(queue_kind::fifo, 10, {float32}, {.shapes = {{}}}));
      const value one = q.dequeue(), size = q.size();
      server here(server::local_def(), true, hand.tasks());
      const auto open = in_process{here, {.isolate_session_state = isolates}}.sessions(here.target(), sessions_of(g));
      const auto waits = open(), other = open();
      std::string why;
      auto waiter =
          hand.tasks().start("a test", "do without", [&] { why = refusal<cancelled>([&] { waits->run(one); }); });
      hand.settle();
      CHECK(why.empty());
      if (stops)
        here.stop();
      else
        waits->close();
      hand.settle();
      waiter.join();
      CHECK(says(why, stops ? "the server \"in_process://localhost:0\" was stopped" : "the session was closed"));
      CHECK(says(refusal<failed_precondition>([&] { waits->run(size); }), "the session is closed"));
      CHECK(other->is_closed() == stops);
    }
  }
}

TEST_CASE("a server that is reset has no values, and its sessions are closed; a container that holds nothing stays") {
  pair_of_graphs t;
  const server here = server::create_local_server();
  const auto open = in_process{here}.sessions(here.target(), sessions_of(t.chiefs));
  const auto isolated =
      in_process{here, {.isolate_session_state = true}}.sessions(here.target(), sessions_of(t.chiefs));
  auto sess = open(), own = isolated();
  sess->initialize(), own->initialize();
  here.reset({"other"});
  CHECK((sess->is_closed() && own->is_closed()));
  CHECK(says(refusal<aborted>([&] { sess->run(t.v0); }), "was reset"));
  sess = open();
  CHECK(sess->is_variable_initialized("v"));
  here.reset({"localhost"});
  sess = open();
  CHECK(!sess->is_variable_initialized("v"));
  sess->initialize();
  CHECK(sess->run(t.v0).as<float>()[0] == 1);
  here.reset();
  CHECK(!open()->is_variable_initialized("v"));
}

TEST_CASE("a server that does not run, another server's target, and functions that cannot share") {
  pair_of_graphs t;
  server here = server::create_local_server({}, false);
  const in_process reach{here};
  const auto open = reach.sessions(here.target(), sessions_of(t.chiefs));
  CHECK(says(refusal<unavailable>([&] { open(); }), "does not run: start() it"));
  here.start();
  CHECK(!open()->is_closed());
  const server other = server::create_local_server();
  CHECK(other.target() != here.target());
  CHECK(says(refusal<unavailable>([&] { reach.sessions(other.target(), sessions_of(t.chiefs))(); }),
             "is no server that this program knows"));
  const session_factory alone = [&t]() -> std::unique_ptr<base_session> {
    return std::make_unique<session<>>(t.chiefs);
  };
  CHECK(says(refusal<invalid_argument>([&] { reach.sessions(here.target(), alone)(); }),
             "a session is to use a server's variables"));
  session_resources box;
  const session_factory elsewhere = sessions_of(t.chiefs, shared_resources(box));
  CHECK(says(refusal<invalid_argument>([&] { reach.sessions(here.target(), elsewhere)(); }), "have a policy"));
  CHECK(&elsewhere()->resources() == &box);
  CHECK(&reach.sessions("", alone)()->resources() != &here.resources());
  here.stop();
  CHECK(says(refusal<failed_precondition>([&] { open(); }), "was stopped; make another one"));
}

TEST_CASE("a session may outlive its server: it is closed, and its variables are there to read") {
  pair_of_graphs t;
  std::unique_ptr<base_session> left;
  {
    const server here = server::create_local_server();
    left = in_process{here}.sessions(here.target(), sessions_of(t.chiefs))();
    left->initialize();
  }
  CHECK(left->is_closed());
  CHECK(scalar(*left, "v") == 1);
}

TEST_CASE_TEMPLATE("chief and worker as monitored sessions of one server", Way, shared_memory, by_messages) {
  const testing::temp_dir at;
  pair_of_graphs t;
  const Way way;
  const auto& [hand, here, reach] = std::tie(way.hand, way.here, way.reach);
  scaffold chiefs_parts, workers_parts;
  chief_session_creator chief(reach.sessions(way.master(), sessions_of(t.chiefs)), t.chiefs, chiefs_parts,
                              {.checkpoint_dir = std::string(at.path())}, hand.tasks());
  worker_session_creator worker(reach.sessions(way.master(), sessions_of(t.workers)), t.workers, workers_parts,
                                {.max_wait_secs = 100, .recovery_wait_secs = 1}, hand.tasks());
  std::unique_ptr<base_session> theirs;
  auto waiter = hand.tasks().start("a worker", "do without", [&] { theirs = worker.create_session(); });
  hand.advance(1);
  CHECK(theirs == nullptr);
  monitored_session mine(chief);
  hand.advance(1);
  waiter.join();
  REQUIRE(theirs != nullptr);
  theirs->run(t.add);
  CHECK(mine.run(t.v0).template as<float>()[0] == 2);
  CHECK(scalar(*theirs, "w") == 1);
  // The variables are taken away: the chief's next run is made by another session, which has initialized them again.
  here.reset();
  CHECK(mine.run(t.v0).template as<float>()[0] == 1);
  CHECK(says(refusal<aborted>([&] { theirs->run(t.add); }), "was reset"));
}
