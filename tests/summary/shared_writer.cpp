#include <gradus/summary/shared_writer.hpp>

#include <gradus/summary/reader.hpp>
#include <gradus/testing/hand_tasks.hpp>
#include <gradus/testing/temp_dir.hpp>

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

using namespace gradus;
using detail::shared_summary_writer;

namespace {
std::vector<std::string> files_of(const std::string& directory) {
  std::vector<std::string> names;
  posix{}.list(directory, names);
  std::sort(names.begin(), names.end());
  return names;
}
// The steps of all scalars in the directory, in the order in which viewers read them.
std::vector<std::int64_t> steps_of(const std::string& directory) {
  std::vector<std::int64_t> found;
  for (const auto& name : files_of(directory))
    for (const auto& e : summary_iterator(join_path(directory, name)))
      if (e.what == event_kind::summary) found.push_back(e.step);
  return found;
}
// The number of events that begin a file, in all files.
int versions_in(const std::string& directory) {
  int found = 0;
  for (const auto& name : files_of(directory))
    for (const auto& e : summary_iterator(join_path(directory, name))) found += e.what == event_kind::file_version;
  return found;
}
// Its tasks begin a second after they are started.
struct late_tasks final : task_driver {
  explicit late_tasks(const task_system& of) : of_(of) {}
  double now() const override { return of_.now(); }
  double elapsed() const override { return of_.elapsed(); }
  void sleep(double secs) override { of_.sleep(secs); }
  std::unique_ptr<meeting> make_meeting() override { return of_.driver()->make_meeting(); }
  std::unique_ptr<running> start(std::function<void()> body) override {
    return of_.driver()->start([of = of_, body = std::move(body)] { of.sleep(1), body(); });
  }
  task_system of_;
};
}  // namespace

TEST_CASE("one writer for a directory, whatever path leads there, as long as an owner has it") {
  const testing::temp_dir dir;
  const std::string runs = dir.path() + "/runs";
  const auto a = shared_summary_writer(runs, {.filename_suffix = ".first"});
  std::filesystem::create_directory_symlink("runs", dir.path() + "/link");
  for (const std::string& same : {runs, runs + "/", runs + "/../runs", dir.path() + "/link"})
    CHECK(shared_summary_writer(same) == a);
  CHECK(shared_summary_writer(dir.path() + "/others") != a);
  CHECK(files_of(runs).size() == 1);
  CHECK(a->path().ends_with(".first"));

  std::weak_ptr<detail::any_summary_writer> seen = shared_summary_writer(dir.path() + "/others");
  CHECK(seen.expired());
  shared_summary_writer(dir.path() + "/others")->add_scalar("x", 1, 1);
  CHECK(steps_of(dir.path() + "/others") == std::vector<std::int64_t>{1});
}

TEST_CASE("an owner that closes it takes it from no other one; with a queue too") {
  for (const std::size_t queue : {0u, 10u}) {
    const testing::temp_dir dir;
    const auto a = shared_summary_writer(dir.path(), {.max_queue = queue, .when_full = full_queue::block});
    const auto b = shared_summary_writer(dir.path());
    a->add_scalar("x", 1, 1), a->close();
    b->flush(), b->sync();  // nothing is left to write
    b->add_scalar("x", 1, 2);
    const std::vector<std::byte> nothing;
    a->close();
    b->add_run_metadata("t", nothing, 2), b->close();
    summary_writer<>(dir.path()).close();
    a->add_scalar("x", 1, 3), a->close();  // in a third file
    CHECK(files_of(dir.path()).size() == 3);
    CHECK(versions_in(dir.path()) == 3);
    CHECK(steps_of(dir.path()) == std::vector<std::int64_t>{1, 2, 3});
  }
}

TEST_CASE("threads that add and close meanwhile: every event is there once, in one file") {
  constexpr int adds = 200;
  for (const std::size_t queue : {0u, 2u}) {
    const testing::temp_dir dir;
    const auto kept = shared_summary_writer(dir.path(), {.max_queue = queue, .when_full = full_queue::block});
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        const auto mine = shared_summary_writer(dir.path());
        for (int i = 0; i < adds; ++i) {
          mine->add_scalar("x", 1, i);
          if (i % 20 == 0) mine->close();
          if (i % 7 == 0) mine->flush();
        }
        mine->flush();
      });
    for (auto& t : threads) t.join();
    kept->close();
    CHECK(files_of(dir.path()).size() == 1);
    CHECK(steps_of(dir.path()).size() == 3 * adds);
  }
}

TEST_CASE("who comes while the last events of a writer are written begins a file behind them") {
  const testing::temp_dir dir;
  const testing::hand_tasks hand;
  auto last = shared_summary_writer(dir.path(),
                                    {.max_queue = 10, .run = task_system(std::make_shared<late_tasks>(hand.tasks()))});
  last->add_scalar("x", 1, 1);
  std::shared_ptr<detail::any_summary_writer> next;
  task_handle leaves = hand.tasks().start("an owner", "do without", [&] { last.reset(); });
  hand.settle();  // its thread has not begun to write
  task_handle comes =
      hand.tasks().start("another owner", "do without", [&] { next = shared_summary_writer(dir.path()); });
  hand.settle();
  CHECK(files_of(dir.path()).size() == 1);
  hand.advance(1);
  leaves.join(), comes.join();
  REQUIRE(next != nullptr);
  next->add_scalar("x", 1, 2), next->close();
  CHECK(files_of(dir.path()).size() == 2);
  CHECK(steps_of(dir.path()) == std::vector<std::int64_t>{1, 2});
}

TEST_CASE("behind another writer's file a new one begins, and in a directory that was made again") {
  const testing::temp_dir dir;
  const auto a = shared_summary_writer(dir.path());
  a->add_scalar("x", 1, 1);
  summary_writer<>(dir.path()).add_scalar("x", 1, 2);  // another process's, say
  CHECK(shared_summary_writer(dir.path()) == a);
  a->add_scalar("x", 1, 3), a->flush();
  CHECK(files_of(dir.path()).size() == 3);
  CHECK(steps_of(dir.path()) == std::vector<std::int64_t>{1, 2, 3});

  for (const auto& name : files_of(dir.path())) std::filesystem::remove(dir.path() + "/" + name);
  shared_summary_writer(dir.path())->add_scalar("x", 1, 4), a->flush();
  CHECK(steps_of(dir.path()) == std::vector<std::int64_t>{4});
}

TEST_CASE("a forked child has a writer of its own") {
  const testing::temp_dir dir;
  const auto a = shared_summary_writer(dir.path());
  const pid_t child = ::fork();
  if (child == 0) ::_exit(shared_summary_writer(dir.path()) == a ? 1 : 0);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(files_of(dir.path()).size() == 2);
}
