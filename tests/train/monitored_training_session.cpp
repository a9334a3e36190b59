#include <gradus/train/monitored_training_session.hpp>

#include <gradus/codec/state_file.hpp>
#include <gradus/codec/tensor_bundle.hpp>
#include <gradus/cpu/device.hpp>
#include <gradus/ops/state.hpp>
#include <gradus/run/session.hpp>
#include <gradus/summary/reader.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/hooks/stop_at_step_hook.hpp>

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "run_files.hpp"

using namespace gradus;
using steps = std::vector<std::int64_t>;

namespace {
struct model {
  testing::temp_dir dir;
  graph g;
  value step = create_global_step(g), next = assign_add(step, g.constant(1, int64));
  model() { g.summary_scalar("my_summary_tag", g.constant(1.0) * 2.0); }
  std::string path() const { return dir.path(); }

  // Runs until a step, or a number of runs; the last step.
  std::int64_t train(monitored_training_options o, int runs) {
    monitored_training_session s(g, sessions_of(g), o);
    std::int64_t last = 0;
    s.within([&] {
      for (int i = 0; i < runs && !s.should_stop(); ++i) last = s.run(next).as<std::int64_t>()[0];
    });
    return last;
  }
  // The steps of each tag in the event files.
  std::map<std::string, std::vector<std::int64_t>> tags() const {
    std::map<std::string, std::vector<std::int64_t>> found;
    for (const auto& f : std::filesystem::directory_iterator(path())) {
      if (f.path().filename().string().find(event_file_prefix) != 0) continue;
      summary_iterator all(f.path().string());
      for (const auto& e : all)
        for (const auto& v : e.values) found[v.tag].push_back(e.step);
    }
    return found;
  }
  int event_files() const {
    int n = 0;
    for (const auto& f : std::filesystem::directory_iterator(path()))
      n += f.path().filename().string().starts_with(event_file_prefix);
    return n;
  }
  // Steps of the checkpoints that the state file names.
  std::vector<std::string> checkpoints() const {
    const auto state = read_state_file(posix{}, path());
    return state ? state->all : std::vector<std::string>{};
  }
};
}  // namespace

TEST_CASE("H9 101 steps: the user's tag and the steps per second are in the log") {
  model m;
  CHECK(m.train({.checkpoint_dir = m.path()}, 101) == 101);
  const auto tags = m.tags();
  CHECK(tags.at("my_summary_tag") == std::vector<std::int64_t>{1, 101});
  CHECK(tags.at("global_step/sec") == std::vector<std::int64_t>{101});
}

TEST_CASE("hooks that are given the directory of the run write into its event file, and hide no curve of it") {
  for (const bool after_each_other : {false, true}) {
    CAPTURE(after_each_other);
    model m;
    const value shown = m.g.constant(1.0);
    auto hooks = [&, made = std::vector<any_hook>()]() mutable {
      if (!made.empty() && after_each_other) return made;
      made = {summary_saver_hook({.save_steps = 1, .output_dir = m.path() + "/", .summary_op = {{"mine", shown}}}),
              step_counter_hook({.every_n_steps = 1, .output_dir = m.path()})};
      return made;
    };
    const steps all{1, 2, 3, 4, 5, 6};
    for (const int run : {1, 2}) {
      m.train({.checkpoint_dir = m.path(),
               .hooks = hooks(),
               .save_checkpoint_steps = 2,
               .save_summaries_steps = 1,
               .log_step_count_steps = 2},
              3);
      const auto curves = run_files::read_curves(posix{}, m.path());
      const steps until(all.begin(), all.begin() + 3 * run);
      CHECK(run_files::steps_of(curves, "my_summary_tag") == until);
      CHECK(run_files::steps_of(curves, "mine") == until);
      CHECK(m.event_files() == (after_each_other ? 1 : run));
    }
  }
}

TEST_CASE("H10 save_checkpoint_steps 100, 30 steps: saved at 0 and at the end; begun again it reads 30") {
  model m;
  m.train({.checkpoint_dir = m.path(), .save_checkpoint_steps = 100.0}, 30);
  CHECK(m.checkpoints() == std::vector<std::string>{"model-0.ckpt", "model-30.ckpt"});
  CHECK(m.train({.checkpoint_dir = m.path(), .save_checkpoint_steps = none, .save_summaries_steps = none}, 1) == 31);
  CHECK(m.checkpoints() == std::vector<std::string>{"model-0.ckpt", "model-30.ckpt"});
}

TEST_CASE("H11 not the chief: no saver, no summaries; it waits for the variables of another session") {
  model m;
  session_resources box;
  session chief{m.g, shared_resources(box)};
  chief.initialize();
  {
    std::vector<any_hook> chief_only{stop_at_step_hook({.last_step = 1})};
    monitored_training_session s(m.g, sessions_of(m.g, shared_resources(box)),
                                 {.is_chief = false, .checkpoint_dir = m.path(), .chief_only_hooks = chief_only});
    for (int i = 0; i < 3; ++i) s.run(m.next);
    CHECK(!s.should_stop());  // the chief's hooks are the chief's
    s.close();
  }
  CHECK(chief.run(m.step).as<std::int64_t>()[0] == 3);
  CHECK(std::filesystem::is_empty(m.path()));
}

TEST_CASE("both numbers of a pair are refused, and the user's hooks come last") {
  model m;
  CHECK_THROWS_AS(m.train({.checkpoint_dir = m.path(), .save_checkpoint_secs = 1.0, .save_checkpoint_steps = 1.0}, 1),
                  invalid_argument);
  CHECK_THROWS_AS(m.train({.checkpoint_dir = m.path(), .save_summaries_steps = 1.0, .save_summaries_secs = 1.0}, 1),
                  invalid_argument);
  struct looks {
    std::string path;
    std::vector<std::string>* seen;
    void after_run(run_context&, const run_values&) {
      const auto state = read_state_file(posix{}, path);
      *seen = state ? state->all : std::vector<std::string>{};
    }
  };
  std::vector<std::string> first, last;
  m.train({.checkpoint_dir = m.path(),
           .hooks = {looks{m.path(), &last}},
           .chief_only_hooks = {looks{m.path(), &first}},
           .save_checkpoint_steps = 1.0},
          1);
  CHECK(first == std::vector<std::string>{"model-0.ckpt"});
  CHECK(last == std::vector<std::string>{"model-0.ckpt", "model-1.ckpt"});
}

TEST_CASE("K9 graph and meta graph stand once in the event file, and each checkpoint is told") {
  model m;
  m.train({.checkpoint_dir = m.path(), .save_checkpoint_steps = 2}, 4);
  std::string told;
  for (const auto& f : std::filesystem::directory_iterator(m.path())) {
    if (f.path().filename().string().find(event_file_prefix) != 0) continue;
    summary_iterator all(f.path().string());
    for (const auto& e : all)
      if (e.what == event_kind::graph_def || e.what == event_kind::meta_graph_def)
        told += e.what == event_kind::graph_def ? "graph " : "meta ";
      else if (e.what == event_kind::session_log && e.log.status == session_log_status::checkpoint)
        told += text(e.step, ' ');
  }
  CHECK(told == "graph meta 0 2 4 ");
  CHECK(std::filesystem::exists(m.path() + "/graph.pbtxt"));
}

TEST_CASE("a chief that saves locks its directory until its session is closed, however that ends") {
  model m, other;
  const monitored_training_options there{.checkpoint_dir = m.path(), .save_checkpoint_steps = 1};
  const auto second = [&](monitored_training_options o) {
    const auto before = std::distance(std::filesystem::directory_iterator(m.path()), {});
    try {
      monitored_training_session s(other.g, sessions_of(other.g), o);
      s.close();
    } catch (const failed_precondition& e) {
      CHECK(std::distance(std::filesystem::directory_iterator(m.path()), {}) == before);  // it has written nothing
      return std::string(e.what());
    }
    return std::string();
  };
  const std::string refused =
      text("expected to be the only one that writes into \"", m.path(), "\", but this process (");
  {
    monitored_training_session s(m.g, sessions_of(m.g), there);
    s.run(m.next);
    CHECK(second(there).starts_with(refused));
    const pid_t child = ::fork();
    if (child == 0) {
      bool found = false;
      try {
        (void)hold_directory(posix{}, m.path());
      } catch (const failed_precondition&) {
        found = true;
      }
      ::_exit(found ? 0 : 1);
    }
    int how = -1;
    ::waitpid(child, &how, 0);
    CHECK((WIFEXITED(how) && WEXITSTATUS(how) == 0));
    // Who saves nothing is not refused.
    CHECK(second({.checkpoint_dir = m.path(), .save_checkpoint_steps = none, .save_summaries_steps = none}).empty());
    s.run(m.next);
    CHECK(m.checkpoints().back() == "model-2.ckpt");
    s.close();
    CHECK(second(there).empty());  // the object is still alive
  }
  monitored_training_session failed(m.g, sessions_of(m.g), there);
  CHECK_THROWS_AS(failed.within([&] {
    CHECK(second(there).starts_with(refused));
    raise(status::data_loss, "a bad record");
  }),
                  data_loss);
  CHECK(second(there).empty());
  const scaffold_options bad{.init_fn = [](scaffold&, base_session&) { raise(status::internal, "no session"); }};
  model fresh;
  CHECK_THROWS_AS(fresh.train({.checkpoint_dir = fresh.path(), .parts = bad}, 1), internal);
  CHECK(fresh.train({.checkpoint_dir = fresh.path()}, 1) == 1);
}

TEST_CASE("a session that is made again after a peer has died keeps its directory") {
  model m;
  int left = 1;
  std::string seen;
  struct dies {
    int* left;
    std::string path;
    std::string* seen;
    void after_create_session(hooked_session&) {
      try {
        (void)hold_directory(posix{}, path);
        *seen += "free ";
      } catch (const failed_precondition&) {
        *seen += "held ";
      }
    }
    void after_run(run_context&, const run_values&) {
      if ((*left)-- > 0) raise(status::aborted, "it died");
    }
  };
  m.train({.checkpoint_dir = m.path(), .hooks = {dies{&left, m.path(), &seen}}, .save_checkpoint_steps = 1}, 3);
  CHECK(seen == "held held ");
  CHECK(m.checkpoints().back() == "model-4.ckpt");
}

TEST_CASE_TEMPLATE("a session saves at once what it has restored, which keeps its rank and its files", Codec,
                   flat_binary, tensor_bundle) {
  const testing::temp_dir dir;
  const auto files =
      std::make_shared<saver<Codec>>(saver_options{.max_to_keep = 1, .best = {.count = 1, .higher_is_better = false}});
  for (const double metric : {0.1, 0.9, 0.5}) {  // after 10, 20 and 30 steps
    graph g;
    const value step = create_global_step(g);
    const value next = assign_add(step, g.constant(1, int64));
    scaffold parts;
    monitored_training_options o{.checkpoint_dir = dir.path()};
    o.parts.saver = files, o.save_checkpoint_steps = 1000.0;
    monitored_training_session s(g, sessions_of(g), o);
    s.within([&] {
      for (int i = 0; i < 10; ++i) s.run(next);
    });
    files->measured(metric);
  }
  const auto state = read_state_file(posix{}, dir.path());
  REQUIRE(state);
  REQUIRE(state->best.size() == 1);
  CHECK(checkpoint_step(state->best[0].first) == 10);
  CHECK(state->best[0].second == 0.1);
}
