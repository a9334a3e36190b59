#include <gradus/train/hooks/early_stopping_hook.hpp>

#include <gradus/checkpoint/saver.hpp>
#include <gradus/testing/hand_tasks.hpp>
#include <gradus/train/hooks/checkpoint_saver_hook.hpp>
#include <gradus/train/monitored_session.hpp>

#include <doctest/doctest.h>

#include <limits>

#include "events.hpp"
#include "hooked.hpp"

using namespace gradus;
using gradus::testing::faulty_files;

namespace {
// Two files of evaluations, written as an evaluator does: accuracy rises to step 3000, loss falls to it.
struct evaluations {
  faulty_files files;
  struct one {
    std::int64_t step;
    float accuracy, loss;
  };
  evaluations() {
    write({{1000, 0.5F, 0.9F}, {2000, 0.6F, 0.5F}});
    write({{3000, 0.7F, 0.4F}, {4000, 0.65F, 0.45F}, {5000, 0.69F, 0.41F}});
  }
  void write(const std::vector<one>& all) {
    summary_writer<faulty_files> w("eval", {}, files);
    for (const one& e : all) {
      const scalar_value values[] = {{"accuracy", e.accuracy}, {"loss", e.loss}};
      w.add_summary(values, e.step);
    }
  }
  early_stopping_options options(std::int64_t min_steps = 0) const {
    return {.eval_dir = "eval", .min_steps = min_steps, .run_every_steps = 1, .files = files};
  }
};
// Whether the hook asks for a stop after one run of a session.
bool stops(const early_stopping_hook& hook) {
  graph g;
  create_global_step(g);
  const any_hook held = hook;
  held.begin(&g);
  session<> s{g};
  s.initialize();
  detail::hook_calls calls;
  calls.bind(
      s, [](base_session& b) { return global_step(b, get_global_step(b.of())); },
      [](base_session& b, std::string_view name) { return b.variable(name); });
  const auto results = s.run(held.before_run(calls.context()).fetches, {});
  calls.values().results = std::span<const const_tensor_view>(results);
  held.after_run(calls.context(), calls.values());
  CHECK(s.variable("signal_early_stopping/STOP").as<bool>()[0] == calls.context().stop_requested());
  return calls.context().stop_requested();
}
bool says(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// A graph whose op `next` counts the global step.
struct counting {
  graph g;
  value step = create_global_step(g), next = assign_add(step, g.constant(1, int64));
  scaffold parts;
};
}  // namespace

TEST_CASE("K18 the four forms read the eval events: no decrease, no increase, lower, higher") {
  const evaluations e;
  // The best loss and accuracy are of step 3000, the last evaluation is of step 5000.
  CHECK(stops(stop_if_no_decrease_hook("loss", 2000, e.options())));
  CHECK(!stops(stop_if_no_decrease_hook("loss", 2001, e.options())));
  CHECK(stops(stop_if_no_increase_hook("accuracy", 2000, e.options())));
  CHECK(!stops(stop_if_no_increase_hook("accuracy", 2001, e.options())));
  // From step 4000 on, the metrics only get better.
  CHECK(!stops(stop_if_no_decrease_hook("loss", 1000, e.options(4000))));
  CHECK(!stops(stop_if_no_increase_hook("accuracy", 1000, e.options(4000))));
  CHECK(stops(stop_if_no_increase_hook("loss", 1000, e.options(3000))) == true);
  CHECK(stops(stop_if_no_decrease_hook("accuracy", 1000, e.options(4000))) == true);
  // A threshold that is met is not crossed.
  CHECK(stops(stop_if_higher_hook("accuracy", 0.6, e.options())));
  CHECK(!stops(stop_if_higher_hook("accuracy", static_cast<double>(0.7F), e.options())));
  CHECK(!stops(stop_if_higher_hook("accuracy", 0.695, e.options(4000))));
  CHECK(stops(stop_if_lower_hook("loss", 0.405, e.options())));
  CHECK(!stops(stop_if_lower_hook("loss", static_cast<double>(0.4F), e.options())));
  CHECK(!stops(stop_if_lower_hook("loss", 0.405, e.options(4000))));
}

TEST_CASE("K18 one boolean variable: the chief sets it and stops, and every worker stops in its next run") {
  session_resources box;
  counting of_chief, of_worker, of_third;
  bool now = false;
  const auto with = [&](counting& m) { return sessions_of(m.g, shared_resources(box)); };
  chief_session_creator c(with(of_chief), of_chief.g, of_chief.parts);
  monitored_session chief(c, {make_early_stopping_hook([&] { return now; }, {.run_every_steps = 1})});
  worker_session_creator w(with(of_worker), of_worker.g, of_worker.parts),
      t(with(of_third), of_third.g, of_third.parts);
  const early_stopping_options no_chief{.is_chief = false};
  const auto never_asked = []() -> bool { raise(status::internal, "a worker decides nothing"); };
  monitored_session worker(w, {make_early_stopping_hook(never_asked, no_chief)});
  monitored_session third(t, {make_early_stopping_hook(never_asked, no_chief)});
  int flags = 0;
  of_worker.g.for_each_in(collection::global_variables, [&](value v) {
    flags += v.type() == boolean && v.dims().rank == 0 && of_worker.g.name_of(v.id) == "signal_early_stopping/STOP";
  });
  CHECK(flags == 1);
  for (int i = 0; i < 3; ++i) {
    chief.run(of_chief.next), worker.run(of_worker.next), third.run(of_third.step);
    CHECK((!chief.should_stop() && !worker.should_stop() && !third.should_stop()));
  }
  now = true;
  chief.run(of_chief.next);
  CHECK(chief.should_stop());
  CHECK((!worker.should_stop() && !third.should_stop()));  // until they run
  worker.run(of_worker.next), third.run(of_third.step);
  CHECK((worker.should_stop() && third.should_stop()));
  CHECK(worker.raw_session()->variable("global_step").as<std::int64_t>()[0] == 8);
}

TEST_CASE("the chief decides every so many seconds or steps, every 60 seconds if nothing is said") {
  int asked = 0;
  const auto count = [&] { return ++asked < 0; };
  const auto run = [&](early_stopping_options o, std::vector<double> moves) {
    counting m;
    testing::hand_tasks hand;
    o.tasks = hand.tasks();
    chief_session_creator c(sessions_of(m.g), m.g, m.parts);
    monitored_session s(c, {make_early_stopping_hook(count, o)});
    asked = 0;
    for (const double by : moves) hand.advance(by), s.run(m.next);
    return asked;
  };
  CHECK(run({}, {0, 59, 0.5}) == 1);
  CHECK(run({}, {0, 59, 1, 1}) == 2);
  CHECK(run({.run_every_secs = 2.0}, {0, 2, 1, 1}) == 3);
  CHECK(run({.run_every_steps = 3}, {0, 0, 0, 0, 0, 0, 100}) == 3);  // steps 1, 4, 7
}

TEST_CASE("both intervals, a wrong one, no directory, no function, a negative age are refused") {
  const auto asks = [] { return true; };
  CHECK(says(
      refused<invalid_argument>([&] { make_early_stopping_hook(asks, {.run_every_secs = 1.0, .run_every_steps = 1}); }),
      "only one of run_every_secs and run_every_steps can be given; both are"));
  CHECK(says(refused<invalid_argument>([&] { make_early_stopping_hook(asks, {.run_every_steps = 0}); }), "above 0"));
  CHECK(says(refused<invalid_argument>([&] { make_early_stopping_hook(nullptr); }), "expected a function"));
  for (const auto& call : std::vector<std::function<void()>>{
           [] { stop_if_no_increase_hook("loss", 1, {}); }, [] { stop_if_no_decrease_hook("loss", 1, {}); },
           [] { stop_if_higher_hook("loss", 1, {}); }, [] { stop_if_lower_hook("loss", 1, {}); }})
    CHECK(says(refused<invalid_argument>(call), "give eval_dir, where the events of evaluations are"));
  CHECK(says(refused<invalid_argument>([] { stop_if_no_decrease_hook("loss", -1, {.eval_dir = "eval"}); }),
             "without a decrease of \"loss\" to be 0 or more, got -1"));
}

TEST_CASE("no directory yet is no evaluation; a metric that an evaluation lacks is named, with those that it has") {
  evaluations e;
  early_stopping_options elsewhere = e.options();
  elsewhere.eval_dir = "later";
  CHECK(!stops(stop_if_higher_hook("accuracy", 0, elsewhere)));
  CHECK(refused<not_found>([&] { stops(stop_if_higher_hook("auc", 0, e.options(2000))); }) ==
        "early stopping: the evaluation of step 2000 in \"eval\" has no metric \"auc\"; it has accuracy, loss");
}

TEST_CASE("a training that never found an evaluation says so at its end") {
  const evaluations e;
  std::vector<std::string> lines;
  const auto run = [&](early_stopping_options o, bool is_chief = true) {
    lines.clear();
    counting m;
    o.sink = [&](const std::string& line) { lines.push_back(line); };
    o.is_chief = is_chief;
    chief_session_creator c(sessions_of(m.g), m.g, m.parts);
    monitored_session s(c, {stop_if_no_decrease_hook("loss", 5000, o)});
    s.run(m.next);
    s.close();
    return lines;
  };
  CHECK(run(e.options()).empty());
  CHECK(run(e.options(6000)) ==
        std::vector<std::string>{"early stopping: \"eval\" has no evaluation of step 6000 or later, so nothing was "
                                 "decided; look at eval_dir, and whether an evaluator writes there"});
  early_stopping_options elsewhere = e.options();
  elsewhere.eval_dir = "evals";
  CHECK(run(elsewhere) ==
        std::vector<std::string>{"early stopping: \"evals\" has no evaluation, so nothing was decided; "
                                 "look at eval_dir, and whether an evaluator writes there"});
  CHECK(run(elsewhere, false).empty());
}

TEST_CASE("a NaN is worse than any number, wherever it stands") {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  evaluations e;
  e.write({{500, nan, nan}, {6000, nan, 0.3F}});
  CHECK(stops(stop_if_no_increase_hook("accuracy", 3000, e.options())));  // 0.7 at 3000
  CHECK(!stops(stop_if_no_increase_hook("accuracy", 3001, e.options())));
  CHECK(!stops(stop_if_no_decrease_hook("loss", 2500, e.options())));
}

TEST_CASE("the last writer of a step's metric counts, and what is no scalar is passed over") {
  evaluations e;
  e.write({{5000, 0.9F, 0.1F}});
  const eval_metrics all = read_eval_metrics("eval", e.files);
  CHECK(all.size() == 5);
  CHECK(all.at(5000).at("accuracy") == 0.9F);
  CHECK(all.at(1000) == std::map<std::string, float, std::less<>>{{"accuracy", 0.5F}, {"loss", 0.9F}});
}

TEST_CASE("the reason is said once, as a line") {
  const evaluations e;
  std::vector<std::string> lines;
  early_stopping_options o = e.options();
  o.sink = [&](const std::string& line) { lines.push_back(line); };
  CHECK(stops(stop_if_no_decrease_hook("loss", 1500, o)));
  CHECK(lines == std::vector<std::string>{
                     "requesting early stopping at global step 0: no decrease in metric \"loss\" for 2000 steps, which "
                     "is greater than or equal to max steps (1500) configured"});
}

TEST_CASE("the variable is in the checkpoint; a graph that is finalized too early is refused") {
  faulty_files files;
  const auto saves = std::make_shared<saver<flat_binary, faulty_files>>(saver_options{}, flat_binary{}, files);
  bool now = false;
  {
    counting m;
    m.parts = scaffold({.saver = saves});
    chief_session_creator c(sessions_of(m.g), m.g, m.parts, {.checkpoint_dir = "runs"});
    monitored_session s(c, {make_early_stopping_hook([&] { return now; }, {.run_every_steps = 1}),
                            checkpoint_saver_hook("runs", {.save_steps = 100, .parts = &m.parts})});
    s.run(m.next);
    now = true;
    s.run(m.next);
    CHECK(s.should_stop());
    s.close();
  }
  counting m;
  m.parts = scaffold({.saver = saves});
  chief_session_creator c(sessions_of(m.g), m.g, m.parts, {.checkpoint_dir = "runs"});
  monitored_session again(c, {make_early_stopping_hook([] { return false; }, {.is_chief = false})});
  again.run(m.step);
  CHECK(again.should_stop());

  counting early;
  early.g.finalize();
  chief_session_creator d(sessions_of(early.g), early.g, early.parts);
  CHECK(says(
      refused<failed_precondition>([&] { monitored_session s(d, {make_early_stopping_hook([] { return false; })}); }),
      "make the monitored session before anything finalizes the graph"));
}

// As in TensorFlow: a restore reads what the graph has, and refuses a checkpoint that lacks it.
TEST_CASE("a directory that was trained with the hook goes on without it; one that was trained without refuses it") {
  const evaluations e;
  const auto run = [&](const std::string& dir, bool stops_early) {
    counting m;
    scaffold parts(
        {.saver = std::make_shared<saver<flat_binary, faulty_files>>(saver_options{}, flat_binary{}, e.files)});
    chief_session_creator chief(sessions_of(m.g), m.g, parts, {.checkpoint_dir = dir});
    std::vector<any_hook> hooks = {checkpoint_saver_hook(dir, {.save_steps = 1, .parts = &parts})};
    if (stops_early) hooks.push_back(stop_if_no_decrease_hook("loss", 2001, e.options()));
    monitored_session s(chief, hooks);
    std::int64_t at = 0;
    s.within([&] { at = s.run(m.next).as<std::int64_t>()[0]; });
    return at;
  };
  CHECK(run("with", true) == 1);
  CHECK(run("with", false) == 2);
  CHECK(run("without", false) == 1);
  std::string said;
  try {
    run("without", true);
  } catch (const error& refused) {
    said = refused.what();
  }
  CHECK(says(said, "missing in the file: \"signal_early_stopping/STOP\""));
}
