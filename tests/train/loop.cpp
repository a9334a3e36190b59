// costs: 300
// One run loop behind two faces: what a trainer does, a supervisor does, with each policy that the loop takes.
#include <gradus/train/loop.hpp>

#include <gradus/checkpoint/background.hpp>
#include <gradus/checkpoint/staging.hpp>
#include <gradus/gradus.hpp>
#include <gradus/testing/clock.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/supervisor.hpp>
#include <gradus/train/warm_start.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "../session/turned_clock.hpp"
#include "supervised.hpp"

using namespace supervised;

namespace {
using lines = std::vector<std::string>;

struct recorder {
  using policy_for = kind::hook;
  lines* said;
  std::int64_t stop_at = -1, throw_at = -1;
  void begin() { said->push_back("begin"); }
  void after_create_session(hooked_session& s) { said->push_back(text("session ", s.global_step())); }
  void before_run(run_context& c) { said->push_back(text("before ", c.session().global_step())); }
  void after_run(run_context& c, const run_values& v) {
    said->push_back(text("after ", v.global_step));
    CHECK(c.session().global_step() == v.global_step);
    if (v.global_step == stop_at) c.request_stop();
    if (v.global_step == throw_at) raise(status::aborted, "the hook has enough");
  }
  void end(hooked_session& s) { said->push_back(text("end ", s.global_step())); }
};
struct saving_recorder {
  using policy_for = kind::saving_listener;
  lines* said;
  std::int64_t stop_at = -1;
  void begin() { said->push_back("listener begin"); }
  void before_save(hooked_session& s, std::int64_t step) {
    CHECK(s.global_step() == step);
    said->push_back(text("saving ", step));
  }
  bool after_save(hooked_session&, std::int64_t step) {
    said->push_back(text("saved ", step));
    return step == stop_at;
  }
  void end(hooked_session&, std::int64_t step) { said->push_back(text("listener end ", step)); }
};
struct lines_of_sink {
  using policy_for = kind::log_sink;
  lines* said;
  std::vector<std::int64_t>* steps;
  void line(std::string_view s) { said->emplace_back(s); }
  void step(const progress_report& r, bool) { steps->push_back(r.step); }
};

// ---- the two faces: each trains on the data until they end, as a program would
struct by_trainer {
  static constexpr const char* name = "trainer";
  template <class Data, class... Policies>
  static void run(const std::string& dir, Data data, const Policies&... policies) {
    auto t = make_trainer<line>(run_config{.model_dir = dir, .restore_fallback = true, .log_step_count_steps = 1},
                                descent, policies...);
    t.train(data, {.max_steps = 1000});
  }
};
struct by_supervisor {
  static constexpr const char* name = "supervisor";
  template <class Data, class... Policies>
  static void run(const std::string& dir, Data data, const Policies&... policies) {
    auto sv = make_supervisor<line>({.logdir = dir, .log_step_count_steps = 1, .restore_fallback = true}, descent,
                                    policies...);
    auto sess = sv.managed_session("", data);
    sv.stop_on_exception([&] {
      while (!sv.should_stop()) sess.run();
    });
  }
};
}  // namespace

TEST_CASE_TEMPLATE("a fallback goes on where the state file is damaged as well", Face, by_trainer, by_supervisor) {
  CAPTURE(Face::name);
  const testing::temp_dir dir;
  const points data;
  Face::run(dir / "a", data.all().batch(4));
  const std::string file = dir / "a/checkpoint";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  lines said;
  std::vector<std::int64_t> steps;
  Face::run(dir / "a", data.all().batch(4), lines_of_sink{&said, &steps});
  CHECK(std::ranges::any_of(said, [](const std::string& s) { return s.starts_with("restored step 2"); }));
}

TEST_CASE_TEMPLATE("hooks and listeners are called in TensorFlow's order", Face, by_trainer, by_supervisor) {
  CAPTURE(Face::name);
  const testing::temp_dir dir;
  const points data;
  lines said;
  const testing::hand_clock still;
  // The data end: a step is not made, and so nobody is told of it; what is unsaved is saved, and the hooks end.
  Face::run(dir / "short", data.all().batch(4), recorder{&said}, saving_recorder{&said}, every_steps{100}, still);
  CHECK(said == lines{"listener begin", "begin", "saving 0", "saved 0", "session 0", "before 0", "after 1", "before 1",
                      "after 2", "before 2", "saving 2", "saved 2", "listener end 2", "end 2"});
  // A hook's request ends the run after the step.
  const auto run = [&](const auto&... policies) {
    said.clear();
    Face::run(dir / "run", data.all().repeat(9).batch(4), policies..., still);
  };
  run(recorder{&said, 2}, saving_recorder{&said}, every_steps{3});
  CHECK(said == lines{"listener begin", "begin", "saving 0", "saved 0", "session 0", "before 0", "after 1", "before 1",
                      "after 2", "saving 2", "saved 2", "listener end 2", "end 2"});
  // A run that goes on saves nothing at its beginning. A checkpoint that is due is written before hooks hear of the
  // step.
  run(recorder{&said, 4}, saving_recorder{&said}, every_steps{3});
  CHECK(said == lines{"listener begin", "begin", "session 2", "before 2", "saving 3", "saved 3", "after 3", "before 3",
                      "after 4", "saving 4", "saved 4", "listener end 4", "end 4"});
  CHECK(newest_step(dir / "run") == 4);
  // A listener's request ends it too, but not at the save with which a run begins.
  said.clear();
  Face::run(dir / "first", data.all().batch(4), recorder{&said}, saving_recorder{&said, 0}, every_steps{100}, still);
  CHECK(said.back() == "end 2");
  run(recorder{&said}, saving_recorder{&said, 6}, every_steps{2});
  CHECK(said.back() == "end 6");
  CHECK(std::count(said.begin(), said.end(), "saved 6") == 1);
  // An error: what stands behind it is not called, and nothing is saved.
  CHECK_THROWS_AS(run(recorder{&said, -1, 7}, recorder{&said}, saving_recorder{&said}, every_steps{100}), aborted);
  CHECK(said == lines{"listener begin", "begin", "begin", "session 6", "session 6", "before 6", "before 6", "after 7"});
  CHECK(newest_step(dir / "run") == 6);
}

TEST_CASE_TEMPLATE("a step that diverges is no step for hooks", Face, by_trainer, by_supervisor) {
  CAPTURE(Face::name);
  const testing::temp_dir dir;
  points data;
  data.y[5] = std::numeric_limits<float>::infinity();  // in the third batch of two
  lines said;
  CHECK_THROWS_WITH_AS(
      Face::run(dir / "run", data.all().batch(2), recorder{&said}, saving_recorder{&said}, every_steps{100}),
      doctest::Contains("the model diverged: \"loss\" is infinite at step 3"), invalid_argument);
  CHECK(said == lines{"listener begin", "begin", "saving 0", "saved 0", "session 0", "before 0", "after 1", "before 1",
                      "after 2", "before 2"});
  CHECK(newest_step(dir / "run") == 0);
}

namespace {
struct looks {
  using policy_for = kind::hook;
  std::vector<double>* seen;
  void after_run(run_context& c, const run_values& v) {
    const auto kernel = c.session().variable("line/kernel").as<float>();
    seen->insert(seen->end(), {v.loss, v.result("error"), v.learning_rate, static_cast<double>(kernel[0])});
    CHECK_THROWS_WITH_AS(v.result("eror"), doctest::Contains("gives no number \"eror\"; it gives error"), not_found);
  }
};
}  // namespace

TEST_CASE_TEMPLATE("a hook sees the step's numbers and the variables behind it", Face, by_trainer, by_supervisor) {
  CAPTURE(Face::name);
  const testing::temp_dir dir;
  std::vector<double> seen;
  points data;
  Face::run(dir / "run", data.all().batch(8), looks{&seen});
  // By hand: guess = x, y = 2 x, so that loss = mean(x^2) and its derivative -2 mean(x^2); mean(x^2) = 25.5.
  CHECK(seen.size() == 4);
  CHECK(seen[0] == doctest::Approx(25.5));
  CHECK(seen[1] == seen[0]);
  CHECK(seen[2] == doctest::Approx(0.01));
  CHECK(seen[3] == doctest::Approx(1 + 0.01 * 2 * 25.5));
}

// ---- what both take: the same policies, and the same bits

namespace {
struct end_of_run {
  run_files::content state;
  run_files::curves curves;
  lines said;
  std::vector<std::int64_t> steps;
};
template <class Face, class... Policies>
end_of_run after(const Policies&... policies) {
  const testing::temp_dir dir;
  const points data;
  end_of_run out;
  Face::run(dir / "run", data.batches(3), lines_of_sink{&out.said, &out.steps}, policies...);
  out.state = run_files::newest_checkpoint(posix{}, dir / "run");
  out.curves = run_files::read_curves(posix{}, dir / "run");
  return out;
}
template <class... Policies>
void check_same(const char* what, const Policies&... policies) {
  CAPTURE(what);
  const auto plain = after<by_trainer>();
  CHECK(plain.state.step == 12);
  lines said;
  for (const auto& other :
       {after<by_trainer>(policies...), after<by_supervisor>(policies...), after<by_supervisor>(recorder{&said})}) {
    CHECK(run_files::difference(plain.state, other.state) == "");
    CHECK(plain.steps == other.steps);
    REQUIRE(other.curves.contains("loss"));
    CHECK(run_files::same_points({other.curves.at("loss").begin(), other.curves.at("loss").begin() + 1},
                                 {plain.curves.at("loss").begin(), plain.curves.at("loss").begin() + 1}));
  }
}
}  // namespace

TEST_CASE("hooks, snapshots and decisions change no bit, and a supervisor has a trainer's bits") {
  lines said;
  check_same("a hook and a listener", recorder{&said}, saving_recorder{&said});
  check_same("in place", in_place{});
  check_same("a copy", copy_snapshot{});
  check_same("rolling", rolling_snapshot{});
  check_same("a fork", fork_snapshot{});
  check_same("every fifth step", every_steps{5});
  check_same("any of two", any_of{every_steps{5}, when_better{}}, threads{2});
}

namespace {
struct sees_start {
  using policy_for = kind::hook;
  std::vector<float>* began;
  void after_create_session(hooked_session& s) {
    began->push_back(s.variable("line/kernel").as<float>()[0]);
    began->push_back(static_cast<float>(s.global_step()));
  }
};
}  // namespace

TEST_CASE_TEMPLATE("a warm start takes values over where there is no checkpoint", Face, by_trainer, by_supervisor) {
  CAPTURE(Face::name);
  const testing::temp_dir dir;
  const points data;
  lines said;
  std::vector<std::int64_t> steps;
  by_trainer::run(dir / "first", data.batches(3));
  const auto first = run_files::newest_checkpoint(posix{}, dir / "first");
  std::vector<float> began;
  const auto warm = warm_start_from(warm_start_settings{.ckpt_to_initialize_from = dir / "first"});
  const lines_of_sink sink{&said, &steps};
  Face::run(dir / "second", data.all().batch(8), warm, sink, sees_start{&began});
  float kernel = 0;
  for (const auto& [name, bytes] : first.records)
    if (name.starts_with("line/kernel ")) std::memcpy(&kernel, bytes.data(), sizeof kernel);
  CHECK(kernel != 1);
  CHECK(began == std::vector<float>{kernel, 0});
  CHECK(std::any_of(said.begin(), said.end(), [](const auto& s) { return s.starts_with("warm-started 2 variables"); }));
  // Where there is a checkpoint, it is what counts.
  began.clear();
  Face::run(dir / "second", data.all().batch(8), warm, sink, sees_start{&began});
  CHECK(began.back() == 1);
}

TEST_CASE_TEMPLATE("a damaged newest checkpoint is passed over, and said", Face, by_trainer, by_supervisor) {
  CAPTURE(Face::name);
  const testing::temp_dir dir;
  const points data;
  lines said;
  std::vector<std::int64_t> steps;
  Face::run(dir / "run", data.batches(3), every_steps{4});
  const auto newest = join_path(dir / "run", read_state_file(posix{}, dir / "run")->newest);
  auto bytes = read_file(posix{}, newest);
  bytes[bytes.size() / 2] ^= std::byte{1};
  publish(posix{}, newest, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  Face::run(dir / "run", data.batches(3), lines_of_sink{&said, &steps});
  CHECK(std::any_of(said.begin(), said.end(),
                    [&](const auto& s) { return s.starts_with("passed over") && s.find(newest) != s.npos; }));
  CHECK(steps.front() == 9);
  CHECK(newest_step(dir / "run") == 12);
}

namespace {
std::int64_t read_checkpoint_step(const std::string& dir, const char* name) {
  return run_files::read_checkpoint(posix{}, join_path(dir, name)).step;
}
}  // namespace

TEST_CASE("a supervisor keeps the best checkpoints, by what was measured") {
  const testing::temp_dir dir;
  const points data;
  {
    auto input = data.batches(2);
    saver_options files{.max_to_keep = 1};
    files.best = {.count = 1, .higher_is_better = true};
    auto sv = make_supervisor<line>({.logdir = dir / "run", .saver = files}, descent, every_steps{1});
    CHECK_THROWS_WITH_AS(sv.measured(1), doctest::Contains("the supervisor has no session"), failed_precondition);
    auto sess = sv.managed_session("", input);
    while (!sv.should_stop())
      if (sess.run()) sv.measured(sess.global_step() == 3 ? 9 : 1);
  }
  const auto state = read_state_file(posix{}, dir / "run");
  CHECK(state->newest == "model-8.ckpt");
  REQUIRE(state->best.size() == 1);
  CHECK(state->best[0].first == "model-3.ckpt");
  CHECK(read_checkpoint_step(dir / "run", "model-3.ckpt") == 3);
  CHECK(posix{}.exists(join_path(dir / "run", "model-5.ckpt")) == ENOENT);
}

namespace {
struct counts_alone {
  using policy_for = kind::hook;
  std::int64_t* calls;
  void before_run(run_context& c) { *calls += c.session().global_step() >= 0; }
  void after_run(run_context&, const run_values&) { ++*calls; }
};
struct counts_saves {
  using policy_for = kind::saving_listener;
  std::int64_t* calls;
  void after_save(hooked_session&, std::int64_t) { ++*calls; }
};
}  // namespace

TEST_CASE("a save that another thread asks for does not meet a hook") {
  const testing::temp_dir dir;
  const points data;
  std::int64_t calls = 0;  // no atomic: hooks and listeners never run at the same time
  auto input = data.all().repeat(25).batch(2);
  auto sv = make_supervisor<line>({.logdir = dir / "run"}, descent, counts_alone{&calls}, counts_saves{&calls});
  auto sess = sv.managed_session("", input);
  std::thread other([&] {
    for (int i = 0; i < 20; ++i) sess.save();
  });
  while (!sv.should_stop()) sess.run();
  other.join();
  CHECK(calls == 1 + 20 + 101 + 100);  // the first save; a step that finds no data begins too
}

TEST_CASE("values that no step gave have no results") {
  CHECK_THROWS_WITH_AS(run_values{}.result("loss"), doctest::Contains("gives no number \"loss\""), not_found);
}
