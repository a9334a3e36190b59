#include <gradus/train/session_supervisor.hpp>

#include <gradus/codec/state_file.hpp>
#include <gradus/cpu/device.hpp>
#include <gradus/cpu/host.hpp>
#include <gradus/ops/host.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/run/session.hpp>
#include <gradus/summary/graph.hpp>
#include <gradus/summary/reader.hpp>
#include <gradus/testing/hand_tasks.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "run_files.hpp"

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
bool says(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

session_supervisor_options in_step() { return {}; }
session_supervisor_options on_threads() { return {.services = service_place::threads}; }

struct folder {
  testing::temp_dir dir;
  std::string path() const { return dir.path(); }
  std::vector<std::string> event_files() const {
    std::vector<std::string> found;
    for (const auto& f : std::filesystem::directory_iterator(path()))
      if (f.path().filename().string().find(event_file_prefix) == 0) found.push_back(f.path().string());
    std::sort(found.begin(), found.end());
    return found;
  }
  static std::vector<event> events_of(const std::string& file) {
    std::vector<event> all;
    summary_iterator each(file);
    for (const auto& e : each) all.push_back(e);
    return all;
  }
  std::vector<event> events() const {
    const auto files = event_files();
    REQUIRE(files.size() == 1);
    return events_of(files[0]);
  }
  std::vector<std::string> checkpoints() const {
    const auto state = read_state_file(posix{}, path());
    return state ? state->all : std::vector<std::string>{};
  }
};
// "version graph meta summary start@123 stop": what a file tells, in a line.
std::string told(const std::vector<event>& all) {
  std::string line;
  for (const event& e : all) {
    switch (e.what) {
    case event_kind::file_version: line += "version "; break;
    case event_kind::graph_def: line += "graph "; break;
    case event_kind::meta_graph_def: line += "meta "; break;
    case event_kind::summary:
      line += e.values.empty() ? std::string("nothing") : e.values[0].tag;
      if (e.step != 0) line += text("@", e.step);
      line += ' ';
      break;
    case event_kind::session_log:
      line += e.log.status == session_log_status::start  ? "START"
              : e.log.status == session_log_status::stop ? "STOP"
                                                         : "CHECKPOINT";
      if (e.step != 0) line += text("@", e.step);
      line += ' ';
      break;
    default: line += "? "; break;
    }
  }
  if (!line.empty()) line.pop_back();
  return line;
}
std::vector<std::byte> graph_bytes(const graph& g) {
  std::vector<std::byte> bytes;
  encode_graph_def(bytes, to_graph_def(g));
  return bytes;
}

// A constant, a summary of it, and a queue that ends.
struct model {
  folder at;
  graph g;
  value c = g.constant({1, 2, 3}, {3});
  graph_summary shown{{"s", g.constant(2.5)}};
  session_supervisor_options in(session_supervisor_options o = {}) const {
    o.logdir = at.path();
    return o;
  }
};
float scalar(base_session& s, const char* name) { return s.variable(name).as<float>()[0]; }
}  // namespace

TEST_CASE("a session keeps the checkpoints that another supervisor has saved in the directory meanwhile") {
  folder at;
  graph g;
  create_global_step(g);
  const value add = assign_add(get_global_step(g), g.constant(1, int64));
  session_supervisor_options o = in_step();
  o.logdir = at.path(), o.save_model_secs = 0;
  const auto step = [&](session_supervisor& sv) {
    auto sess = sv.managed_session();  // saves when it ends
    sess.run(add);
  };
  session_supervisor first(g, sessions_of(g), o);
  step(first);
  {
    session_supervisor other(g, sessions_of(g), o);
    step(other), step(other);
  }
  step(first);
  CHECK(at.checkpoints().size() == 4);
}

TEST_CASE("so do a program's own saves by the supervisor's saver, where the supervisor saves nothing itself") {
  for (const bool managed : {true, false}) {
    folder at;
    graph g;
    create_global_step(g);
    const value add = assign_add(get_global_step(g), g.constant(1, int64));
    session_supervisor_options o = in_step();
    o.logdir = at.path(), o.save_model_secs = 0, o.save_on_stop = false;
    const auto step = [&](session_supervisor& sv) {
      const auto save = [&](base_session& s) {
        s.run(add);
        state_list list;
        s.remembers(list);
        sv.saver()->save(list, sv.save_path(), global_step(s, sv.global_step()));
      };
      if (managed)
        save(sv.managed_session().raw_session());
      else
        save(*sv.prepare_or_wait_for_session()), sv.stop();
    };
    session_supervisor first(g, sessions_of(g), o);
    step(first);
    {
      session_supervisor other(g, sessions_of(g), o);
      step(other), step(other);
    }
    step(first);
    CHECK(at.checkpoints().size() == 4);
  }
}

TEST_CASE("S1 prepare, run ten times, close, stop") {
  model m;
  session_supervisor sv(m.g, sessions_of(m.g), m.in());
  auto sess = sv.prepare_or_wait_for_session();
  for (int i = 0; i < 10; ++i) CHECK(sess->run(m.c).as<float>()[2] == 3);
  sess->close();
  sv.stop();
  CHECK(sv.should_stop());
}

TEST_CASE("S2 the end of a managed session makes should_stop true") {
  for (const auto& o : {in_step(), on_threads()}) {
    model m;
    session_supervisor sv(m.g, sessions_of(m.g), m.in(o));
    {
      auto sess = sv.managed_session();
      for (int i = 0; i < 10; ++i) sess.run(m.c);
      CHECK(!sv.should_stop());
    }
    CHECK(sv.should_stop());
  }
}

TEST_CASE("S3 an error in the block comes out of it unchanged; S4 an out_of_range does not") {
  for (const auto& o : {in_step(), on_threads()}) {
    model m;
    session_supervisor sv(m.g, sessions_of(m.g), m.in(o));
    const auto with = [&](auto body) {
      auto sess = sv.managed_session();
      sess.within([&] {
        sess.run(m.c);
        body();
      });
      CHECK(sess.raw_session().is_closed());
    };
    CHECK(refusal<std::logic_error>([&] { with([] { throw std::logic_error("failing here"); }); }) == "failing here");
    CHECK(sv.should_stop());
    CHECK(refusal<aborted>([&] { with([] { raise(status::aborted, "a peer has gone"); }); }) == "a peer has gone");
    with([] { raise(status::out_of_range, "the end"); });
    CHECK(sv.should_stop());
    // without `within`, the language passes the error through the block
    CHECK(refusal<std::logic_error>([&] {
            auto sess = sv.managed_session();
            throw std::logic_error("as it is");
          }) == "as it is");
  }
}

TEST_CASE("S5 two sessions write two event files; S6 or one, if the writer is kept open") {
  {
    model m;
    session_supervisor sv(m.g, sessions_of(m.g), m.in({.summary_op = none}));
    for (int i = 0; i < 2; ++i) {
      auto sess = sv.managed_session("", {.start_standard_services = false});
      sv.summary_computed(sess, m.shown.values(sess.run(m.shown.fetches())));
    }
    const auto files = m.at.event_files();
    REQUIRE(files.size() == 2);
    CHECK(told(folder::events_of(files[0])) == "version graph meta s STOP");
    CHECK(told(folder::events_of(files[1])) == "version graph meta s STOP");
  }
  model m;
  session_supervisor sv(m.g, sessions_of(m.g), m.in({.summary_op = none}));
  for (int i = 0; i < 2; ++i) {
    auto sess = sv.managed_session("", {.start_standard_services = false, .close_summary_writer = false});
    sv.summary_computed(sess, m.shown.values(sess.run(m.shown.fetches())));
  }
  sv.summary_writer()->flush();
  CHECK(told(m.at.events()) == "version graph meta s s");
  sv.stop();  // by hand
  CHECK(told(m.at.events()) == "version graph meta s s STOP");
}

TEST_CASE("S7 a finite number of epochs ends without an error, through one queue and through two") {
  for (const int queues : {1, 2})
    for (const auto& o : {in_step(), on_threads()}) {
      model m;
      const value epoch = m.g.variable("epoch", {}, {.init = zeros, .trainable = false, .local = true, .type = int64});
      graph_queue q(m.g, make_queue_spec(queue_kind::fifo, 2, {int64}, {.shapes = {{}}}));
      add_queue_runner(queue_runner(q, {q.enqueue({count_up_to(epoch, 3)})}));
      value out = q.dequeue();
      if (queues == 2) {
        graph_queue second(m.g, make_queue_spec(queue_kind::fifo, 10, {int64}, {.shapes = {{}}}));
        add_queue_runner(queue_runner(second, {second.enqueue({out})}));
        out = second.dequeue();
      }
      session_supervisor sv(m.g, sessions_of(m.g), m.in(o));
      std::int64_t sum = 0, taken = 0;
      {
        auto sess = sv.managed_session();
        sess.within([&] {
          while (!sv.should_stop()) sum += sess.run(out).as<std::int64_t>()[0], ++taken;
        });
      }
      CHECK((taken == 3 && sum == 0 + 1 + 2));
      CHECK(sv.should_stop());
    }
}

TEST_CASE("S7 a summary of what a queue gives: the runners begin before it") {
  for (const auto& o : {in_step(), on_threads()}) {
    model m;
    const value epoch = m.g.variable("epoch", {}, {.init = zeros, .trainable = false, .local = true, .type = int64});
    graph_queue q(m.g, make_queue_spec(queue_kind::fifo, 2, {int64}, {.shapes = {{}}}));
    add_queue_runner(queue_runner(q, {q.enqueue({count_up_to(epoch, 30)})}));
    const value out = q.dequeue();
    m.g.summary_scalar("out", cast(out, float32));
    session_supervisor sv(m.g, sessions_of(m.g), m.in(o));
    int taken = 0;
    {
      auto sess = sv.managed_session();
      sess.within([&] {
        while (!sv.should_stop()) sess.run(out), ++taken;
      });
    }
    CHECK(taken > 0);
  }
}

TEST_CASE("S8 an error of the main loop wins over queues that end") {
  model m;
  const value epoch = m.g.variable("epoch", {}, {.init = zeros, .trainable = false, .local = true, .type = int64});
  graph_queue q(m.g, make_queue_spec(queue_kind::fifo, 20, {int64}, {.shapes = {{}}}));
  add_queue_runner(queue_runner(q, {q.enqueue({count_up_to(epoch, 3)})}));
  const value out = q.dequeue();
  session_supervisor sv(m.g, sessions_of(m.g), m.in());
  CHECK(refusal<std::logic_error>([&] {
          auto sess = sv.managed_session();
          sess.within([&] {
            for (int i = 0; i < 3; ++i) sess.run(out);
            while (!q.in(sess.raw_session()).is_closed()) std::this_thread::yield();  // the runner has ended
            throw std::logic_error("fail the step");
          });
        }) == "fail the step");
}

TEST_CASE("S9 the chief's event file: version, the session's graph, summary, STOP") {
  model m;
  session_supervisor sv(m.g, sessions_of(m.g), m.in({.summary_op = none}));
  auto sess = sv.prepare_or_wait_for_session();
  sv.summary_computed(*sess, m.shown.values(sess->run(m.shown.fetches(), {})));
  sess->close();
  sv.stop();
  const auto all = m.at.events();
  CHECK(told(all) == "version graph meta s STOP");
  CHECK(all[1].bytes == graph_bytes(m.g));
  CHECK(all[3].values[0].simple_value == 2.5f);
  CHECK(!all[2].bytes.empty());
  std::ifstream text(m.at.path() + "/graph.pbtxt");
  std::stringstream content;
  content << text.rdbuf();
  CHECK(content.str() == to_pbtxt(to_graph_def(m.g)));
}

TEST_CASE("S10 not the chief: no summaries, no services, nothing to read back") {
  model m;
  session_resources box;
  session_supervisor chief(m.g, sessions_of(m.g, shared_resources(box)), m.in());
  session_supervisor sv(m.g, sessions_of(m.g, shared_resources(box)), m.in({.is_chief = false}));
  auto sess = sv.prepare_or_wait_for_session();
  CHECK(says(refusal<failed_precondition>([&] { sv.summary_computed(*sess, {}); }), "requires a summary writer"));
  CHECK(says(refusal<failed_precondition>([&] { sv.start_standard_services(sess); }), "Only chief supervisor"));
  CHECK((sv.save_path().empty() && sv.summary_writer() == nullptr && !sv.is_chief()));
  CHECK((sv.save_model_secs() == 0 && sv.save_summaries_secs() == 0));
  sv.stop();
  CHECK(m.at.event_files().size() == 1);  // the chief's
}

TEST_CASE("S11 no logdir: summary_computed requires a writer") {
  model m;
  session_supervisor sv(m.g, sessions_of(m.g));
  auto sess = sv.prepare_or_wait_for_session();
  CHECK(says(refusal<failed_precondition>([&] { sv.summary_computed(*sess, scalar_summary("s", 1)); }),
             "requires a summary writer"));
  CHECK(sv.start_standard_services(sess) == 0);
  sv.stop();
}

TEST_CASE("S12 a logdir and no summary_writer: checkpoints appear, summary_computed is refused") {
  for (const auto& o : {in_step(), on_threads()}) {
    model m;
    m.g.variable("x", {3}, {.init = zeros});
    auto with = m.in(o);
    with.summary_writer = none;
    session_supervisor sv(m.g, sessions_of(m.g), with);
    {
      auto sess = sv.managed_session();
      while (m.at.checkpoints().empty()) std::this_thread::yield();  // of the session that has begun
      CHECK(says(refusal<failed_precondition>([&] { sv.summary_computed(sess, scalar_summary("s", 1)); }),
                 "requires a summary writer"));
    }
    CHECK(m.at.event_files().empty());
  }
}

TEST_CASE("S13 no logdir, but a writer: the events are in its directory") {
  model m;
  session_supervisor sv(m.g, sessions_of(m.g),
                        {.summary_op = none, .summary_writer = std::make_shared<summary_writer<>>(m.at.path())});
  auto sess = sv.prepare_or_wait_for_session();
  sv.summary_computed(*sess, m.shown.values(sess->run(m.shown.fetches(), {})));
  sess->close();
  sv.stop();
  CHECK(told(m.at.events()) == "version graph meta s STOP");
  CHECK(m.at.checkpoints().empty());
}

TEST_CASE("S14 a session manager that is given is used") {
  model m;
  m.g.variable("v", {}, {.init = ones});
  const auto own =
      std::make_shared<const session_manager>(session_manager_options{.ready_op = report_uninitialized_variables(m.g)});
  session_supervisor sv(m.g, sessions_of(m.g), {.init_op = none, .manager = own});
  CHECK(&sv.session_manager() == own.get());
  CHECK(
      says(refusal<failed_precondition>([&] { sv.prepare_or_wait_for_session(); }), "was given"));  // no local_init_op
}

TEST_CASE("S15 init_op by default; none and an init_fn; init_feed_dict feeds placeholders that variables start from") {
  {
    model m;
    m.g.variable("v", {}, {.init = ones});
    session_supervisor sv(m.g, sessions_of(m.g), m.in());
    auto sess = sv.prepare_or_wait_for_session();
    CHECK(scalar(*sess, "v") == 1);
    CHECK(sv.init_op());
    sv.stop();
  }
  {
    model m;
    const value v = m.g.variable("v", {}, {.init = ones}), init = variables_initializer(m.g, std::vector{v});
    session_supervisor sv(m.g, sessions_of(m.g),
                          m.in({.init_op = none, .init_fn = [&](base_session& s) { s.run(init); }}));
    auto sess = sv.prepare_or_wait_for_session();
    CHECK(scalar(*sess, "v") == 1);
    CHECK(!sv.init_op());
    sv.stop();
  }
  model m;
  const value p = m.g.placeholder("p", {2}), v = variable_from("v", p);
  const std::vector<float> data{3, 4};
  session_supervisor sv(m.g, sessions_of(m.g), m.in({.init_feed_dict = {{p, data}}}));
  auto sess = sv.prepare_or_wait_for_session();
  CHECK(sess->run(v).as<float>()[1] == 4);
  sv.stop();
}

namespace {
// Chief and worker with graphs of their own, on the same resources: v, and the worker's copy of it.
struct pair_of_tasks {
  folder at;
  session_resources box;
  graph chiefs, workers;
  value v0, v1, w1, add, ready;
  static session_supervisor_options worker_options(value ready) {
    return {.ready_for_local_init_op = ready, .is_chief = false, .recovery_wait_secs = 1};
  }
  pair_of_tasks() {
    {
      const auto on = chiefs.device("/job:ps");
      v0 = chiefs.variable("v", {}, {.init = ones});
    }
    const auto on = workers.device("/job:ps");
    v1 = workers.variable("v", {}, {.init = ones});
    w1 = variable_from("w", v1, {.trainable = false, .local = true});
    add = assign_add(v1, workers.constant(1.0));
    ready = report_uninitialized_variables(workers, std::vector{v1});
  }
};
}  // namespace

TEST_CASE(
    "S16 chief and worker: the local copy is made after v; the worker's assign_add is seen by the chief's session") {
  pair_of_tasks t;
  testing::hand_tasks hand;
  session_supervisor chief(t.chiefs, sessions_of(t.chiefs, shared_resources(t.box)), {.logdir = t.at.path()});
  auto options = pair_of_tasks::worker_options(t.ready);
  options.tasks = hand.tasks();
  session_supervisor worker(t.workers, sessions_of(t.workers, shared_resources(t.box)), options);
  std::shared_ptr<base_session> theirs;
  task_handle waiting =
      hand.tasks().start("a worker", "do without", [&] { theirs = worker.prepare_or_wait_for_session(); });
  hand.settle();
  CHECK(theirs == nullptr);  // nobody has initialized v
  auto mine = chief.prepare_or_wait_for_session();
  hand.advance(1);
  waiting.join();
  CHECK(scalar(*theirs, "w") == 1);
  theirs->run(t.add);
  CHECK(mine->run(t.v0).as<float>()[0] == 2);
  worker.stop(), chief.stop();
}

TEST_CASE("S17 the same after a restore: 10, then 11") {
  pair_of_tasks t;
  saver<> saves;
  {
    session s{t.chiefs};
    s.mutable_variable("v").mutable_as<float>()[0] = 10;
    state_list list;
    s.remembers(list);
    saves.save(list, t.at.path() + "/model", 0);
  }
  session_supervisor chief(t.chiefs, sessions_of(t.chiefs, shared_resources(t.box)), {.logdir = t.at.path()});
  session_supervisor worker(t.workers, sessions_of(t.workers, shared_resources(t.box)),
                            pair_of_tasks::worker_options(t.ready));
  auto mine = chief.prepare_or_wait_for_session();
  auto theirs = worker.prepare_or_wait_for_session();
  CHECK((scalar(*mine, "v") == 10 && scalar(*theirs, "w") == 10));
  theirs->run(t.add);
  CHECK(mine->run(t.v0).as<float>()[0] == 11);
  worker.stop(), chief.stop();
}

TEST_CASE("S18 local_init_op runs for chief and others, and table initializers with it") {
  for (const bool chief : {true, false}) {
    folder at;
    graph g;
    const auto on = g.device("/job:worker");
    g.variable("v", {}, {.init = ones, .trainable = false, .local = true});
    const value table = g.variable("table", {}, {.init = zeros, .trainable = false, .local = true});
    g.add_to("table_initializer", assign(table, g.constant(5.0)));
    session_supervisor sv(g, sessions_of(g), {.is_chief = chief, .logdir = at.path()});
    auto sess = sv.prepare_or_wait_for_session();
    CHECK(scalar(*sess, "v") == 1);
    CHECK(scalar(*sess, "table") == 5);
    sv.stop();
  }
}

TEST_CASE("S19 an init_op that leaves w out: \"Variables not initialized: w\"; likewise a local variable") {
  {
    model m;
    const value v = m.g.variable("v", {}, {.init = ones});
    m.g.variable("w", {}, {.init = ones});
    session_supervisor sv(m.g, sessions_of(m.g), m.in({.init_op = variables_initializer(m.g, std::vector{v})}));
    CHECK(
        says(refusal<failed_precondition>([&] { sv.prepare_or_wait_for_session(); }), "Variables not initialized: w"));
    CHECK(
        says(refusal<failed_precondition>([&] { auto sess = sv.managed_session(); }), "Variables not initialized: w"));
  }
  model m;
  m.g.variable("v", {}, {.init = ones});
  m.g.variable("w", {}, {.init = ones, .trainable = false, .local = true});
  session_supervisor sv(m.g, sessions_of(m.g), m.in({.local_init_op = none}));
  CHECK(says(refusal<failed_precondition>([&] { sv.prepare_or_wait_for_session(); }), "Variables not initialized: w"));
}

TEST_CASE("S20 not the chief, and a variable without a device") {
  graph g;
  g.variable("v", {}, {.init = ones});
  CHECK(says(refusal<invalid_argument>([&] { session_supervisor sv(g, sessions_of(g), {.is_chief = false}); }),
             "must have their device set: v"));
}

TEST_CASE("S21 global_step by default: a variable of that name") {
  model m;
  m.g.variable("global_step", {}, {.init = constant_initializer(287), .trainable = false, .type = int64});
  session_supervisor sv(m.g, sessions_of(m.g), m.in());
  auto sess = sv.prepare_or_wait_for_session();
  CHECK(global_step(*sess, sv.global_step()) == 287);
  sv.stop();
  graph other;  // another dtype is no step
  other.variable("global_step", {}, {.init = zeros, .trainable = false});
  CHECK(!session_supervisor(other, sessions_of(other)).global_step());
}

namespace {
void serve_by_hand(model& m, session_supervisor& sv) {
  auto sess = sv.prepare_or_wait_for_session("", {.start_standard_services = false});
  CHECK(sv.start_standard_services(sess) > 0);
  while (m.at.checkpoints().empty()) std::this_thread::yield();
  sess->close();
  sv.stop();
}
}  // namespace

TEST_CASE("S23 standard services without a global step: version, graph, summary, STOP, and a checkpoint") {
  for (const bool managed : {false, true}) {
    model m;
    m.g.variable("x", {3}, {.init = zeros});
    m.g.summary_scalar("s", m.g.constant(1.0) + 2.0);
    session_supervisor sv(m.g, sessions_of(m.g), m.in());
    if (managed)
      auto sess = sv.managed_session();
    else
      serve_by_hand(m, sv);
    auto all = m.at.events();
    std::string line = told(all);
    CAPTURE(line);
    // Threads summarize and save in any order.
    CHECK((line == "version graph meta s CHECKPOINT STOP" || line == "version graph meta CHECKPOINT s STOP" ||
           line == "version graph meta s CHECKPOINT CHECKPOINT STOP" ||
           (!managed && line == "version graph meta CHECKPOINT STOP")));  // stopped before the first summary
    CHECK(all[1].bytes == graph_bytes(m.g));
    for (const event& e : all) {
      if (e.what == event_kind::summary) CHECK(e.values[0].simple_value == 3);
      if (e.what == event_kind::session_log && e.log.status == session_log_status::checkpoint)
        CHECK(e.log.checkpoint_path == m.at.path() + "/model");
    }
    REQUIRE(m.at.checkpoints().size() == 1);
    CHECK(says(m.at.checkpoints()[0], "model-0"));
  }
}

TEST_CASE("S24 with one at 123: START, step rate, CHECKPOINT at 123, STOP; the checkpoint is model-123") {
  for (const bool managed : {false, true}) {
    model m;
    m.g.variable("global_step", {}, {.init = constant_initializer(123), .trainable = false, .type = int64});
    session_supervisor sv(m.g, sessions_of(m.g), m.in());
    if (managed)
      auto sess = sv.managed_session();
    else
      serve_by_hand(m, sv);
    const auto all = m.at.events();
    const std::string line = told(all);
    CAPTURE(line);
    CHECK(says(line, "START@123"));
    CHECK((line == "version graph meta START@123 global_step/sec@123 CHECKPOINT@123 STOP" ||
           (!managed && (line == "version graph meta START@123 CHECKPOINT@123 global_step/sec@123 STOP" ||
                         line == "version graph meta START@123 CHECKPOINT@123 STOP"))));
    for (const event& e : all)
      if (e.what == event_kind::session_log && e.log.status == session_log_status::checkpoint)
        CHECK(e.log.checkpoint_path == m.at.path() + "/model");
    REQUIRE(m.at.checkpoints().size() == 1);
    CHECK(says(m.at.checkpoints()[0], "model-123"));
  }
}

TEST_CASE("S25 start_queue_runners without runners gives none") {
  model m;
  session_supervisor sv(m.g, sessions_of(m.g), m.in());
  auto sess = sv.prepare_or_wait_for_session();
  CHECK(sv.start_queue_runners(sess) == 0);
  sv.stop();

  model n;
  graph_queue q(n.g, make_queue_spec(queue_kind::fifo, 2, {float32}, {.shapes = {{3}}}));
  const queue_runner mine(q, {q.enqueue({n.c}), q.enqueue({n.c})});
  add_queue_runner(queue_runner(q, {q.enqueue({n.c})}));
  session_supervisor runs(n.g, sessions_of(n.g), n.in());
  auto has = runs.prepare_or_wait_for_session();
  CHECK(runs.start_queue_runners(has) == 0);                     // they run already
  CHECK(runs.start_queue_runners(has, std::vector{mine}) == 3);  // and one that cancels
  runs.stop();
}

TEST_CASE("S26 after a stop a second prepare clears it, for the chief and for others") {
  for (const bool chief : {true, false}) {
    model m;
    session_supervisor sv(m.g, sessions_of(m.g), m.in({.is_chief = chief}));
    for (int i = 0; i < 2; ++i) {
      auto sess = sv.prepare_or_wait_for_session();
      CHECK(!sv.should_stop());
      sess->close();
      sv.stop();
      CHECK(sv.should_stop());
    }
  }
}

TEST_CASE("a session goes on where the one before ended, with threads and without") {
  for (const auto& o : {in_step(), on_threads()}) {
    model m;
    const value step = create_global_step(m.g), next = assign_add(step, m.g.constant(1, int64));
    for (int i = 1; i <= 3; ++i) {
      session_supervisor sv(m.g, sessions_of(m.g), m.in(o));
      auto sess = sv.managed_session();
      for (int k = 0; k < 10; ++k) sess.run(next);
      CHECK(global_step(sess.raw_session(), step) == 10 * i);
    }
    CHECK(says(m.at.checkpoints().back(), "model-30"));
  }
}

TEST_CASE("the end of the input is saved, an error is not") {
  for (const bool fails : {false, true}) {
    model m;
    const value step = create_global_step(m.g), count = count_up_to(step, 7);
    session_supervisor sv(m.g, sessions_of(m.g), m.in());
    const auto train = [&] {
      auto sess = sv.managed_session();
      sess.within([&] {
        for (int i = 0; !sv.should_stop(); ++i) {
          if (fails && i == 5) raise(status::data_loss, "a bad record");
          sess.run(count);
        }
      });
    };
    if (fails)
      CHECK_THROWS_AS(train(), data_loss);
    else
      train();
    CHECK(says(m.at.checkpoints().back(), fails ? "model-0" : "model-7"));
  }
}

TEST_CASE("the body's own error is raised also behind a stop without one, and the session is closed") {
  for (const char* by : {"request_stop", "stop", "request_stop, and a thread that runs on"}) {
    CAPTURE(by);
    model m;
    const value step = create_global_step(m.g), next = assign_add(step, m.g.constant(1, int64));
    session_supervisor sv(m.g, sessions_of(m.g), m.in({.stop_grace_secs = 0}));
    registration runs_on;
    auto sess = sv.managed_session();
    CHECK(refusal<data_loss>([&] {
            sess.within([&] {
              sess.run(next);
              if (says(by, "thread")) runs_on = sv.coord().register_thread("runs on");
              if (says(by, "request"))
                sv.request_stop();
              else
                sv.stop();  // saves step 1
              raise(status::data_loss, "a bad record");
            });
          }) == "a bad record");
    CHECK(sess.raw_session().is_closed());
    CHECK(says(m.at.checkpoints().back(), says(by, "request") ? "model-0" : "model-1"));
  }
}

TEST_CASE("services in the step: behind the first run that finds one due, of the state after it") {
  model m;
  testing::hand_tasks hand;
  const value step = create_global_step(m.g), next = assign_add(step, m.g.constant(1, int64));
  m.g.summary_scalar("twice", cast(step, float32) * 2.0);
  session_supervisor sv(
      m.g, sessions_of(m.g),
      m.in({.save_summaries_secs = 10, .save_model_secs = 20, .save_on_stop = false, .tasks = hand.tasks()}));
  {
    auto sess = sv.managed_session();
    for (int k = 0; k < 5; ++k) {
      sess.run(next);
      if (m.at.checkpoints().size() == 2)  // events up to a checkpoint are on file before it is
        CHECK(says(told(m.at.events()), "global_step/sec@3"));
      hand.advance(8);
    }
  }
  CHECK(told(m.at.events()) ==
        "version graph meta START twice global_step/sec CHECKPOINT twice@3 global_step/sec@3 CHECKPOINT@4 twice@5 "
        "global_step/sec@5 STOP");
}

TEST_CASE("services on threads, and a loop of one's own: time is turned, and a save waits for runs") {
  model m;
  testing::hand_tasks hand;
  const value step = create_global_step(m.g), next = assign_add(step, m.g.constant(1, int64));
  session_supervisor sv(m.g, sessions_of(m.g),
                        m.in({.save_summaries_secs = 0,
                              .save_model_secs = 20,
                              .services = service_place::threads,
                              .save_on_stop = false,
                              .tasks = hand.tasks()}));
  int calls = 0;
  {
    auto sess = sv.managed_session();
    sv.loop(5, [&] { ++calls; });
    hand.settle();
    CHECK(m.at.checkpoints().size() == 1);
    sess.run(next);
    hand.advance(20);
    CHECK(m.at.checkpoints().size() == 2);
    CHECK(calls == 5);
  }
  CHECK(says(m.at.checkpoints()[1], "model-1"));
  CHECK(told(m.at.events()) == "version graph meta START CHECKPOINT CHECKPOINT@1 STOP");
}

TEST_CASE("a checkpoint that is under way when the grace is over is saved, though its events have no file any more") {
  model m;
  testing::hand_tasks hand;
  session_resources box(hand.tasks());
  const value step = create_global_step(m.g), next = assign_add(step, m.g.constant(1, int64));
  session_supervisor sv(m.g, sessions_of(m.g, shared_resources(box)),
                        m.in({.save_summaries_secs = 0,
                              .save_model_secs = 20,
                              .stop_grace_secs = 0,
                              .services = service_place::threads,
                              .tasks = hand.tasks()}));
  const auto sess = sv.prepare_or_wait_for_session();
  hand.settle();
  sess->run(next);
  {
    const auto still = sess->pause_runs();
    hand.advance(20);  // the save waits for its turn
    sv.stop({.ignore_live_threads = true});
  }
  hand.settle();
  CHECK(says(m.at.checkpoints().back(), "model-1"));
  CHECK(sv.coord().suppressed().empty());
  CHECK(told(m.at.events()) == "version graph meta START CHECKPOINT STOP");
}

TEST_CASE("a second session without a stop: its services are the only ones, and the program's loops go on") {
  model m;
  testing::hand_tasks hand;
  const value step = create_global_step(m.g), next = assign_add(step, m.g.constant(1, int64));
  session_supervisor sv(m.g, sessions_of(m.g),
                        m.in({.save_summaries_secs = 0,
                              .save_model_secs = 20,
                              .services = service_place::threads,
                              .save_on_stop = false,
                              .tasks = hand.tasks()}));
  int calls = 0;
  const auto first = sv.prepare_or_wait_for_session();
  sv.loop(5, [&] { ++calls; });
  hand.settle();
  first->run(next);
  const auto second = sv.prepare_or_wait_for_session();
  hand.settle();
  for (int k = 0; k < 3; ++k) second->run(next);
  const int before = calls;
  hand.advance(20);
  CHECK(calls == before + 4);
  CHECK(!sv.should_stop());
  sv.stop();
  CHECK(says(m.at.checkpoints().back(), "model-3"));
  CHECK(told(m.at.events()) == "version graph meta START CHECKPOINT START@1 CHECKPOINT CHECKPOINT@3 STOP");
}

TEST_CASE("a session that has restored step 3 takes back no event of step 3") {
  for (const bool managed : {true, false}) {
    model m;
    const value step = create_global_step(m.g), next = assign_add(step, m.g.constant(1, int64));
    for (const int last : {3, 5}) {
      session_supervisor sv(m.g, sessions_of(m.g), m.in({.summary_op = none}));
      const auto run = [&](auto& sess) {
        for (std::int64_t now = 0; now < last;) {
          now = sess.run(next).template as<std::int64_t>()[0];
          sv.summary_computed(sess, scalar_summary("mine", 1), now);
        }
      };
      if (managed) {
        auto sess = sv.managed_session();
        run(sess);
      } else {
        const auto sess = sv.prepare_or_wait_for_session();
        run(*sess);
        state_list list;
        sess->remembers(list);
        sv.stop();
        sv.saver()->save(list, sv.save_path(), last);
        sess->close();
      }
    }
    CHECK(run_files::steps_of(run_files::read_curves(posix{}, m.at.path()), "mine") ==
          std::vector<std::int64_t>{1, 2, 3, 4, 5});
  }
}

namespace {
session_supervisor* supervises = nullptr;
std::string said_in_run;
void stops(std::span<float> y, std::span<const float> x) {
  y[0] = x[0];
  said_in_run = refusal<failed_precondition>([] { supervises->stop(); });
}
}  // namespace
template <>
struct gradus::op_kernel<&gradus::host_op<&stops>> : gradus::host_kernel<&stops> {};

TEST_CASE("a stop inside a run, for which it would wait, is refused, and the run goes on") {
  model m;
  const value v = m.g.variable("v", {}, {.init = zeros}), y = host_call<&stops>({v});
  session_supervisor sv(m.g, sessions_of(m.g, ops<&host_op<&stops>>{}), m.in());
  supervises = &sv;
  auto sess = sv.managed_session();
  sess.run(y);
  CHECK(says(said_in_run, "call request_stop() here, and stop() behind the run"));
  CHECK_FALSE(sv.should_stop());
  sv.stop();
}

TEST_CASE("a session that has restored a step writes no second summary and no rate of it") {
  for (const auto place : {service_place::in_step, service_place::threads}) {
    model m;
    testing::hand_tasks hand;
    const value step = create_global_step(m.g), next = assign_add(step, m.g.constant(1, int64));
    m.g.summary_scalar("twice", cast(step, float32) * 2.0);
    for (int session = 0; session < 3; ++session) {
      session_supervisor sv(
          m.g, sessions_of(m.g),
          m.in({.save_summaries_secs = 10, .save_model_secs = 1000, .services = place, .tasks = hand.tasks()}));
      auto sess = sv.managed_session();
      hand.settle();
      for (int k = 0; k < 3; ++k) sess.run(next), hand.advance(10);
    }
    const auto curves = run_files::read_curves(posix{}, m.at.path());
    for (const char* tag : {"twice", "global_step/sec"}) {
      const auto steps = run_files::steps_of(curves, tag);
      CHECK(steps.size() > 4);
      CHECK(std::adjacent_find(steps.begin(), steps.end(), std::greater_equal<>()) == steps.end());
    }
  }
}

TEST_CASE("a loop that was added before the session is prepared goes on in it") {
  model m;
  testing::hand_tasks hand;
  session_supervisor sv(m.g, sessions_of(m.g),
                        m.in({.save_summaries_secs = 0,
                              .save_model_secs = 0,
                              .services = service_place::threads,
                              .save_on_stop = false,
                              .tasks = hand.tasks()}));
  int calls = 0;
  sv.loop(5, [&] { ++calls; });
  {
    auto sess = sv.managed_session();
    hand.settle();
    hand.advance(20);
    CHECK(calls == 5);
  }
  CHECK(sv.should_stop());
}

TEST_CASE("a thread's error ends the block, and the session is closed; whatever the body does then") {
  model m;
  session_supervisor sv(m.g, sessions_of(m.g), m.in());
  std::shared_ptr<base_session> seen;
  CHECK(refusal<data_loss>([&] {
          auto sess = sv.managed_session();
          sv.loop({}, [] { raise(status::data_loss, "the reader's disk"); });
          while (!sv.should_stop()) sess.run(m.c);
        }) == "the reader's disk");
  CHECK(says(told(m.at.events()), "STOP"));
}

TEST_CASE("what is no supervisor: times, summaries that take feeds") {
  {
    graph g;
    CHECK(says(refusal<invalid_argument>([&] { session_supervisor sv(g, sessions_of(g), {.save_model_secs = -1}); }),
               "save_model_secs"));
  }
  model m;
  const value x = m.g.placeholder("x", {});
  m.g.summary_scalar("of x", x * 2.0);
  session_supervisor sv(m.g, sessions_of(m.g), m.in());
  CHECK(says(refusal<invalid_argument>([&] { auto sess = sv.managed_session(); }), "summary_op = none"));
  CHECK(says(refusal<unimplemented>([&] { (void)sv.prepare_or_wait_for_session("grpc://far:1"); }), "grpc"));
  sv.stop();
}

TEST_CASE("a chief that saves locks its logdir until it is stopped; who saves nothing does not") {
  for (const auto& o : {in_step(), on_threads()}) {
    model m, n;
    const value step = create_global_step(m.g), next = assign_add(step, m.g.constant(1, int64));
    create_global_step(n.g);
    const auto second = [&](session_supervisor_options with) {
      with.logdir = m.at.path(), with.summary_writer = none;
      graph g;
      create_global_step(g);
      return refusal<failed_precondition>([&] {
        session_supervisor sv(g, sessions_of(g), with);
        auto sess = sv.managed_session();
      });
    };
    const char *refused = "expected to be the only one that writes into", *free = "(nothing was refused)";
    session_supervisor sv(m.g, sessions_of(m.g), m.in(o));
    {
      auto sess = sv.managed_session();
      sess.run(next);
      CHECK(says(second(o), refused));
      CHECK(second({.save_model_secs = 0, .save_on_stop = false}) == free);
      CHECK(says(second({.save_model_secs = 0}), refused));  // it would save at its end
      sess.within([] {});
      CHECK(second(o) == free);
    }
    // An error of the body gives it free too.
    CHECK_THROWS_AS(sv.managed_session().within([] { raise(status::data_loss, "a bad record"); }), data_loss);
    CHECK(second(o) == free);
    // With threads of its own: from the preparation on, until it is stopped.
    sv.prepare_or_wait_for_session();
    CHECK(says(second(o), refused));
    sv.stop();
    CHECK(second(o) == free);
    sv.prepare_or_wait_for_session({}, {.start_standard_services = false});
    CHECK(second(o) == free);
    sv.stop();
  }
}

TEST_CASE("a session that could not be prepared leaves the logdir free") {
  model m;
  create_global_step(m.g);
  session_supervisor_options o = m.in();
  o.init_fn = [](base_session&) { raise(status::internal, "no session"); };
  session_supervisor sv(m.g, sessions_of(m.g), o);
  CHECK_THROWS_AS(sv.prepare_or_wait_for_session(), internal);
  CHECK(hold_directory(posix{}, m.at.path())->held());
  CHECK_THROWS_AS(sv.managed_session(), internal);
  CHECK(hold_directory(posix{}, m.at.path())->held());
}

TEST_CASE(
    "a stop inside the block of a managed session makes the last checkpoint, and the block ends without another") {
  for (const bool writes : {true, false}) {
    model m;
    const value step = m.g.variable("global_step", {}, {.init = zeros, .trainable = false, .type = int64});
    m.g.add_to(collection::global_step, step);
    const value next = assign_add(step, m.g.constant(1, int64));
    session_supervisor_options o = m.in({});
    if (!writes) o.summary_writer = none;
    session_supervisor sv(m.g, sessions_of(m.g), o);
    {
      auto sess = sv.managed_session();
      for (int i = 0; i < 7; ++i) sess.run(next);
      sv.stop();
      CHECK(m.at.checkpoints().back().find("-7") != std::string::npos);
    }
    CHECK(m.at.checkpoints().back().find("-7") != std::string::npos);
  }
}
