#include <gradus/train/hooks/profiler_hook.hpp>

#include <gradus/store/json.hpp>
#include <gradus/testing/hand_tasks.hpp>
#include <gradus/train/monitored_session.hpp>

#include <doctest/doctest.h>

#include <algorithm>

#include "events.hpp"
#include "hooked.hpp"

using namespace gradus;

namespace {
struct profiled {
  graph g;
  value step = create_global_step(g), next = assign_add(step, g.constant(1, int64));
  event_log log;
  testing::hand_tasks hand;
  scaffold parts;
  chief_session_creator chief{sessions_of(g), g, parts};

  // Runs, one at each of these times; the steps of the timelines.
  std::vector<int> timelines(profiler_options o, const std::vector<double>& times) {
    o.output_dir = "profiles", o.files = log.files, o.tasks = hand.tasks(), o.summary_writer = log.writer;
    monitored_session s(chief, {profiler_hook(o)});
    for (const double at : times) {
      hand.advance(at - hand.elapsed());
      s.run(next);
    }
    s.close();
    std::vector<int> steps;
    std::vector<std::string> names;
    if (log.files.list("profiles", names) != 0) return {};
    for (const auto& n : names)
      if (n.starts_with("timeline-")) steps.push_back(std::stoi(n.substr(9)));
    std::sort(steps.begin(), steps.end());
    return steps;
  }
};
}  // namespace

TEST_CASE("K16 both intervals or none are refused") {
  CHECK_THROWS_AS(profiler_hook({.save_steps = 1, .save_secs = 1.0}), invalid_argument);
  CHECK_THROWS_AS(profiler_hook({}), invalid_argument);
}

TEST_CASE("K16 not at the first step, then every 2nd: steps 3 and 5, with their run metadata") {
  profiled m;
  CHECK(m.timelines({.save_steps = 2}, {0, 0, 0, 0, 0}) == std::vector<int>{3, 5});
  m.log.writer->flush();
  std::vector<std::int64_t> steps;
  m.log.each([&](const event& e) {
    if (e.what == event_kind::tagged_run_metadata) steps.push_back(e.step);
  });
  CHECK(steps == std::vector<std::int64_t>{3, 5});
  const auto bytes = read_file(m.log.files, "profiles/timeline-3.json");
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  CHECK(text.find(R"({"traceEvents":[{"ph":"X","cat":"Op","name":"AssignAdd","pid":0,"tid":0,"ts":)") == 0);
}

TEST_CASE("K16 every 2 seconds: at 2.5 and 4.5, not at 4.4") {
  profiled m;
  CHECK(m.timelines({.save_secs = 2.0}, {0, 0.5, 2.5, 4.4, 4.5}) == std::vector<int>{3, 5});
}

TEST_CASE("a timeline has one event for each node, in microseconds, and is JSON whatever the names are") {
  run_metadata told;
  CHECK(detail::timeline_of(told) == R"({"traceEvents":[]})");
  told.nodes = {{"MatMul", "a \"b\"\n", 1, 0.000001, 0.0000035}, {"Relu", "", 0, 0.5, 0.5}};
  CHECK(
      detail::timeline_of(told) ==
      R"({"traceEvents":[{"ph":"X","cat":"Op","name":"MatMul","pid":0,"tid":1,"ts":1.000,"dur":2.500,"args":{"name":"a \"b\"\n"}},)"
      R"({"ph":"X","cat":"Op","name":"Relu","pid":0,"tid":0,"ts":500000.000,"dur":0.000,"args":{"name":""}}]})");
}
