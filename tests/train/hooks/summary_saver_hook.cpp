#include <gradus/train/hooks/summary_saver_hook.hpp>

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
// Summaries of a hook after these runs, one of each `secs`.
std::vector<int> saved_steps(summary_saver_options o, event_log& log, int runs, double secs) {
  hooked m;
  testing::hand_tasks hand;
  o.summary_writer = log.writer, o.tasks = hand.tasks();
  o.summary_op = {{"my_summary", m.g.constant(3.5)}, {"other", m.g.constant(2.0, float64)}};
  const any_hook h = summary_saver_hook(o);
  m.create(h);
  for (int step = 1; step <= runs; ++step) m.run_to(h, step), hand.advance(secs);
  m.end(h);
  return steps_of(log.of("my_summary"));
}
}  // namespace

TEST_CASE("K12 neither or both of scaffold and op, both intervals or none: refused") {
  graph g;
  scaffold parts;
  const value v = g.constant(1.0);
  CHECK_THROWS_AS(summary_saver_hook({.save_steps = 1}), invalid_argument);
  CHECK_THROWS_AS(summary_saver_hook({.save_steps = 1, .parts = &parts, .summary_op = {{"v", v}}}), invalid_argument);
  CHECK_THROWS_AS(summary_saver_hook({.summary_op = {{"v", v}}}), invalid_argument);
  CHECK_THROWS_AS(summary_saver_hook({.save_steps = 1, .save_secs = 1.0, .summary_op = {{"v", v}}}), invalid_argument);
}

TEST_CASE("K12 every 8 of 30: 1, 9, 17, 25, of several ops at once, behind a START") {
  event_log log;
  CHECK(saved_steps({.save_steps = 8}, log, 30, 0.1) == std::vector<int>{1, 9, 17, 25});
  const auto other = log.of("other");
  CHECK((other.size() == 4 && other[3].first == 25 && other[3].second == 2));
  CHECK(log.of("my_summary")[0].second == 3.5f);
  std::vector<std::int64_t> starts;
  log.each([&](const event& e) {
    if (e.what == event_kind::session_log) starts.push_back(e.step);
  });
  CHECK(starts == std::vector<std::int64_t>{1});
}

TEST_CASE("K12 every .5 s with steps of a second: each; every 9 s at 3.1 s a step: 1, 4, 7") {
  event_log often, seldom;
  CHECK(saved_steps({.save_secs = 0.5}, often, 4, 1) == std::vector<int>{1, 2, 3, 4});
  CHECK(saved_steps({.save_secs = 9.0}, seldom, 8, 3.1) == std::vector<int>{1, 4, 7});
}

TEST_CASE("K12 with a scaffold the graph's scalar summaries are written; what is no float scalar is refused") {
  hooked m;
  event_log log;
  const value loss = m.g.constant(0.25);
  m.g.summary_scalar("loss", loss);
  scaffold parts;
  const any_hook h = summary_saver_hook({.save_steps = 1, .summary_writer = log.writer, .parts = &parts});
  m.create(h);
  m.run_to(h, 1);
  const auto points = log.of("loss");
  CHECK((points.size() == 1 && points[0].second == 0.25f));
  CHECK(refused<invalid_argument>([&] {
          graph_summary({{"v", m.g.constant({1, 2}, {2})}});
        }).find("expected one number for \"v\", got float32 [2]") != std::string::npos);
}
