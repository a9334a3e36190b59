#include <gradus/train/hooks/step_counter_hook.hpp>

#include <gradus/testing/hand_tasks.hpp>

#include <doctest/doctest.h>

#include "events.hpp"
#include "hooked.hpp"

using namespace gradus;

namespace {
std::vector<int> steps_of(const std::vector<std::pair<std::int64_t, float>>& points) {
  std::vector<int> steps;
  for (const auto& p : points) steps.push_back(static_cast<int>(p.first));
  return steps;
}
}  // namespace

TEST_CASE("K10 every 10 of 30: values at 11 and 21, and the rate is steps over seconds") {
  hooked m;
  event_log log;
  testing::hand_tasks hand;
  const any_hook h = step_counter_hook({.every_n_steps = 10, .summary_writer = log.writer, .tasks = hand.tasks()});
  m.create(h);
  for (int step = 1; step <= 30; ++step) hand.advance(0.5), m.run_to(h, step);
  m.end(h);
  const auto points = log.of("global_step/sec");
  CHECK(steps_of(points) == std::vector<int>{11, 21});
  for (const auto& p : points) CHECK(p.second == 2);
}

TEST_CASE("K10 by seconds: at 2 and 3; both intervals or none are refused") {
  hooked m;
  event_log log;
  testing::hand_tasks hand;
  const any_hook h = step_counter_hook(
      {.every_n_steps = {}, .every_n_secs = 0.1, .summary_writer = log.writer, .tasks = hand.tasks()});
  m.create(h);
  for (int step = 1; step <= 3; ++step) m.run_to(h, step), hand.advance(0.2);
  CHECK(steps_of(log.of("global_step/sec")) == std::vector<int>{2, 3});
  CHECK_THROWS_AS(step_counter_hook({.every_n_secs = 1.0}), invalid_argument);
  CHECK_THROWS_AS(step_counter_hook({.every_n_steps = {}}), invalid_argument);
}

TEST_CASE("K10 the tag is the global step's name with /sec, also in a scope") {
  graph g;
  value step;
  {
    const auto scope = g.name_scope("bar");
    step = g.variable("foo", {}, {.init = zeros, .trainable = false, .type = int64});
  }
  g.add_to(collection::global_step, step);
  const value next = assign_add(step, g.constant(1, int64));
  session s{g};
  s.initialize();
  detail::hook_calls calls;
  calls.bind(
      s, [](base_session& b) { return global_step(b, get_global_step(b.of())); },
      [](base_session& b, std::string_view name) { return b.variable(name); });
  event_log log;
  const any_hook h = step_counter_hook({.every_n_steps = 1, .summary_writer = log.writer});
  h.begin(), h.after_create_session(calls.session());
  for (int i = 0; i < 3; ++i) {
    const run_results results = s.run(h.before_run(calls.context()).fetches, {});
    s.run(next);
    calls.values().results = results;
    h.after_run(calls.context(), calls.values());
  }
  CHECK(steps_of(log.of("bar/foo/sec")) == std::vector<int>{2, 3});
}

TEST_CASE("K10 a step that rises is no reason to warn; one that stays for 20 runs is, once in 20") {
  for (const bool rises : {true, false}) {
    hooked m;
    std::vector<std::string> lines;
    const any_hook h =
        step_counter_hook({.every_n_steps = 1000, .sink = [&](const std::string& l) { lines.push_back(l); }});
    m.create(h);
    for (int i = 1; i <= 45; ++i) m.run_to(h, rises ? i : 0);
    CHECK(lines.size() == (rises ? 0 : 2));
    for (const auto& l : lines)
      CHECK(l.find("It seems that global step (\"global_step\") has not been increased") == 0);
  }
}

TEST_CASE("K11 steps a run and every: 5 and 10 gives 15, 25; 5 and 5 gives 10, 15, 20, 25; 10 and 5 gives 20 to 50") {
  struct row {
    int per_run, every;
    std::vector<int> at;
    int last;
  };
  for (const row& r : {row{5, 10, {15, 25}, 30}, row{5, 5, {10, 15, 20, 25}, 25}, row{10, 5, {20, 30, 40, 50}, 50}}) {
    hooked m;
    event_log log;
    const any_hook h =
        step_counter_hook({.every_n_steps = r.every, .summary_writer = log.writer, .steps_per_run = r.per_run});
    m.create(h);
    for (int step = r.per_run; step <= r.last; step += r.per_run) m.run_to(h, step);
    CHECK(steps_of(log.of("global_step/sec")) == r.at);
  }
}
