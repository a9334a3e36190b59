// Every hook that acts by the global step, in a monitored session that is made again at a lower step.
#include <gradus/cpu/device.hpp>
#include <gradus/input/range.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/run/session.hpp>
#include <gradus/testing/hand_tasks.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/hooks/checkpoint_input_pipeline_hook.hpp>
#include <gradus/train/hooks/checkpoint_saver_hook.hpp>
#include <gradus/train/hooks/early_stopping_hook.hpp>
#include <gradus/train/hooks/logging_tensor_hook.hpp>
#include <gradus/train/hooks/profiler_hook.hpp>
#include <gradus/train/hooks/step_counter_hook.hpp>
#include <gradus/train/hooks/stop_at_step_hook.hpp>
#include <gradus/train/hooks/summary_saver_hook.hpp>
#include <gradus/train/monitored_session.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "../train/hooks/events.hpp"

using namespace gradus;
using steps = std::vector<std::int64_t>;

namespace {
// A peer that dies once, behind the run after which the global step is this.
struct dying {
  std::int64_t at;
  void after_run(run_context& c, const run_values&) {
    if (c.session().global_step() == at) at = -1, raise(status::aborted, "it died");
  }
};

// Sessions whose global step begins at 20, and at 15 where the first one has died at 30.
struct twice final : session_creator {
  graph g;
  value step = create_global_step(g), next = assign_add(step, g.constant(1, int64));
  value to = g.placeholder("to", {}, int64), set = assign(step, to);
  testing::hand_tasks hand;
  event_log log;
  std::vector<std::int64_t> begins{20, 15};
  std::size_t made = 0;

  graph* of() const override { return const_cast<graph*>(&g); }
  std::unique_ptr<base_session> create_session() override {
    auto s = std::make_unique<session<>>(g);
    s->initialize();
    s->run(set, {{to, std::span<const std::int64_t>(&begins.at(made++), 1)}});
    return s;
  }
  // Runs, one a second, until the second session has come to this step, or until a hook ends it; the last step.
  std::int64_t run_to(std::int64_t last, any_hook h) {
    monitored_session s(*this, {std::move(h), dying{30}});
    std::int64_t now = 0;
    while (!s.should_stop() && (made < 2 || now < last)) hand.advance(1), now = s.run(next).as<std::int64_t>()[0];
    CHECK(made == 2);
    s.close();
    return now;
  }
  // The steps of the events that `of` takes.
  template <class Of>
  steps events(Of of) {
    log.writer->flush();
    steps found;
    log.each([&](const event& e) {
      if (of(e)) found.push_back(e.step);
    });
    return found;
  }
};
bool is_start(const event& e) { return e.what == event_kind::session_log && e.log.status == session_log_status::start; }
bool is_summary(const event& e) { return e.what == event_kind::summary; }
}  // namespace

TEST_CASE("summaries: every 3 steps from the first run of each session, which begins with its START") {
  for (const bool by_secs : {false, true}) {
    twice m;
    summary_saver_options o{
        .summary_writer = m.log.writer, .summary_op = {{"shown", m.g.constant(3.5)}}, .tasks = m.hand.tasks()};
    by_secs ? void(o.save_secs = 3) : void(o.save_steps = 3);
    CHECK(m.run_to(25, summary_saver_hook(o)) == 25);
    CHECK(m.events(is_summary) == steps{21, 24, 27, 30, 16, 19, 22, 25});
    CHECK(m.events(is_start) == steps{21, 16});
  }
}

TEST_CASE("steps per second: none over the gap between two sessions") {
  for (const bool by_secs : {false, true}) {
    twice m;
    step_counter_options o{.every_n_steps = {}, .summary_writer = m.log.writer, .tasks = m.hand.tasks()};
    by_secs ? void(o.every_n_secs = 3) : void(o.every_n_steps = 3);
    m.run_to(25, step_counter_hook(o));
    CHECK(m.events(is_summary) == steps{24, 27, 30, 19, 22, 25});
    for (const auto& [step, rate] : m.log.of("global_step/sec")) CHECK(rate == 1);
  }
}

TEST_CASE("profiles: a step that was traced before the gap is traced again") {
  for (const bool by_secs : {false, true}) {
    twice m;
    profiler_options o{
        .output_dir = "profiles", .summary_writer = m.log.writer, .files = m.log.files, .tasks = m.hand.tasks()};
    by_secs ? void(o.save_secs = 3) : void(o.save_steps = 3);
    m.begins[1] = 17;  // its first run is not traced, as a first session's
    CHECK(m.run_to(27, profiler_hook(o)) == 27);
    CHECK(m.events([](const event& e) { return e.what == event_kind::tagged_run_metadata; }) ==
          steps{24, 27, 30, 21, 24, 27});
    std::string all;
    m.log.each([&](const event& e) {
      if (e.what == event_kind::tagged_run_metadata)
        all.append(reinterpret_cast<const char*>(e.bytes.data()), e.bytes.size());
    });
    for (const char* tag : {"step_24", "step_27", "step_30", "step_21_2", "step_24_2", "step_27_2"})
      CHECK(all.find(tag) != std::string::npos);
  }
}

TEST_CASE("early stopping: decided every 3 steps") {
  twice m;
  steps decided;
  monitored_session* running = nullptr;
  const any_hook h = make_early_stopping_hook(
      [&] {
        decided.push_back(global_step(*running->raw_session(), m.step));
        return false;
      },
      {.run_every_steps = 3, .tasks = m.hand.tasks()});
  monitored_session s(m, {h, dying{30}});
  running = &s;
  for (std::int64_t now = 0; m.made < 2 || now < 25;) now = s.run(m.next).as<std::int64_t>()[0];
  CHECK(decided == steps{21, 24, 27, 30, 16, 19, 22, 25});
}

TEST_CASE("checkpoints: at the beginning of each session, then every 3 steps, and at the end") {
  twice m;
  steps saved;
  struct seeing {
    steps* to;
    void after_save(hooked_session&, std::int64_t step) const { to->push_back(step); }
  };
  m.run_to(25, checkpoint_saver_hook("saved", {.save_steps = 3,
                                               .saver = std::make_shared<saver<flat_binary, testing::faulty_files>>(
                                                   saver_options{}, flat_binary{}, m.log.files),
                                               .listeners = {seeing{&saved}}}));
  CHECK(saved == steps{20, 23, 26, 29, 15, 18, 21, 24, 25});
}

TEST_CASE("positions of the input: where the first session began to read, then every 3 steps") {
  twice m;
  testing::temp_dir dir;
  auto numbers = range_dataset(100);
  std::vector<std::string> lines;
  checkpoint_input_pipeline_hook<> h(
      {.model_dir = dir.path(), .save_steps = 3, .keep = {.max_to_keep = 0}, .log = [&](std::string_view line) {
         lines.emplace_back(line);
       }});
  h.add("numbers", numbers);
  m.run_to(25, std::ref(h));
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].find("is of step 29, the model's of step 15: elements are left out") != std::string::npos);
  std::vector<std::string> names;
  posix{}.list(dir.path(), names);
  for (const int step : {16, 19, 22, 25}) {
    CAPTURE(step);
    CHECK(std::any_of(names.begin(), names.end(),
                      [&](const std::string& n) { return n.find(text("-", step, ".")) != std::string::npos; }));
  }
}

TEST_CASE("lines of tensors: by runs, whatever the global step is") {
  twice m;
  std::vector<std::string> lines;
  m.run_to(22, logging_tensor_hook({{"step", m.step}}, {.every_n_iter = 4, .sink = [&](const std::string& l) {
                                                          lines.push_back(l.substr(0, l.find(" (")));
                                                        }}));
  // The tenth run was made in both sessions.
  CHECK(lines == std::vector<std::string>{"step = 21", "step = 25", "step = 29", "step = 18", "step = 22"});
}

TEST_CASE("the last step stays what it was") {
  twice by_last, by_number;
  CHECK(by_last.run_to(99, stop_at_step_hook({.last_step = 33})) == 33);
  CHECK(by_number.run_to(99, stop_at_step_hook({.num_steps = 12})) == 32);
}
