#include <gradus/session/session_manager.hpp>

#include <gradus/cpu/device.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/run/session.hpp>
#include <gradus/session/session_creator.hpp>
#include <gradus/testing/faulty_files.hpp>
#include <gradus/testing/hand_tasks.hpp>

#include <doctest/doctest.h>

#include <memory>
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

using files_saver = saver<flat_binary, faulty_files>;
// v starts at 1; a checkpoint in "runs" may hold 10. w is local and starts as v.
struct model {
  graph g;
  value start = g.placeholder("start", {});
  value v = g.variable("v", {}, {.init = ones});
  value w = variable_from("w", v, {.trainable = false, .local = true});
  value init = variables_initializer(g, std::vector{v}), local_init = local_variables_initializer(g);
  value ready = report_uninitialized_variables(g), ready_v = report_uninitialized_variables(g, std::vector{v});
  faulty_files files;
  files_saver saves{{}, {}, files};

  void put_checkpoint(float at = 10, const std::string& prefix = "runs/model") {
    session s{g};
    s.mutable_variable("v").mutable_as<float>()[0] = at;
    state_list list;
    s.remembers(list);
    saves.save(list, prefix, 1);
  }
  checkpoint_source from() { return {.saver = &saves, .checkpoint_dir = "runs"}; }
  static float of(base_session& s, const char* name) { return s.variable(name).as<float>()[0]; }
};
// Makes sessions and counts them.
struct counting {
  graph& g;
  session_resources* box = nullptr;
  std::vector<base_session*> made = {};
  int closed = 0;
  session_factory opener() {
    return [this]() -> std::unique_ptr<base_session> {
      auto s = box != nullptr ? sessions_of(g, shared_resources(*box))() : sessions_of(g)();
      made.push_back(s.get());
      return s;
    };
  }
};
}  // namespace

TEST_CASE("M1 prepare with init_op; with init_feed_dict; with init_fn alone") {
  model m;
  session_manager manager({.ready_op = m.ready_v});
  CHECK(m.of(*manager.prepare_session(sessions_of(m.g), {.init_op = m.init}), "v") == 1);
  {
    graph g;
    const value p = g.placeholder("p", {2}), v = variable_from("v", p);
    const std::vector<float> data{3, 4};
    const std::vector<feed> feeds{{p, data}};
    session_manager fed({.ready_op = report_uninitialized_variables(g)});
    const auto init = global_variables_initializer(g);
    auto s = fed.prepare_session(sessions_of(g), {.init_op = init, .init_feed_dict = feeds});
    CHECK(s->run(v).as<float>()[1] == 4);
  }
  auto s = manager.prepare_session(
      sessions_of(m.g), {.init_fn = [](base_session& sess) { sess.mutable_variable("v").mutable_as<float>()[0] = 5; }});
  CHECK(m.of(*s, "v") == 5);
}

TEST_CASE(
    "M2 prepare without a checkpoint and without anything that initializes; M3 the directory comes back: restored") {
  model m;
  session_manager manager({.ready_op = m.ready_v});
  const auto prepare = [&] { return manager.prepare_session(sessions_of(m.g), {.from = m.from()}); };
  CHECK(says(refusal<failed_precondition>(prepare), "no init_op or init_fn or local_init_op was given"));
  m.put_checkpoint();
  CHECK(m.of(*prepare(), "v") == 10);
}

TEST_CASE("M4 recover: without a checkpoint not initialized, with one its value and not the initializer's") {
  model m;
  session_manager manager({.ready_op = m.ready_v});
  auto without = manager.recover_session(sessions_of(m.g), m.from());
  CHECK(!without.initialized);
  CHECK(says(without.why_not, "no checkpoint"));
  CHECK(!without.session->is_variable_initialized("v"));
  m.put_checkpoint();
  auto with = manager.recover_session(sessions_of(m.g), m.from());
  CHECK(with.initialized);
  CHECK(with.why_not.empty());
  CHECK(with.session->is_variable_initialized("v"));
  CHECK(m.of(*with.session, "v") == 10);
}

TEST_CASE(
    "M5 wait_for_session gives up when less than recovery_wait_secs are left: a session for each try, each closed") {
  struct row {
    double recovery, max_wait, took;
    std::size_t tries;
  };
  for (const row r : {row{1, 3, 3, 4}, row{30, 10, 0, 1}, row{2, 5, 4, 3}, row{5, 5, 5, 2}}) {
    testing::hand_tasks hand;
    model m;
    counting count{m.g};
    session_manager manager({.ready_op = m.ready_v, .recovery_wait_secs = r.recovery}, hand.tasks());
    std::string why;
    auto waiter = hand.tasks().start("a test", "do without", [&] {
      why = refusal<deadline_exceeded>([&] { manager.wait_for_session(count.opener(), r.max_wait); });
    });
    hand.advance(r.took);
    waiter.join();
    CHECK(says(
        why, text("Session was not ready after waiting ", r.max_wait, " secs: Variables not initialized: v").c_str()));
    CHECK(count.made.size() == r.tries);
  }
}

TEST_CASE("M6 ready_for_local_init_op without local_init_op is refused") {
  model m;
  CHECK(says(refusal<invalid_argument>([&] { session_manager({.ready_for_local_init_op = m.ready_v}); }),
             "ready_for_local_init_op is given without a local_init_op"));
}

TEST_CASE("M7 recover with both: the local w is the restored v; M8 never ready for local: w stays uninitialized") {
  model m;
  const value never = report_uninitialized_variables(m.g, std::vector{m.g.variable("never", {}, {.local = true})});
  session_manager manager(
      {.local_init_op = initializer_of(m.w), .ready_op = m.ready_v, .ready_for_local_init_op = m.ready_v});
  m.put_checkpoint();
  auto r = manager.recover_session(sessions_of(m.g), m.from());
  CHECK(r.initialized);
  CHECK(m.of(*r.session, "w") == 10);
  session_manager waits({.local_init_op = initializer_of(m.w), .ready_op = m.ready, .ready_for_local_init_op = never});
  auto late = waits.recover_session(sessions_of(m.g), m.from());
  CHECK(!late.initialized);
  CHECK(says(late.why_not, "not ready for local_init: Variables not initialized: never"));
  CHECK(!late.session->is_variable_initialized("w"));
  CHECK(late.session->is_variable_initialized("v"));
}

TEST_CASE("M9 recover without a saver still runs local_init once, and so does one that fails") {
  graph g;
  const value v = g.variable("v", {}, {.init = ones});
  const value count = g.variable("count", {}, {.init = zeros, .trainable = false, .local = true});
  const value more = assign_add(count, g.constant(1.0));
  for (const bool ready : {true, false}) {
    session_manager manager({.local_init_op = more, .ready_op = report_uninitialized_variables(g, std::vector{v})});
    auto r = manager.recover_session(
        [&]() -> std::unique_ptr<base_session> {
          auto s = sessions_of(g)();
          s->run(initializer_of(count));
          if (ready) s->run(initializer_of(v));
          return s;
        },
        {});
    CHECK(!r.initialized);
    CHECK(r.session->variable("count").as<float>()[0] == 1);
  }
}

TEST_CASE("M10 wait_for_session: v is initialized by another session of the resources, w by local init here") {
  testing::hand_tasks hand;
  model m;
  session_resources box;
  counting count{m.g, &box};
  session_manager manager({.local_init_op = initializer_of(m.w),
                           .ready_op = m.ready,
                           .ready_for_local_init_op = m.ready_v,
                           .recovery_wait_secs = 1},
                          hand.tasks());
  std::unique_ptr<base_session> got;
  const value of_v = initializer_of(m.v);
  auto waiter =
      hand.tasks().start("a test", "do without", [&] { got = manager.wait_for_session(count.opener(), 100); });
  hand.advance(2);
  CHECK(got == nullptr);
  session chief{m.g, shared_resources(box)};
  chief.run(of_v);
  hand.advance(1);
  waiter.join();
  REQUIRE(got != nullptr);
  CHECK(got->is_variable_initialized("v"));
  CHECK(m.of(*got, "w") == 1);
  CHECK(count.made.size() == 4);
}

TEST_CASE("M11 prepare where the model does not get ready for local_init; M12 where local init leaves ready_op unmet") {
  model m;
  const value other = m.g.variable("other", {}, {.init = ones});
  const value of_other = report_uninitialized_variables(m.g, std::vector{other});
  session_manager never({.local_init_op = m.local_init, .ready_op = m.ready, .ready_for_local_init_op = of_other});
  CHECK(says(refusal<failed_precondition>([&] { never.prepare_session(sessions_of(m.g), {.init_op = m.init}); }),
             "Init operations did not make model ready for local_init"));
  session_manager unmet({.local_init_op = m.local_init, .ready_op = of_other});
  const std::string why =
      refusal<failed_precondition>([&] { unmet.prepare_session(sessions_of(m.g), {.init_op = m.init}); });
  CHECK(says(why, "Init operations did not make model ready.  Init op: "));
  CHECK(says(why, "error: Variables not initialized: other"));
}

TEST_CASE("the warnings of a restore are passed on: a state file with another machine's paths, prepare and recover") {
  model m;
  m.put_checkpoint();
  publish(m.files, "runs/checkpoint", "model_checkpoint_path: \"/elsewhere/model-1.ckpt\"\n");
  session_manager manager({.ready_op = m.ready_v});
  std::vector<std::string> lines;
  auto from = m.from();
  from.log = [&](std::string_view line) { lines.emplace_back(line); };
  CHECK(m.of(*manager.prepare_session(sessions_of(m.g), {.init_op = m.init, .from = from}), "v") == 10);
  CHECK(m.of(*manager.recover_session(sessions_of(m.g), from).session, "v") == 10);
  REQUIRE(lines.size() == 2);
  for (const auto& line : lines) CHECK(line.find("/elsewhere/model-1.ckpt") != std::string::npos);
}

TEST_CASE("M13 checkpoint_filename_with_path restores that file; both paths are refused") {
  model m;
  m.put_checkpoint(7, "elsewhere/model");
  m.put_checkpoint();
  session_manager manager({.ready_op = m.ready_v});
  const std::string path = "elsewhere/model-1.ckpt";
  CHECK(m.of(*manager.prepare_session(sessions_of(m.g),
                                      {.from = {.saver = &m.saves, .checkpoint_filename_with_path = path}}),
             "v") == 7);
  CHECK(says(refusal<invalid_argument>([&] {
               manager.prepare_session(
                   sessions_of(m.g),
                   {.from = {.saver = &m.saves, .checkpoint_dir = "runs", .checkpoint_filename_with_path = path}});
             }),
             "both checkpoint_dir"));
}

TEST_CASE(
    "M14 what runs when: every checkpoint x init_op x init_fn x local_init_op x ready_for_local, by a model apart") {
  for (int bits = 0; bits < 32; ++bits) {
    const bool checkpoint = bits & 1, with_op = bits & 2, with_fn = bits & 4, local = bits & 8, guarded = bits & 16;
    if (guarded && !local) continue;
    CAPTURE(bits);
    model m;
    const value ran = m.g.variable("ran", {3}, {.init = zeros, .trainable = false, .local = true});
    const auto marks = [&](int which, value op) {  // an op that writes down that it ran
      std::vector<double> one{0, 0, 0};
      one[static_cast<std::size_t>(which)] = 1;
      const value mark = assign_add(ran, m.g.constant(one, {3}));
      return m.g.group({op, mark});
    };
    const value init = marks(0, assign(m.v, m.g.constant(1.0))), local_init = marks(2, assign(m.w, m.v));
    if (checkpoint) m.put_checkpoint();
    int calls = 0;
    bool restored = !checkpoint;
    prepare_options o{.from = m.from(), .restored = &restored};
    if (with_op) o.init_op = init;
    if (with_fn)
      o.init_fn = [&](base_session& s) {
        ++calls;
        if (with_op) CHECK(s.variable("ran").as<float>()[0] == 1);  // after the op
        if (!with_op) s.mutable_variable("v").mutable_as<float>()[0] = 2;
      };
    session_manager_options mo;
    mo.ready_op = m.ready_v;
    if (local) mo.local_init_op = local_init;
    if (guarded) mo.ready_for_local_init_op = m.ready_v;
    std::string why;
    std::unique_ptr<base_session> s;
    base_session* made = nullptr;
    try {
      s = session_manager(mo).prepare_session(
          [&]() -> std::unique_ptr<base_session> {
            auto one = sessions_of(m.g)();
            one->mutable_variable("ran");
            made = one.get();
            return one;
          },
          o);
    } catch (const failed_precondition& e) {
      why = e.what();
    }
    // the model apart
    const bool has_v = checkpoint || with_op || with_fn;
    if (!has_v) {
      CHECK(s == nullptr);
      const bool nothing = !local;
      CHECK(says(why, nothing   ? "no init_op or init_fn or local_init_op was given"
                      : guarded ? "ready for local_init"
                                : "is not initialized"));
      continue;
    }
    REQUIRE(s != nullptr);
    CHECK(s.get() == made);
    CHECK(m.of(*s, "v") == (checkpoint ? 10 : with_op ? 1 : 2));
    CHECK(restored == checkpoint);
    CHECK(calls == (!checkpoint && with_fn ? 1 : 0));
    const auto seen = s->variable("ran").as<float>();
    CHECK(seen[0] == (!checkpoint && with_op ? 1 : 0));
    CHECK(seen[2] == (local ? 1 : 0));
    if (local) CHECK(m.of(*s, "w") == m.of(*s, "v"));
  }
}

TEST_CASE(
    "waiting for a checkpoint: it is looked for every recovery_wait_secs, and its absence in the end is no error") {
  for (const int appears_after : {0, 2, 100}) {
    testing::hand_tasks hand;
    model m;
    session_manager manager({.ready_op = m.ready_v, .recovery_wait_secs = 1}, hand.tasks());
    std::unique_ptr<base_session> got;
    checkpoint_source from = m.from();
    from.wait_for_checkpoint = true, from.max_wait_secs = 5;
    if (appears_after == 0) m.put_checkpoint();
    auto waiter = hand.tasks().start("a test", "do without", [&] {
      got = manager.prepare_session(sessions_of(m.g), {.init_op = m.init, .from = from});
    });
    for (int i = 0; i < 5; ++i) {
      hand.settle();
      if (got != nullptr) break;
      if (i == appears_after) m.put_checkpoint();
      hand.advance(1);
    }
    waiter.join();
    CHECK(m.of(*got, "v") == (appears_after < 5 ? 10 : 1));
    CHECK(hand.elapsed() == (appears_after == 0 ? 0 : appears_after == 2 ? 3 : 5));
  }
}

TEST_CASE(
    "what is not about initialization is passed on; tensors and ops are ready, a boolean tensor with a true is not") {
  model m;
  const value p = m.g.placeholder("p", {});
  session_manager bad({.ready_op = p});
  CHECK(says(refusal<invalid_argument>([&] { bad.prepare_session(sessions_of(m.g), {.init_op = m.init}); }),
             "placeholder"));
  for (const auto& [op, is_ready] : {std::pair{m.g.constant(3.0), true}, std::pair{m.g.constant(3.0, int32), true},
                                     std::pair{m.g.group({m.init}), true}, std::pair{m.g.constant(0.0, boolean), true},
                                     std::pair{m.g.constant(1.0, boolean), false}}) {
    session_manager manager({.ready_op = op});
    const std::string why =
        refusal<failed_precondition>([&] { manager.prepare_session(sessions_of(m.g), {.init_op = m.init}); });
    CHECK((why == "(nothing was refused)") == is_ready);
  }
}
