// costs: 300
#include <gradus/checkpoint/on_notice.hpp>
#include <gradus/cluster/server.hpp>
#include <gradus/codec/safetensors.hpp>
#include <gradus/gradus.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/supervisor.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <memory>

#include "../session/turned_clock.hpp"
#include "supervised.hpp"

using namespace supervised;

// ---- the programs of TensorFlow's documentation, in our words

namespace {
// One program, started on every machine. Which of its tasks is the chief is up to the program, but there is only one.
template <class Data>
std::int64_t train_as(const server_def& def, const std::string& shared_directory, Data input) {
  const bool is_chief = def.task_index == 0;
  const server here(def);

  auto sv = make_supervisor<line>({.logdir = shared_directory, .is_chief = is_chief}, in_process{here}, descent);
  auto sess = sv.managed_session(here.target(), input);
  while (!sv.should_stop()) sess.run();
  return sess.global_step();
}
}  // namespace

TEST_CASE("supervisor: chief and workers, run as task 0") {
  const testing::temp_dir dir;
  const points data;
  const cluster_spec cluster{{"ps", {"ps0:2222"}}, {"worker", {"worker0:2222", "worker1:2222"}}};
  CHECK(train_as({.cluster = cluster, .job_name = "worker", .task_index = 0}, dir / "run", data.batches(3)) == 12);
  CHECK(newest_step(dir / "run") == 12);

  // Task 1 would wait for the chief to initialize; alone in its process it is told that this has no end.
  CHECK_THROWS_WITH_AS(
      train_as({.cluster = cluster, .job_name = "worker", .task_index = 1}, dir / "run", data.batches(3)),
      doctest::Contains("this task is not the chief, and the session \"in_process://worker1:2222\" is of this process "
                        "alone"),
      failed_precondition);
}

TEST_CASE("supervisor: a single program") {
  const testing::temp_dir dir;
  const points data;
  const std::string logdir = dir / "mydir", master = "";
  auto input = data.batches(3);
  {
    auto sv = make_supervisor<line>({.logdir = logdir}, descent);
    auto sess = sv.managed_session(master, input);
    CHECK(newest_step(logdir) == 0);  // an initialized model is saved at once
    while (!sv.should_stop()) sess.run();
    CHECK(sess.global_step() == 12);
    CHECK(weight(sess) != 1);
  }
  CHECK(newest_step(logdir) == 12);
  CHECK(session_log_of(logdir) == log_of_sessions{"START 0", "CHECKPOINT 0", "CHECKPOINT 12", "STOP 12"});
  const auto pbtxt = read_file(posix{}, join_path(logdir, "graph.pbtxt"));
  const std::string_view graph_text(reinterpret_cast<const char*>(pbtxt.data()), pbtxt.size());
  CHECK(graph_text.find("name: \"line/kernel\"") != std::string_view::npos);
  CHECK(graph_text.find("gradients/") != std::string_view::npos);

  // Started again it goes on from its last checkpoint, here: from the end of its data.
  auto again = data.batches(3);
  auto sv = make_supervisor<line>({.logdir = logdir}, descent);
  auto sess = sv.managed_session("local", again);
  CHECK(sess.global_step() == 12);
  CHECK_FALSE(sess.run());
  CHECK(sv.should_stop());
}

TEST_CASE("supervisor: checkpoints without a state file are refused, or gone on from if it may") {
  const testing::temp_dir dir;
  const points data;
  const std::string logdir = dir / "run";
  const auto train = [&](bool restore_newest) {
    auto input = data.batches(3);
    auto sv = make_supervisor<line>({.logdir = logdir, .restore_newest = restore_newest}, descent);
    auto sess = sv.managed_session("", input);
    const std::int64_t began = sess.global_step();
    while (!sv.should_stop()) sess.run();
    return std::pair(began, weight(sess));
  };
  const auto first = train(false);
  CHECK(first.first == 0);
  REQUIRE(posix{}.remove(join_path(logdir, "checkpoint")) == 0);
  CHECK_THROWS_WITH_AS(train(false), doctest::Contains("Set restore_newest = true to go on from it"),
                       failed_precondition);
  CHECK(train(true) == std::pair(std::int64_t{12}, first.second));
}

TEST_CASE("supervisor: a further service, on a thread that the program asks for") {
  const turned_clock clock;
  const testing::temp_dir dir;
  const points data;
  auto input = data.batches(-1);
  std::vector<double> printed;
  auto sv = make_supervisor<line>({.logdir = dir / "mydir"}, descent, clock);
  {
    auto sess = sv.managed_session("", input);
    sess.run();
    const auto print_loss = [&](const auto& session) { printed.push_back(session.loss()); };
    sv.loop(60, print_loss, sess);
    clock.until_waits(1);  // the first call came at once
    for (int step = 2; !sv.should_stop(); ++step) {
      sess.run();
      if (step % 3 != 0) continue;
      clock.turn(60);
      clock.until_waits(step / 3 + 1);
      if (step == 9) sv.request_stop();
    }
  }
  CHECK(printed.size() == 4);
  CHECK(std::isfinite(printed[0]));
  CHECK(steps_of(dir / "mydir", "loss") == std::vector<std::int64_t>{1, 7});  // 120 seconds
}

TEST_CASE("supervisor: without automatic summaries, the program writes its own") {
  const testing::temp_dir dir;
  const points data;
  const bool is_chief = true;
  auto input = data.batches(-1);
  auto sv = make_supervisor<line>({.logdir = dir / "mydir", .is_chief = is_chief, .summary_op = none}, descent);
  {
    auto sess = sv.managed_session("", input);
    for (int step = 0; step < 250; ++step) {
      if (sv.should_stop()) break;
      sess.run();
      if (is_chief && step % 100 == 0) sv.summary_computed(sess, sess.summary());
    }
    sv.summary_computed(sess, std::array{scalar_value{"mine", 2.5f}}, 1000);
  }
  CHECK(steps_of(dir / "mydir", "error") == std::vector<std::int64_t>{1, 101, 201});
  CHECK(steps_of(dir / "mydir", "gradient_norm") == std::vector<std::int64_t>{1, 101, 201});
  CHECK(steps_of(dir / "mydir", "mine") == std::vector<std::int64_t>{1000});
}

// ---- what it promises

TEST_CASE("supervisor: stopped anywhere and started again, it ends with the same bits") {
  const testing::temp_dir dir;
  const points data;
  const auto run = [&](const std::string& logdir, int steps) {
    auto input = data.batches(6);
    auto sv = make_supervisor<line>({.logdir = logdir}, adam{.rate = 0.1});
    auto sess = sv.managed_session("", input);
    for (int i = 0; i != steps && !sv.should_stop(); ++i) sess.run();
  };
  run(dir / "whole", -1);
  for (int steps : {0, 5, 1, 11, -1}) run(dir / "parts", steps);
  const auto whole = run_files::newest_checkpoint(posix{}, dir / "whole");
  CHECK(whole.step == 24);
  CHECK(run_files::difference(whole, run_files::newest_checkpoint(posix{}, dir / "parts")) == "");
}

TEST_CASE("supervisor: checkpoints and summaries when they are due, by the clock") {
  const turned_clock clock;
  const testing::temp_dir dir;
  const points data;
  auto input = data.batches(-1);
  auto sv =
      make_supervisor<line>({.logdir = dir / "run", .save_summaries_secs = 20, .save_model_secs = 50}, descent, clock);
  CHECK(sv.save_path() == dir / "run/model");
  {
    auto sess = sv.managed_session("", input);
    for (int i = 1; i <= 12; ++i) {
      clock.turn(10);
      sess.run();
      if (i == 7) sess.save();  // begins the 50 seconds anew
    }
  }
  CHECK(session_log_of(dir / "run") ==
        log_of_sessions{"START 0", "CHECKPOINT 0", "CHECKPOINT 5", "CHECKPOINT 7", "CHECKPOINT 12", "STOP 12"});
  CHECK(steps_of(dir / "run", "loss") == std::vector<std::int64_t>{1, 3, 5, 7, 9, 11});
  const auto curves = run_files::read_curves(posix{}, dir / "run");
  REQUIRE(curves.count("global_step/sec") == 1);
  CHECK(curves.at("global_step/sec").front() == run_files::point{3, 0.1f});
  CHECK(curves.at("global_step/sec").size() == 5);
}

TEST_CASE("supervisor: services on threads go on while no step is made, and get in between steps without a pause") {
  const testing::temp_dir dir;
  const points data;
  for (const bool summarizes : {true, false}) {  // one thread at a time, so that its waits can be counted
    const turned_clock clock;
    auto input = data.batches(-1);
    auto sv = make_supervisor<line>({.logdir = dir / (summarizes ? "events" : "run"),
                                     .save_summaries_secs = summarizes ? 20.0 : 0,
                                     .save_model_secs = summarizes ? 0 : 50.0,
                                     .services = service_place::threads},
                                    descent, clock);
    auto sess = sv.managed_session("", input);
    clock.until_waits(1);  // it has looked once, and found no step
    for (int i = 1; i <= 12; ++i) {
      sess.run();
      clock.turn(10);
      clock.until_waits(1 + i);  // no step runs, and what is due is done
    }
  }
  CHECK(steps_of(dir / "events", "loss") == std::vector<std::int64_t>{2, 4, 6, 8, 10, 12});
  CHECK(session_log_of(dir / "run") ==
        log_of_sessions{"START 0", "CHECKPOINT 0", "CHECKPOINT 5", "CHECKPOINT 10", "CHECKPOINT 12", "STOP 12"});

  auto again = make_supervisor<line>({.logdir = dir / "run", .save_model_secs = 0}, descent);
  auto more = data.batches(-1);
  auto sess = again.managed_session("", more);
  std::atomic<int> looks = 0;
  again.loop(0, [&] {
    sess.save();
    if (++looks == 3) again.request_stop();
  });
  while (!again.should_stop()) sess.run();
  CHECK(looks >= 3);
}

TEST_CASE("supervisor: services that are none or never") {
  const testing::temp_dir dir;
  const points data;
  const auto run = [&](const std::string& name, supervisor_options options) {
    options.logdir = dir / name;
    auto input = data.batches(1);
    auto sv = make_supervisor<line>(options, descent);
    auto sess = sv.managed_session("", input);
    while (!sv.should_stop()) sess.run();
  };
  run("no_saver", {.saver = none});
  CHECK(newest_step(dir / "no_saver") == -1);
  CHECK(session_log_of(dir / "no_saver") == log_of_sessions{"START 0", "STOP 4"});
  run("no_last", {.save_on_stop = false});
  CHECK(newest_step(dir / "no_last") == 0);
  run("never", {.save_summaries_secs = 0, .save_model_secs = 0});
  CHECK(newest_step(dir / "never") == 4);
  CHECK(run_files::read_curves(posix{}, dir / "never").empty());
  run("keep_one", {.saver = saver_options{.max_to_keep = 1}, .checkpoint_basename = "kept"});
  std::vector<std::string> names;
  REQUIRE(posix{}.list(dir / "keep_one", names) == 0);
  CHECK(std::count_if(names.begin(), names.end(),
                      [](auto& n) { return n.starts_with("kept-") && !n.ends_with(".meta"); }) == 1);
}

namespace {
// A log sink by which a test sees that a thread is being waited for.
struct told {
  using policy_for = kind::log_sink;
  std::latch* heard;
  std::string* last;
  void line(std::string_view s) {
    *last = s;
    heard->count_down();
  }
  void step(const progress_report&, bool) {}
};
}  // namespace

TEST_CASE("supervisor: a thread that does not stop is named, waited for, and an error") {
  const turned_clock clock(true);  // the grace period passes by itself
  const points data;
  auto input = data.batches(-1);
  std::latch heard(1), begun(1);
  std::string last;
  std::atomic<bool> ended{false};
  auto sv = make_supervisor<line>({.stop_grace_secs = 3}, descent, clock, told{&heard, &last});
  const auto train = [&] {
    auto sess = sv.managed_session("", input);
    sess.run();
    sv.loop(1, [&] {
      begun.count_down();
      heard.wait();
      sv.wait_for_stop();
      ended = true;
    });
    begun.wait();
  };
  CHECK_THROWS_WITH_AS(train(), doctest::Contains("still run after 3 seconds: \"loop 0\""), deadline_exceeded);
  CHECK(ended);
  CHECK(last.find("\"loop 0\"") != std::string::npos);
}

TEST_CASE("supervisor: sessions follow each other, each from the newest checkpoint") {
  const testing::temp_dir dir;
  const points data;
  auto input = data.batches(-1);
  auto sv = make_supervisor<line>({.logdir = dir / "run"}, descent);
  float w = 0;
  {
    auto sess = sv.managed_session("", input);
    CHECK_THROWS_WITH_AS(sv.managed_session("", input), doctest::Contains("has a session already"),
                         failed_precondition);
    sess.run();
    w = weight(sess);
    sv.request_stop();
  }
  CHECK(sv.should_stop());
  {
    auto sess = sv.managed_session("", data.batches(-1));  // it keeps the data, whose position is restored as well
    CHECK_FALSE(sv.should_stop());
    CHECK(sess.global_step() == 1);
    CHECK(weight(sess) == w);
    sess.run();
  }
  CHECK(steps_of(dir / "run", "loss") == std::vector<std::int64_t>{1, 2});
  CHECK(session_log_of(dir / "run") ==
        log_of_sessions{"START 0", "CHECKPOINT 0", "CHECKPOINT 1", "STOP 1", "START 2", "CHECKPOINT 2", "STOP 2"});
}

TEST_CASE("supervisor: a session goes on from what another run has saved meanwhile, and keeps its checkpoints") {
  const testing::temp_dir dir;
  const points data;
  auto input = data.batches(-1);
  const auto make = [&] {
    return make_supervisor<line>({.logdir = dir / "run", .saver = saver_options{.max_to_keep = 4}}, descent);
  };
  const auto step_with = [&](auto& sv) {
    auto sess = sv.managed_session("", input);
    sess.run();
    return sess.global_step();
  };
  auto first = make();
  CHECK(step_with(first) == 1);
  {
    auto other = make();
    CHECK(step_with(other) == 2);
    CHECK(step_with(other) == 3);
  }
  CHECK(step_with(first) == 4);
  const std::optional<checkpoint_state> listed = read_state_file(posix{}, dir / "run");
  REQUIRE(listed);
  std::string names;
  for (const auto& name : listed->all) names += name + " ";
  CHECK(names == "model-1.ckpt model-2.ckpt model-3.ckpt model-4.ckpt ");
}

TEST_CASE("supervisor: a notice ends every later session of it, too") {
  const testing::temp_dir dir;
  const points data;
  bool told = false;
  auto sv = make_supervisor<line>({.logdir = dir / "run"}, any_of{every_steps{100}, on_notice{[&] { return told; }}},
                                  descent);
  for (int round : {0, 1}) {
    auto sess = sv.managed_session("", data.batches(-1));
    CHECK(sv.should_stop() == (round == 1));
    while (!sv.should_stop()) told = sess.global_step() == 2, sess.run();
    CHECK(sess.global_step() == 3);
  }
}

TEST_CASE("supervisor: a model that diverges stops with the step, and keeps the last good checkpoint") {
  const testing::temp_dir dir;
  const points data;
  auto input = data.batches(-1);
  auto sv = make_supervisor<line>({.logdir = dir / "run"}, gradient_descent{.rate = 1e30});
  const auto train = [&] {
    auto sess = sv.managed_session("", input);
    while (!sv.should_stop()) sess.run();
  };
  CHECK_THROWS_WITH_AS(train(), doctest::Contains("the model diverged: \"loss\" is "), invalid_argument);
  CHECK(newest_step(dir / "run") == 0);
}

TEST_CASE("supervisor: masters that it cannot reach, and settings that are none") {
  const points data;
  auto input = data.batches(1);
  auto sv = make_supervisor<line>({}, descent);
  CHECK_THROWS_WITH_AS(sv.managed_session("grpc://worker0:2222", input), doctest::Contains("speaks grpc"),
                       unimplemented);
  CHECK_THROWS_AS(sv.managed_session("nowhere", input), invalid_argument);
  CHECK_THROWS_AS(make_supervisor<line>({.save_model_secs = -1}, descent), invalid_argument);
  const auto labels = from_spans("x", data.x, extents{1});
  auto unfit = labels.batch(2);
  CHECK_THROWS_WITH_AS(sv.managed_session("", unfit), doctest::Contains("placeholder \"y\" is not fed"),
                       invalid_argument);
  {
    auto sess = sv.managed_session("", input);  // it is as good as before
    CHECK(sess.run());
  }
}

TEST_CASE("supervisor: who is not the chief has no files") {
  const testing::temp_dir dir;
  auto sv = make_supervisor<line>({.logdir = dir / "run", .is_chief = false}, descent);
  CHECK_FALSE(sv.is_chief());
  CHECK(sv.options().logdir.empty());
  CHECK(sv.save_path().empty());
  CHECK(sv.options().save_model_secs == 0);
  CHECK(sv.options().save_summaries_secs == 0);
  CHECK_THROWS_AS(sv.managed_session(), failed_precondition);
  CHECK(posix{}.exists(dir / "run") == ENOENT);
}

TEST_CASE("supervisor: a model function of the program's, whose sizes come from anywhere") {
  const points data;
  int units = 3;
  const auto build = [units](graph& g) {
    auto x = g.placeholder("x", {batch, 1});
    auto y = g.placeholder("y", {batch, 1});
    auto hidden = tanh(dense(x, {.units = units, .name = "hidden"}));
    return model_spec{.loss = reduce_mean(square(dense(hidden, {.units = 1, .name = "out"}) - y))};
  };
  auto input = data.batches(20);
  auto sv = make_supervisor(build, {}, descent);
  auto sess = sv.managed_session("", input);
  sess.run();
  const double first = sess.loss();
  while (!sv.should_stop()) sess.run();
  CHECK(sess.loss() < first);
}

namespace {
// What a log sink is told.
struct heard {
  std::vector<std::string> lines;
  std::vector<progress_report> steps;
  std::vector<std::int64_t> due;
};
struct hearing {
  using policy_for = kind::log_sink;
  std::shared_ptr<heard> to = std::make_shared<heard>();
  void line(std::string_view s) { to->lines.emplace_back(s); }
  void step(const progress_report& r, bool due) {
    to->steps.push_back(r);
    if (due) to->due.push_back(r.step);
  }
};
std::vector<std::string> files_with(const std::string& dir, std::string_view word) {
  std::vector<std::string> names;
  REQUIRE(posix{}.list(dir, names) == 0);
  std::erase_if(names, [&](const std::string& n) { return n.find(word) == std::string::npos; });
  std::sort(names.begin(), names.end());
  return names;
}
}  // namespace

TEST_CASE("supervisor: what a trainer tells and leaves, it does too: steps, warnings, .meta, one event file") {
  const testing::temp_dir dir;
  const points data;
  const hearing sink;
  auto input = data.batches(3);
  auto sv = make_supervisor<line>({.logdir = dir / "run", .log_step_count_steps = 5}, descent, sink, safetensors{});
  {
    auto sess = sv.managed_session("", input);
    while (!sv.should_stop()) sess.run();
  }
  CHECK(sink.to->steps.size() == 12);
  CHECK(sink.to->due == std::vector<std::int64_t>{5, 10});
  CHECK(sink.to->steps.back().step == 12);
  CHECK(sink.to->steps.back().max_steps == 0);
  CHECK(sink.to->steps.back().rate == doctest::Approx(0.01));
  CHECK(sink.to->steps.back().loss > 0);
  CHECK(files_with(dir / "run", ".meta") == std::vector<std::string>{"model-0.meta", "model-12.meta"});
  CHECK(sink.to->lines.empty());

  for (const auto& manifest : files_with(dir / "run", ".manifest"))
    REQUIRE(posix{}.remove(join_path(dir / "run", manifest)) == 0);
  {
    auto sess = sv.managed_session("", input);
    CHECK_FALSE(sess.run());  // the data ended
  }
  REQUIRE(sink.to->lines.size() == 3);
  CHECK(sink.to->lines[0].find("model-12.safetensors: ") != std::string::npos);
  CHECK(sink.to->lines[1].starts_with("restored step 12 from "));
  CHECK(sink.to->lines[2].find("the data gave no step") != std::string::npos);
  CHECK(files_with(dir / "run", "tfevents").size() == 1);
  CHECK_THROWS_WITH_AS(make_supervisor<line>({.log_step_count_steps = -1}, descent),
                       doctest::Contains("log_step_count_steps must be at least 0"), invalid_argument);
}

TEST_CASE("supervisor: training goes on with another input if it may, and says so") {
  const testing::temp_dir dir;
  const points data;
  const auto train = [&](saved_input how, auto input) {
    const hearing sink;
    auto sv = make_supervisor<line>({.logdir = dir / "run", .restore_input = how}, descent, sink);
    auto sess = sv.managed_session("", input);
    while (!sv.should_stop()) sess.run();
    return std::count_if(sink.to->lines.begin(), sink.to->lines.end(), [](const std::string& l) {
      return l.find("the input is read from its beginning: the saved position is one in the input") != l.npos;
    });
  };
  CHECK(train(saved_input::required, data.batches(3)) == 0);
  const auto other = [&] { return data.batches(3).prefetch(1).take(2); };
  CHECK_THROWS_AS(train(saved_input::required, other()), data_loss);
  CHECK(train(saved_input::if_it_fits, other()) == 1);
  CHECK(train(saved_input::ignored, data.batches(3)) == 0);
}
