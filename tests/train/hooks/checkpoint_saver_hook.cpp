#include <gradus/train/hooks/checkpoint_saver_hook.hpp>

#include <gradus/testing/faulty_files.hpp>
#include <gradus/testing/hand_tasks.hpp>
#include <gradus/testing/temp_dir.hpp>
#include <gradus/train/monitored_session.hpp>

#include <doctest/doctest.h>

#include <filesystem>

#include "events.hpp"
#include "hooked.hpp"

using namespace gradus;
using gradus::testing::faulty_files;

namespace {
struct listener {
  std::vector<std::string> log;
  bool stops = false;
  void begin() { log.push_back("begin"); }
  void before_save(hooked_session&, std::int64_t step) { log.push_back(text("before ", step)); }
  bool after_save(hooked_session&, std::int64_t step) {
    log.push_back(text("after ", step));
    return stops;
  }
  void end(hooked_session&, std::int64_t step) { log.push_back(text("end ", step)); }
  int count(std::string_view what) const {
    int n = 0;
    for (const auto& l : log) n += l.starts_with(what);
    return n;
  }
};
struct saving {
  faulty_files files;
  std::shared_ptr<detail::any_saver> saves =
      std::make_shared<saver<flat_binary, faulty_files>>(saver_options{.max_to_keep = 100}, flat_binary{}, files);
  // The steps of the checkpoints that there are.
  std::vector<int> steps() const {
    std::vector<int> found;
    for (const std::string& name : saves->checkpoints()) {
      const std::size_t dash = name.rfind('-');
      found.push_back(std::stoi(name.substr(dash + 1)));
    }
    return found;
  }
};
}  // namespace

TEST_CASE("K4 a saver and a scaffold, both intervals or none, are refused") {
  saving m;
  scaffold parts;
  CHECK_THROWS_AS(checkpoint_saver_hook("d", {.save_steps = 1, .saver = m.saves, .parts = &parts}), invalid_argument);
  CHECK_THROWS_AS(checkpoint_saver_hook("d", {.save_secs = 1.0, .save_steps = 1}), invalid_argument);
  CHECK_THROWS_AS(checkpoint_saver_hook("d", {}), invalid_argument);
}

TEST_CASE("K4 saves at creation, after save_steps, and at the end if that is another step") {
  for (const int last : {4, 5}) {
    saving m;
    hooked h;
    const any_hook saves = checkpoint_saver_hook("d", {.save_steps = 2, .saver = m.saves});
    h.create(saves);
    CHECK(m.steps() == std::vector<int>{0});
    for (int step = 1; step <= last; ++step) h.run_to(saves, step);
    CHECK(m.steps() == std::vector<int>{0, 2, 4});
    h.end(saves);
    CHECK(m.steps() == (last == 4 ? std::vector<int>{0, 2, 4} : std::vector<int>{0, 2, 4, 5}));
  }
}

TEST_CASE("a session that is created keeps the checkpoints that another run has saved in its directory meanwhile") {
  saving m, other;
  other.saves =
      std::make_shared<saver<flat_binary, faulty_files>>(saver_options{.max_to_keep = 100}, flat_binary{}, m.files);
  const auto session_to = [](saving& by, std::int64_t first, std::int64_t last) {
    hooked h;
    const any_hook saves = checkpoint_saver_hook("d", {.save_steps = 1, .saver = by.saves});
    h.s.run({h.set}, {{h.to, std::vector<std::int64_t>{first}}});
    h.create(saves);
    for (std::int64_t step = first + 1; step <= last; ++step) h.run_to(saves, step);
    h.end(saves);
  };
  session_to(m, 0, 1), session_to(other, 1, 3), session_to(m, 3, 4);
  CHECK(m.steps() == std::vector<int>{0, 1, 2, 3, 4});
  CHECK(read_state_file(m.files, "d")->all.size() == 5);
}

TEST_CASE("K4 save_secs 2 at times 0, .5, 2.5, 2.6, 2.7, 10: checkpoints of steps 1, 3, 6") {
  saving m;
  hooked h;
  testing::hand_tasks hand;
  const any_hook saves = checkpoint_saver_hook("d", {.save_secs = 2.0, .saver = m.saves, .tasks = hand.tasks()});
  saves.begin();
  int step = 0;
  for (const double at : {0.0, 0.5, 2.5, 2.6, 2.7, 10.0}) {
    hand.advance(at - hand.elapsed());
    h.run_to(saves, ++step);
  }
  CHECK(m.steps() == std::vector<int>{1, 3, 6});
}

TEST_CASE("an interval in seconds counts from the beginning of a save, and a save that failed counts for none") {
  saving m;
  hooked h;
  testing::hand_tasks hand;
  struct slow {
    testing::hand_tasks* clock;
    double takes = 1.5;
    bool fails = false;
    void before_save(hooked_session&, std::int64_t) {
      clock->advance(takes);
      if (fails) raise(status::unavailable, "no disk");
    }
  } disk{&hand};
  const any_hook saves = checkpoint_saver_hook(
      "d", {.save_secs = 2.0, .saver = m.saves, .listeners = {std::ref(disk)}, .tasks = hand.tasks()});
  saves.begin();
  h.run_to(saves, 1);
  hand.advance(2.0 - hand.elapsed()), h.run_to(saves, 2);
  hand.advance(3.9 - hand.elapsed()), h.run_to(saves, 3);
  CHECK(m.steps() == std::vector<int>{1, 2});
  disk.fails = true, disk.takes = 0;
  hand.advance(4.0 - hand.elapsed());
  CHECK_THROWS_AS(h.run_to(saves, 4), unavailable);
  disk.fails = false;
  h.run_to(saves, 5);
  CHECK(m.steps() == std::vector<int>{1, 2, 5});
}

TEST_CASE("K5 listeners: begin 1, around each save, end 1; two runs and the end: 2 saves of 3 with the creation's") {
  saving m;
  hooked h;
  listener l;
  const any_hook saves = checkpoint_saver_hook("d", {.save_steps = 2, .saver = m.saves, .listeners = {std::ref(l)}});
  saves.begin();
  h.run_to(saves, 1);  // first trigger
  h.run_to(saves, 2);
  h.end(saves);
  CHECK(l.log == std::vector<std::string>{"begin", "before 1", "after 1", "before 2", "after 2", "end 2"});
  // save_steps 1 in a session: the creation and two steps
  saving other;
  listener k;
  hooked n;
  const value next = assign_add(n.step, n.g.constant(1, int64));
  scaffold parts;
  chief_session_creator chief(sessions_of(n.g), n.g, parts);
  monitored_session s(
      chief, {checkpoint_saver_hook("d", {.save_steps = 1, .saver = other.saves, .listeners = {std::ref(k)}})});
  s.run(next), s.run(next);
  s.close();
  CHECK((k.count("begin") == 1 && k.count("before") == 3 && k.count("after") == 3 && k.count("end") == 1));
}

TEST_CASE(
    "K6 a listener's true stops training after that save, but not at the creation; K7 two listeners are both told") {
  saving m;
  hooked h;
  listener asks, other;
  asks.stops = true;
  const any_hook saves =
      checkpoint_saver_hook("d", {.save_steps = 2, .saver = m.saves, .listeners = {std::ref(asks), std::ref(other)}});
  h.create(saves);
  CHECK(!h.run_to(saves, 1));
  CHECK(h.run_to(saves, 2));
  CHECK((asks.count("after") == 2 && other.count("after") == 2));
  CHECK(!h.run_to(saves, 3));
}

TEST_CASE("K8 steps of 5 with save_steps 10: 5, 15, 25") {
  saving m;
  hooked h;
  const any_hook saves = checkpoint_saver_hook("d", {.save_steps = 10, .saver = m.saves, .steps_per_run = 5});
  saves.begin();
  for (int step = 5; step <= 30; step += 5) h.run_to(saves, step);
  CHECK(m.steps() == std::vector<int>{5, 15, 25});
}

TEST_CASE("the scaffold's saver is taken") {
  saving m;
  hooked h;
  scaffold parts({.saver = m.saves});
  const any_hook saves = checkpoint_saver_hook("d", {.save_steps = 1, .parts = &parts});
  h.create(saves);
  CHECK(m.steps() == std::vector<int>{0});
}

TEST_CASE("the hooks of one session share the lock of their directory; another session's are refused meanwhile") {
  const testing::temp_dir dir;
  hooked n;
  const value next = assign_add(n.step, n.g.constant(1, int64));
  scaffold parts;
  chief_session_creator chief(sessions_of(n.g), n.g, parts);
  checkpoint_saver_hook mine(dir.path(), {.save_steps = 1}), more(dir / "./", {.save_steps = 2, .parts = &parts});
  {
    monitored_session s(chief, {std::ref(mine), std::ref(more)});
    s.run(next);
    for (int twice = 0; twice < 2; ++twice)
      CHECK(refused<failed_precondition>([&] {
              monitored_session second(chief, {checkpoint_saver_hook(dir.path(), {.save_steps = 1})});
            }).starts_with("expected to be the only one that writes into"));
    s.close();
  }
  // The hooks are alive, and the directory is free.
  CHECK(hold_directory(posix{}, dir.path())->held());
  monitored_session again(chief, {std::ref(mine)});
  CHECK_THROWS_AS(hold_directory(posix{}, dir.path()), failed_precondition);
  // A directory that is made again while the session runs belongs to it again with its next save.
  REQUIRE(posix{}.rename(dir.path(), dir.path() + "-old") == 0);
  REQUIRE(posix{}.make_directory(dir.path()) == 0);
  again.run(next);
  CHECK_THROWS_AS(hold_directory(posix{}, dir.path()), failed_precondition);
  again.close();
  CHECK(latest_checkpoint(posix{}, dir.path()) == dir / "model-1.ckpt");
  std::filesystem::remove_all(dir.path() + "-old");
}

TEST_CASE("what the writer has is on file before a checkpoint is") {
  struct reads {
    event_log* log;
    std::size_t* seen;
    void after_save(hooked_session&, std::int64_t) {
      log->each([this](const event& e) { *seen += !e.values.empty(); });
    }
  };
  saving m;
  hooked h;
  event_log log;
  std::size_t seen = 0;
  const any_hook saves = checkpoint_saver_hook(
      "d", {.save_steps = 1, .saver = m.saves, .listeners = {reads{&log, &seen}}, .summary_writer = log.writer});
  log.writer->add_scalar("loss", 1, 1);
  h.create(saves);
  CHECK(seen == 1);
}
