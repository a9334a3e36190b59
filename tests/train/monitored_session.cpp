// sanitized in every run: sessions that are made again while threads of theirs run
#include <gradus/train/monitored_session.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/run/session.hpp>
#include <gradus/session/looper.hpp>
#include <gradus/testing/faulty_files.hpp>
#include <gradus/train/hooks/checkpoint_saver_hook.hpp>
#include <gradus/train/hooks/stop_at_step_hook.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using namespace gradus;
using gradus::testing::faulty_files;

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

// An op that calls what a test says, in its run.
std::function<void()> in_run = [] {};
void run_hooked(session_call&) { in_run(); }
constexpr session_card calls_out{{"CallsOut", 0, trait::keeps | trait::blocks | trait::session | trait::at_session},
                                 &run_hooked};

// A graph whose op `next` counts the global step.
struct counting {
  graph g;
  value step = create_global_step(g), next = assign_add(step, g.constant(1, int64));
  value x = g.placeholder("x", {}), y = g.placeholder("y", {}), sum = x + y * 10.0;
  value call = g.add(calls_out, nullptr, 0);
  value both = g.group({next, call});
  faulty_files files;
  std::shared_ptr<detail::any_saver> saves =
      std::make_shared<saver<flat_binary, faulty_files>>(saver_options{}, flat_binary{}, files);
  scaffold parts{{.saver = saves}};
  chief_session_creator chief;
  explicit counting(chief_session_options o = {}) : chief(sessions_of(g), g, parts, std::move(o)) {
    in_run = [] {};
  }
};
// What happened, in order.
struct recording {
  std::vector<std::string>* log;
  std::string name;
  void begin() { log->push_back(name + " begin"); }
  void after_create_session(hooked_session&) { log->push_back(name + " session"); }
  void before_run(run_context&) { log->push_back(name + " before"); }
  void after_run(run_context&, const run_values&) { log->push_back(name + " after"); }
  void end(hooked_session&) { log->push_back(name + " end"); }
};
struct asking {
  session_run_args args;
  std::vector<float>* seen = nullptr;
  std::size_t* many = nullptr;
  const session_run_args** original = nullptr;
  run_options* merged = nullptr;
  std::size_t* traced = nullptr;
  session_run_args before_run(run_context& c) {
    if (original != nullptr) *original = c.original_args();
    return args;
  }
  void after_run(run_context& c, const run_values& v) {
    if (many != nullptr) *many = v.results.size();
    if (seen != nullptr)
      for (const auto& r : v.results) seen->push_back(r.as<float>()[0]);
    if (merged != nullptr) *merged = *v.options;
    if (traced != nullptr) *traced = v.metadata->nodes.size();
    CHECK(c.session().raw_session() != nullptr);
  }
};
struct stopping {
  int* after;
  void after_run(run_context& c, const run_values&) {
    if (--*after == 0) c.request_stop();
  }
};
// Hands given sessions out, then raises.
struct given_sessions final : session_creator {
  std::vector<std::function<std::unique_ptr<base_session>()>> makers;
  std::size_t next = 0;
  std::unique_ptr<base_session> create_session() override {
    if (next == makers.size()) raise(status::internal, "no session is left");
    return makers[next++]();
  }
};
}  // namespace

TEST_CASE("H8 with a directory: steps 1, 2; begun again it reads 2") {
  counting m({.checkpoint_dir = "runs"});
  const any_hook saving = checkpoint_saver_hook("runs", {.save_steps = 1, .saver = m.saves});
  {
    monitored_session s(m.chief, {saving});
    CHECK(s.run(m.next).as<std::int64_t>()[0] == 1);
    CHECK(s.run(m.next).as<std::int64_t>()[0] == 2);
    s.close();
  }
  monitored_session again(m.chief);
  CHECK(again.run(m.step).as<std::int64_t>()[0] == 2);
}

TEST_CASE("H12 should_stop is true after close, and a second close is an error; so is a run") {
  counting m;
  monitored_session s(m.chief);
  CHECK(!s.should_stop());
  s.close();
  CHECK(s.should_stop());
  CHECK(refusal<failed_precondition>([&] { s.close(); }) == "Session is already closed.");
  CHECK(says(refusal<failed_precondition>([&] { s.run(m.step); }), "already closed"));
}

TEST_CASE("H13 an error in run requests no stop by itself; close then joins the threads") {
  counting m;
  monitored_session s(m.chief);
  bool ended = false;
  auto waits = s.coord().tasks().start("a test", "do without",
                                       [&, here = std::make_shared<registration>(s.coord().register_thread("t"))] {
                                         s.coord().wait_for_stop();
                                         ended = true;
                                         here->release();
                                       });
  in_run = [] { raise(status::invalid_argument, "a bad step"); };
  CHECK(refusal<invalid_argument>([&] { s.run(m.both); }) == "a bad step");
  CHECK(!s.should_stop());
  s.close();
  CHECK(ended);
}

TEST_CASE("H14 a stop of the coordinator makes should_stop true") {
  counting m;
  monitored_session s(m.chief);
  s.coord().request_stop();
  CHECK(s.should_stop());
}

TEST_CASE("H15 sessions abort at their 2nd, 3rd, 4th run: all are used in turn; then the creator's error comes out") {
  counting m;
  given_sessions creator;
  int runs = 0, session_number = 0;
  const value seven = m.g.group({m.call}), number = m.g.constant(7.0);
  for (int k = 0; k < 3; ++k)
    creator.makers.push_back([&, k] {
      session_number = k, runs = 0;
      return sessions_of(m.g)();
    });
  in_run = [&] {
    if (++runs == session_number + 2) raise(session_number == 1 ? status::unavailable : status::aborted, "it died");
  };
  std::vector<std::string> log;
  monitored_session s(creator, {recording{&log, "h"}});
  const std::vector<fetch> fetches{number, seven};
  for (int i = 0; i < 1 + 2 + 3; ++i) CHECK(s.run(fetches)[0].as<float>()[0] == 7);
  CHECK(session_number == 2);
  CHECK(refusal<internal>([&] { s.run(fetches); }) == "no session is left");
  CHECK(s.should_stop());
  CHECK(std::count(log.begin(), log.end(), "h begin") == 1);  // H32
  CHECK(std::count(log.begin(), log.end(), "h session") == 3);
}

TEST_CASE(
    "H16 before_run and after_run once for each run, nothing fetched: no results; original args are the caller's") {
  counting m;
  std::vector<std::string> log;
  std::size_t many = 99;
  const session_run_args* original = nullptr;
  std::size_t fetched = 0;
  struct looks {
    const session_run_args** original;
    std::size_t* fetched;
    void after_run(run_context& c, const run_values&) { *fetched = (*original = c.original_args())->fetches.size(); }
  };
  monitored_session s(m.chief, {recording{&log, "a"}, asking{.args = {}, .many = &many}, looks{&original, &fetched}});
  s.run({m.step, m.next});
  CHECK(log == std::vector<std::string>{"a begin", "a session", "a before", "a after"});
  CHECK(many == 0);
  CHECK(fetched == 2);
}

TEST_CASE("H17 each hook gets its own fetches, and the caller his; H18 feeds of all add up") {
  counting m;
  std::vector<float> of_a, of_b;
  const std::vector<float> two{2}, three{3};
  const value c = m.g.constant(5.0), d = m.g.constant(6.0);
  monitored_session s(m.chief, {asking{.args = {.fetches = {c, d}, .feeds = {{m.x, two}}}, .seen = &of_a},
                                asking{.args = {.fetches = {d}}, .seen = &of_b}});
  const std::vector<feed> mine{{m.y, three}};
  const std::vector<fetch> fetches{m.sum};
  const auto r = s.run(fetches, mine);
  CHECK(r.size() == 1);
  CHECK(r[0].as<float>()[0] == 32);
  CHECK(of_a == std::vector<float>{5, 6});
  CHECK(of_b == std::vector<float>{6});
  CHECK(mine.size() == 1);  // as it was
}

TEST_CASE("H19 the same tensor twice, by two hooks or by a hook and the caller: Same tensor is fed, by name too") {
  counting m;
  const std::vector<float> two{2};
  {
    monitored_session s(m.chief, {asking{.args = {.feeds = {{m.x, two}}}}, asking{.args = {.feeds = {{"x", two}}}}});
    const std::string why = refusal<failed_precondition>([&] { s.run(m.sum, {{m.y, two}}); });
    CHECK(says(why, "Same tensor is fed by two hooks: \"x\""));
  }
  monitored_session s(m.chief, {asking{.args = {.feeds = {{m.x, two}}}}});
  CHECK(says(refusal<failed_precondition>([&] {
               s.run(m.sum, {{"x", two}, {m.y, two}});
             }),
             "Same tensor is fed by a SessionRunHook and the caller of run: \"x\""));
}

TEST_CASE("H20 a hook's request_stop: should_stop after this run, not before; H29 a run after it is an error") {
  counting m;
  int left = 2;
  monitored_session s(m.chief, {stopping{&left}});
  s.run(m.next);
  CHECK(!s.should_stop());
  s.run(m.next);
  CHECK(s.should_stop());
  CHECK(refusal<failed_precondition>([&] { s.run(m.next); }) == "Run called even after should_stop requested.");
}

TEST_CASE("H21 StopAtStep(last 3), saved and restored: goes on to 5; H22 num_steps 3, then 4") {
  for (const bool by_last : {true, false}) {
    counting m({.checkpoint_dir = "runs"});
    const auto trains = [&](stop_at_step_options o) {
      monitored_session s(m.chief,
                          {checkpoint_saver_hook("runs", {.save_steps = 1, .saver = m.saves}), stop_at_step_hook(o)});
      std::int64_t last = 0;
      s.within([&] {
        while (!s.should_stop()) last = s.run(m.next).as<std::int64_t>()[0];
      });
      return last;
    };
    CHECK(trains(by_last ? stop_at_step_options{.last_step = 3} : stop_at_step_options{.num_steps = 3}) == 3);
    CHECK(trains(by_last ? stop_at_step_options{.last_step = 5} : stop_at_step_options{.num_steps = 4}) ==
          (by_last ? 5 : 7));
  }
}

TEST_CASE(
    "H23 aborted without a checkpoint: the step is made again from 0, and run gives 1; H24 with one after each: 3") {
  for (const bool saves : {false, true}) {
    counting m({.checkpoint_dir = "runs"});
    std::vector<any_hook> hooks;
    if (saves) hooks.push_back(checkpoint_saver_hook("runs", {.save_steps = 1, .saver = m.saves}));
    monitored_session s(m.chief, hooks);
    for (int i = 0; i < 2; ++i) s.run(m.both);
    int left = 1;
    in_run = [&] {
      if (left-- > 0) raise(status::aborted, "it died");
    };
    const std::vector<fetch> fetches{m.both, m.step};
    s.run(fetches);
    CHECK(s.run(m.step).as<std::int64_t>()[0] == (saves ? 3 : 1));
  }
}

TEST_CASE("H25 aborted while the session is created: tried again") {
  counting m;
  given_sessions creator;
  for (int k = 0; k < 3; ++k)
    creator.makers.push_back([&, k]() -> std::unique_ptr<base_session> {
      if (k < 2) raise(k == 0 ? status::aborted : status::unavailable, "not yet");
      auto s = sessions_of(m.g)();
      s->initialize();
      return s;
    });
  monitored_session s(creator);
  CHECK(s.run(m.next).as<std::int64_t>()[0] == 1);
  CHECK(creator.next == 3);
}

TEST_CASE("H26 out_of_range and a stop leave the block silently, and the line behind the run is not reached") {
  for (const bool by_range : {true, false}) {
    counting m;
    std::vector<std::string> log;
    monitored_session s(m.chief, {recording{&log, "h"}});
    in_run = [&] {
      if (by_range) raise(status::out_of_range, "the end");
    };
    bool reached = false;
    s.within([&] {
      s.run(m.both);
      if (!by_range) s.run_step_fn([](step_context& c) { c.request_stop(); });
      reached = true;
    });
    CHECK(!reached);
    CHECK(s.should_stop());
    CHECK(log.back() == "h end");  // H33
  }
}

TEST_CASE("H27 another error passes, and should_stop is true; H33 a hook's end does not run then") {
  counting m;
  std::vector<std::string> log;
  monitored_session s(m.chief, {recording{&log, "h"}});
  in_run = [] { raise(status::invalid_argument, "a bad step"); };
  CHECK(refusal<invalid_argument>([&] { s.within([&] { s.run(m.both); }); }) == "a bad step");
  CHECK(s.should_stop());
  CHECK(log.back() == "h before");
}

TEST_CASE(
    "H33 without `within` the destructor ends the session: hooks end after out_of_range, not after another error") {
  for (const auto kind : {status::out_of_range, status::invalid_argument}) {
    counting m;
    std::vector<std::string> log;
    in_run = [&] { raise(kind, "the end"); };
    try {
      monitored_session s(m.chief, {recording{&log, "h"}});
      s.run(m.both);
    } catch (const error&) {
    }
    CHECK((log.back() == "h end") == (kind == status::out_of_range));
  }
}

TEST_CASE("H28 an error that a thread gives to the coordinator: run still works, the block's end raises it") {
  counting m;
  monitored_session s(m.chief);
  CHECK(refusal<not_found>([&] {
          s.within([&] {
            s.coord().request_stop(not_found("of a thread"));
            CHECK(s.run(m.next).as<std::int64_t>()[0] == 1);
          });
        }) == "of a thread");
}

TEST_CASE("a thread's error is raised before that of a hook's end, which it may have caused") {
  counting m;
  struct failing {
    void end(hooked_session&) { raise(status::data_loss, "nothing to write"); }
  };
  monitored_session s(m.chief, {failing{}});
  CHECK(refusal<not_found>([&] { s.within([&] { s.coord().request_stop(not_found("of a thread")); }); }) ==
        "of a thread");
  monitored_session alone(m.chief, {failing{}});
  CHECK(refusal<data_loss>([&] { alone.within([] {}); }) == "nothing to write");
}

TEST_CASE("H30 options of hooks and the caller merge by maximum, and every hook sees them and the metadata") {
  counting m;
  run_options one, two;
  std::size_t traced = 0;
  monitored_session s(
      m.chief, {asking{.args = {.options = {.timeout_secs = 60, .trace = trace_level::software_trace}}, .merged = &one},
                asking{.args = {.options = {.timeout_secs = 30, .trace = trace_level::full_trace}},
                       .merged = &two,
                       .traced = &traced}});
  run_metadata told;
  s.run(m.next, {}, {.timeout_secs = 45, .trace = trace_level::no_trace}, &told);
  for (const run_options& o : {one, two}) CHECK((o.timeout_secs == 60 && o.trace == trace_level::full_trace));
  CHECK((traced > 0 && told.nodes.size() == traced));
}

TEST_CASE("H31 run_step_fn: its result is given, run_with_hooks calls the hooks, the session's own run does not") {
  counting m;
  std::vector<std::string> log;
  monitored_session s(m.chief, {recording{&log, "h"}});
  const auto runs = [&] { return std::count(log.begin(), log.end(), "h before"); };
  CHECK(s.run_step_fn([&](step_context& c) { return c.run_with_hooks(m.next).as<std::int64_t>()[0]; }) == 1);
  CHECK(runs() == 1);
  CHECK(s.run_step_fn([&](step_context& c) { return c.session().run(m.next).as<std::int64_t>()[0]; }) == 2);
  CHECK(runs() == 1);
  // a step that is aborted is made again, all of it
  int calls = 0, left = 1;
  in_run = [&] {
    if (left-- > 0) raise(status::aborted, "it died");
  };
  s.run_step_fn([&](step_context& c) {
    ++calls;
    c.run_with_hooks(m.both);
  });
  CHECK(calls == 2);
}

TEST_CASE("H32 begin once, and once after_create_session for each session, hook by hook") {
  counting m;
  std::vector<std::string> log;
  monitored_session s(m.chief, {recording{&log, "a"}, recording{&log, "b"}});
  CHECK(log == std::vector<std::string>{"a begin", "b begin", "a session", "b session"});
  s.run(m.next);
  s.close();
  CHECK(log == std::vector<std::string>{"a begin", "b begin", "a session", "b session", "a before", "b before",
                                        "a after", "b after", "a end", "b end"});
}

TEST_CASE("H33 an end of the input that the program has caught is not what a later error is") {
  counting m;
  std::vector<std::string> log;
  try {
    monitored_session s(m.chief, {recording{&log, "h"}});
    in_run = [] { raise(status::out_of_range, "the end of a warm-up"); };
    CHECK_THROWS_AS(s.run(m.both), out_of_range);
    in_run = [] {};
    s.run(m.both);
    throw std::runtime_error("a bad state");
  } catch (const std::runtime_error&) {
  }
  CHECK(log.back() == "h after");
}

TEST_CASE("H31 a step whose session was lost while it asked whether to stop is made again, on a new session") {
  counting m;
  monitored_session s(m.chief);
  int calls = 0;
  std::vector<const base_session*> seen;
  s.run_step_fn([&](step_context& c) {
    seen.push_back(&c.session());
    if (++calls == 1) {
      s.coord().request_stop(aborted("a worker died"));
      while (!s.should_stop()) c.session().run(m.next);
    }
    c.session().run(m.next);
  });
  CHECK(calls == 2);
}

TEST_CASE("a session that cannot be made is tried again after a pause, which a stop ends") {
  counting m;
  int tries = 0;
  given_sessions creator;
  const auto stop = std::make_shared<cancellation>();
  for (int i = 0; i < 100; ++i)
    creator.makers.push_back([&]() -> std::unique_ptr<base_session> {
      if (++tries == 2) stop->cancel("enough");
      raise(status::unavailable, "the server is not there yet");
    });
  CHECK(refusal<unavailable>([&] { monitored_session s(creator, {}, {.recovery_wait_secs = 1000, .stop = stop}); }) ==
        "the server is not there yet");
  CHECK(tries == 2);
}

TEST_CASE("a run whose own stop gives an error as that of a lost session ends; it is not made again") {
  for (const auto kind : {status::unavailable, status::aborted}) {
    counting m;
    monitored_session s(m.chief);
    cancellation stop;
    int runs = 0;
    in_run = [&] {
      if (++runs > 3) raise(status::internal, "it was made again");
      stop.cancel("enough", kind);
      raise(kind, "enough");
    };
    std::string message;
    try {
      s.run(m.both, {}, {.stop = &stop});
    } catch (const error& e) {
      message = e.what();
    }
    CHECK(message == "enough");
    CHECK(runs == 1);
    // A later step without a stop is made again.
    runs = 0;
    in_run = [&] {
      if (++runs == 1) raise(kind, "it died");
    };
    s.run_step_fn([&](step_context& c) { c.run_with_hooks(m.both); });
    CHECK(runs == 2);
  }
}

TEST_CASE("names that the graph does not have are not one tensor") {
  counting m;
  session_run_args mine;
  const std::vector<float> one{1};
  mine.feeds = {{"neither", one}};
  monitored_session s(m.chief, {asking{mine}});
  CHECK(says(refusal<error>([&] { s.run(m.next, {{"nor", one}}); }), "nor"));
}

TEST_CASE("a looper of a hook outlives the coordinator of its session") {
  struct ticking {
    std::unique_ptr<looper_thread<>> looper;
    void after_create_session(hooked_session& s) {
      looper = std::make_unique<looper_thread<>>(*s.coord(), 1000, [] {});
      looper->start();
    }
  };
  for (const bool is_lost : {false, true}) {
    ticking ticks;
    counting m;
    monitored_session s(m.chief, {std::ref(ticks)});
    if (is_lost) {
      in_run = [left = 1]() mutable {
        if (left-- > 0) raise(status::aborted, "it died");
      };
    }
    s.run(m.both);
    s.close();
  }
}

TEST_CASE("H34 a singular monitored session has its raw session and no recovery: aborted comes out") {
  counting m;
  singular_monitored_session s(m.chief);
  CHECK(s.raw_session() != nullptr);
  in_run = [] { raise(status::aborted, "it died"); };
  CHECK(refusal<aborted>([&] { s.run(m.both); }) == "it died");
}

TEST_CASE("queue runners of the graph feed a monitored session until the input ends") {
  graph g;
  graph_queue q(g, make_queue_spec(queue_kind::fifo, 4, {int64}, {.shapes = {{}}}));
  const value counter = g.variable("counter", {}, {.init = zeros, .trainable = false, .local = true, .type = int64});
  add_queue_runner(queue_runner(q, {q.enqueue({count_up_to(counter, 10)})}));
  const value step = create_global_step(g);
  const value train = assign_add(step, q.dequeue());
  scaffold parts;
  chief_session_creator chief(sessions_of(g), g, parts);
  std::int64_t last = -1;
  int runs = 0;
  {
    monitored_session s(chief);
    s.within([&] {
      while (!s.should_stop()) last = s.run(train).as<std::int64_t>()[0], ++runs;
    });
  }
  CHECK((runs == 10 && last == 45));
}

TEST_CASE("the graph is open again when the session has ended, if it was open before") {
  counting m;
  {
    monitored_session s(m.chief);
    CHECK(m.g.is_finalized());
    s.close();
  }
  CHECK(!m.g.is_finalized());
}
